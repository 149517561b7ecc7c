"""The whole judgement: curves, findings and a verdict out of runs and expectations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ncdiag.diagnose.bench.cliffs import find_cliffs, find_drop, find_noise
from ncdiag.diagnose.bench.plateau import Plateau, find_plateau
from ncdiag.diagnose.bench.points import Looks, factor_of, looks, points, rated
from ncdiag.diagnose.bench.scaling import find_break
from ncdiag.diagnose.bench.slow_ranks import find_slow_ranks
from ncdiag.diagnose.bench.thresholds import (
    CLIFF_LOOKS,
    EXCEEDS_SHARE,
    LEAST_HISTORY,
    LEAST_LEVEL_SIZES,
)
from ncdiag.expect.collective import OF_MIDDLE_SIZES, CollectiveExpectation
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import (
    BenchCurve,
    BenchFinding,
    BenchFindingKind,
    BenchPoint,
    BenchRun,
    BenchSeverity,
)
from ncdiag.model.units import format_bytes, format_count, format_share
from ncdiag.model.verdict import Verdict

_NO_EXPECTATION = (
    "nothing says what these hosts should reach: give --machine or --topology to compare with "
    "theory"
)
_KINDS = list(BenchFindingKind)
# Their text is about a size alone.
_OF_SIZES = (BenchFindingKind.CLIFF, BenchFindingKind.NOISE)

Expect = Callable[[int, int], CollectiveExpectation | None]
"""What so many hosts, with so many ranks each, should reach; ``None`` where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What follows from the runs; ``curves`` rise in the number of hosts."""

    verdict: Verdict
    curves: tuple[BenchCurve, ...]
    findings: tuple[BenchFinding, ...]
    notes: tuple[str, ...]


def judge(
    runs: Sequence[BenchRun],
    collective: Collective,
    *,
    expect: Expect = lambda _hosts, _ranks: None,
    faulty_below: float = 0.8,
    history: Iterable[BenchCurve] = (),
    whole: bool = True,
) -> Judgement:
    """Judge ``runs``, repeats and numbers of hosts in any order.

    ``history`` are curves of earlier benchmarks of the same collective; ``whole`` is false where
    something that was asked for could not be measured at all, such as a host.
    """
    by_hosts: dict[tuple[tuple[str, ...], int], list[BenchRun]] = {}
    for run in runs:
        by_hosts.setdefault((run.hosts, run.ranks_per_host), []).append(run)
    groups = sorted(by_hosts.values(), key=lambda group: len(group[0].hosts))
    earlier = list(history)
    curves: list[BenchCurve] = []
    findings: list[BenchFinding] = []
    notes: dict[str, None] = {}
    for group in groups:
        first = group[0]
        expected = expect(len(first.hosts), first.ranks_per_host)
        one = _Group(group, collective, expected, faulty_below, _alike(first, earlier))
        curves.append(one.curve)
        findings.extend(one.findings() if len(groups) == 1 else map(one.where, one.findings()))
        notes.update(dict.fromkeys(one.notes()))
    broken = find_break(curves, collective)
    if broken:
        findings.append(broken)
    findings.sort(key=lambda one: (one.severity is BenchSeverity.NOTE, _KINDS.index(one.kind)))
    return Judgement(
        verdict=_verdict(curves, findings, whole=whole),
        curves=tuple(curves),
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _verdict(
    curves: Sequence[BenchCurve], findings: Sequence[BenchFinding], *, whole: bool
) -> Verdict:
    if any(one.severity is BenchSeverity.FAULT for one in findings):
        return Verdict.FAULTY
    levelled = [curve for curve in curves if curve.plateau_busbw_gb_per_s is not None]
    complete = not any(one.kind is BenchFindingKind.INCOMPLETE for one in findings)
    if whole and complete and curves and len(levelled) == len(curves):
        return Verdict.HEALTHY
    return Verdict.INCONCLUSIVE


def _alike(run: BenchRun, earlier: Sequence[BenchCurve]) -> list[BenchCurve]:
    """Earlier curves over as many hosts and ranks."""
    hosts, ranks = len(run.hosts), len(run.hosts) * run.ranks_per_host
    return [one for one in earlier if len(one.hosts) == hosts and one.ranks == ranks]


class _Group:
    """The repeats over one set of hosts."""

    def __init__(
        self,
        runs: Sequence[BenchRun],
        collective: Collective,
        expected: CollectiveExpectation | None,
        faulty_below: float,
        history: Sequence[BenchCurve],
    ) -> None:
        self._runs = runs
        self._collective = collective
        self._expected = expected
        self._faulty_below = faulty_below
        self._looks: Mapping[int, Looks] = looks(runs, collective)
        ranks = len(runs[0].hosts) * runs[0].ranks_per_host
        curve = points(dict(self._looks), factor_of(collective, ranks), expected)
        self._plateau: Plateau | None = find_plateau(curve)
        self._cliffs = find_cliffs(curve, self._looks)
        self.curve = self._with_history(self._judged(curve, ranks), history)

    def _judged(self, curve: tuple[BenchPoint, ...], ranks: int) -> BenchCurve:
        plateau, expected = self._plateau, self._expected
        fallen = {one.size_bytes for one in self._cliffs}
        should, unreliable = None, False
        if expected is not None:
            # At the very sizes that were measured: larger ones may reach more.
            should = expected.busbw_gb_per_s
            if plateau is not None:
                should = median(expected.at(size).busbw_gb_per_s for size in plateau.sizes_bytes)
            unreliable = not _judges(expected, plateau)
        errors = list(dict.fromkeys(run.error for run in self._runs if run.error))
        return BenchCurve(
            hosts=self._runs[0].hosts,
            ranks=ranks,
            points=tuple(replace(one, cliff=one.size_bytes in fallen) for one in curve),
            plateau_busbw_gb_per_s=plateau.busbw_gb_per_s if plateau else None,
            plateau_from_bytes=plateau.from_bytes if plateau else None,
            expected_busbw_gb_per_s=should,
            expected_from=() if expected is None else _derivation(expected),
            efficiency=plateau.busbw_gb_per_s / should if plateau and should else None,
            expectation_unreliable=unreliable,
            error="; ".join(errors) or None,
        )

    def _with_history(self, curve: BenchCurve, history: Sequence[BenchCurve]) -> BenchCurve:
        sizes = frozenset(self._plateau.sizes_bytes if self._plateau else ())
        levels = [level for one in history if (level := _level_at(one, sizes)) is not None]
        if len(levels) < LEAST_HISTORY:
            return curve
        by_size: dict[int, list[float]] = {}
        for earlier in history:
            for point in earlier.points:
                if point.busbw_gb_per_s is not None:
                    by_size.setdefault(point.size_bytes, []).append(point.busbw_gb_per_s)
        return replace(
            curve,
            points=tuple(
                replace(
                    point,
                    history_min_busbw_gb_per_s=min(by_size.get(point.size_bytes, ()), default=None),
                    history_max_busbw_gb_per_s=max(by_size.get(point.size_bytes, ()), default=None),
                )
                for point in curve.points
            ),
            history_plateau_gb_per_s=median(levels),
            history_runs=len(levels),
        )

    def findings(self) -> Iterable[BenchFinding]:
        """Everything about these hosts alone."""
        yield from self._wrong()
        yield from self._incomplete()
        yield from self._level()
        yield from self._cliffs
        drop = find_drop(self.curve.points)
        if drop:
            short = self._falls_short_from(drop.size_bytes or 0)
            yield replace(drop, severity=BenchSeverity.FAULT) if short else drop
        if noise := find_noise(self.curve.points):
            yield noise
        if self._plateau:
            yield from find_slow_ranks(self._runs, self._collective, self._plateau.from_bytes)

    def where(self, finding: BenchFinding) -> BenchFinding:
        """The same finding, which says over how many hosts it was made."""
        if finding.kind not in _OF_SIZES:
            return finding
        return replace(finding, text=f"on {self._where()}: {finding.text}")

    def notes(self) -> Iterable[str]:
        """What whoever reads the figures should know."""
        if self._expected is None:
            yield _NO_EXPECTATION
        else:
            for note in self._expected.notes:
                if note != OF_MIDDLE_SIZES or self._misses_middle_sizes():
                    yield note
        if (self.curve.efficiency or 0.0) > EXCEEDS_SHARE:
            yield (
                f"{self._where()} reach more than theory allows: these are no "
                f"{self._expected.machine if self._expected else 'such machines'}, or not all of "
                "the traffic crosses the network"
            )
        if self.curve.points and self._plateau is None and not self.curve.error:
            few = len(list(rated(self.curve.points))) < LEAST_LEVEL_SIZES
            why = (
                f"{LEAST_LEVEL_SIZES} sizes at least are needed to see where a curve levels off"
                if few
                else "the curve still rises at its largest sizes"
            )
            more = "more" if few else "larger ones"
            yield (
                f"{self._where()}: {why}, so it was not compared with anything; measure {more} "
                "with --sizes"
            )

    def _where(self) -> str:
        return format_count(len(self._runs[0].hosts), "host")

    def _wrong(self) -> Iterable[BenchFinding]:
        bad = [point for point in self.curve.points if point.wrong]
        out_of_bounds = any(
            run.wrong_data or (run.benchmark is not None and (run.benchmark.out_of_bounds or 0) > 0)
            for run in self._runs
        )
        if not bad and not out_of_bounds:
            return
        where = f" at {_sizes(bad)}" if bad else ""
        count = f"{sum(point.wrong or 0 for point in bad):,} elements" if bad else "some elements"
        yield BenchFinding(
            kind=BenchFindingKind.WRONG_DATA,
            severity=BenchSeverity.FAULT,
            text=f"wrong data on {self._where()}: {count} arrived with a wrong value{where}",
            next=(
                "use none of these hosts until it is found: halve them until the smallest set that "
                "still shows it; suspects are GPUs, NICs and forced protocols (NCCL_PROTO)"
            ),
            size_bytes=bad[0].size_bytes if bad else None,
        )

    def _incomplete(self) -> Iterable[BenchFinding]:
        failed = [run for run in self._runs if run.error]
        if failed:
            yield BenchFinding(
                kind=BenchFindingKind.INCOMPLETE,
                severity=BenchSeverity.NOTE,
                text=(
                    f"{len(failed)} of {format_count(len(self._runs), 'run')} on {self._where()} "
                    f"failed: {failed[0].error}"
                ),
                next="put that right and measure again",
            )

    def _misses_middle_sizes(self) -> bool:
        """Whether a size for which theory proves nothing misses it as a fault would."""
        return self._expected is not None and any(
            rate < self._faulty_below * (point.expected_busbw_gb_per_s or 0.0)
            for point, rate in rated(self.curve.points)
            if not self._expected.judges(point.size_bytes)
        )

    def _falls_short_from(self, size_bytes: int) -> bool:
        """Whether every measurement from one size on misses theory, and more than one size does."""
        if self._expected is None:
            return False
        large = [point for point in self.curve.points if point.size_bytes >= size_bytes]
        return len(large) > 1 and all(
            self._expected.judges(point.size_bytes)
            and len(rates := self._looks[point.size_bytes].rates) >= CLIFF_LOOKS
            and max(rates) < self._faulty_below * (point.expected_busbw_gb_per_s or 0.0)
            for point in large
        )

    def _level(self) -> Iterable[BenchFinding]:
        """Plateau against expectation, and against earlier ones."""
        curve, plateau = self.curve, self._plateau
        if plateau is None:
            return
        if curve.efficiency is not None and curve.efficiency < self._faulty_below:
            yield _below(
                BenchFindingKind.BELOW_EXPECTATION,
                len(self._runs[0].hosts),
                plateau,
                curve.expected_busbw_gb_per_s or 0.0,
                "expected",
                fault=not curve.expectation_unreliable,
            )
        before = curve.history_plateau_gb_per_s
        if before and plateau.busbw_gb_per_s < self._faulty_below * before:
            what = f"the median of {curve.history_runs} earlier benchmarks"
            hosts = len(self._runs[0].hosts)
            yield _below(BenchFindingKind.BELOW_HISTORY, hosts, plateau, before, what, fault=True)


def _level_at(earlier: BenchCurve, sizes_bytes: frozenset[int]) -> float | None:
    """What ``earlier`` reached at the sizes of a plateau: larger ones reach more by design.

    Without a plateau now it is its own; ``None`` where it had none, or too few of these sizes.
    """
    if earlier.plateau_busbw_gb_per_s is None or not sizes_bytes:
        return earlier.plateau_busbw_gb_per_s
    common = [rate for point, rate in rated(earlier.points) if point.size_bytes in sizes_bytes]
    return median(common) if len(common) >= LEAST_LEVEL_SIZES else None


def _judges(expected: CollectiveExpectation, plateau: Plateau | None) -> bool:
    """Whether the expectation is good for most of the sizes that the plateau is taken from."""
    if plateau is None:
        return not expected.unreliable
    good = sum(expected.judges(size) for size in plateau.sizes_bytes)
    return 2 * good > len(plateau.sizes_bytes)


def _below(
    kind: BenchFindingKind, hosts: int, plateau: Plateau, should: float, what: str, *, fault: bool
) -> BenchFinding:
    share = format_share(plateau.busbw_gb_per_s / should)
    text = (
        f"{format_count(hosts, 'host')} {'reach' if hosts > 1 else 'reaches'} "
        f"{plateau.busbw_gb_per_s:.4g} GB/s from {format_bytes(plateau.from_bytes)} on, "
        f"{share} of {should:.4g} GB/s {what}"
    )
    if not fault:
        text += "; published runs miss this expectation too"
    return BenchFinding(
        kind=kind,
        severity=BenchSeverity.FAULT if fault else BenchSeverity.NOTE,
        text=text,
        next=(
            "ncdiag sweep over the same hosts names slow links; ncdiag env audit, the settings"
            if hosts > 1
            else "ncdiag topo check, with a dump of this host, names slow links and slots"
        ),
    )


def _sizes(bad: Sequence[BenchPoint]) -> str:
    first = format_bytes(bad[0].size_bytes)
    return first if len(bad) == 1 else f"{first} and {len(bad) - 1} more sizes"


def _derivation(expected: CollectiveExpectation) -> tuple[str, ...]:
    """One line each, the bound first."""
    return (
        f"{expected.machine}: {expected.algorithm}, bound by {expected.binding}",
        *(
            f"{line.what}: {line.formula} = {line.gb_per_s:.4g} GB/s"
            for line in expected.derivation
        ),
    )
