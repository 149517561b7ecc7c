"""Results of other tools become the record of a sweep, or the runs of benchmarks."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from statistics import median

from ncdiag.cluster.names import check_target
from ncdiag.expect.traffic import Collective
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.imported_alike import comparable
from ncdiag.measure.imported_names import hosts_of
from ncdiag.measure.journal import IMPORTED, HostState, Line, Plan, RunEnd
from ncdiag.measure.plausible import MAX_RAILS
from ncdiag.measure.record import SweepRecord
from ncdiag.measure.second_hand import UNKNOWN_NIC
from ncdiag.model.bench import BenchRun
from ncdiag.model.benchmark import Benchmark
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host, HostFacts, Nic, NicKind
from ncdiag.model.imported import ForeignResults, PairFigure
from ncdiag.model.measurement import Measurement, Purpose
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_rate, format_share
from ncdiag.model.verdict import Culprit

LAUNCHER = "import"
UNKNOWN_HOST = "unknown"
# More than this over a NIC's own rate is no noise: more than one NIC took part.
_ABOVE_RATE = 1.1
_GBIT = 8.0
# Notes, and suspects, that still fit a screen with the verdict; what else there is is counted.
_SHOWN = 8
_SWEEP = re.compile(r"ncdiag sweep --nodes \S+")
_AGAIN = "imported: nothing was measured again, so contention could not be excluded"
_ALONE = f"{_AGAIN}; ncdiag sweep --nodes measures suspects alone"
_TOGETHER = (
    "imported: pairs were measured while others were, so what is slow may be contention: nobody "
    "is accused or isolated for it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all records of one import share; ``started`` is UTC in ISO 8601 ending in ``Z``."""

    started: str
    faulty_below: float
    versions: dict[str, str]
    files: int


def split_runs(results: Sequence[ForeignResults]) -> list[ForeignResults]:
    """``results`` with benchmarks of two hosts each as figures of pairs, if that is what they are.

    That is so where all runs are of two hosts, of more than one pair. Raises :class:`UsageError`
    where such runs do not compare.
    """
    runs = [run for one in results for run in one.benchmarks]
    pairs = {frozenset(hosts_of(run)) for run in runs}
    if len(pairs) < 2 or any(len(pair) != 2 for pair in pairs):
        return list(results)
    kinds = Counter(f"{run.test or 'a test'} on {_ranks(run)} ranks" for run in runs)
    if len(kinds) > 1:
        told = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common(3))
        raise UsageError(
            f"runs between pairs of hosts that do not compare: {told}; import each kind by itself"
        )
    return [_as_pairs(one) if one.benchmarks else one for one in results]


def _as_pairs(results: ForeignResults) -> ForeignResults:
    made = replace(results, benchmarks=[], pairs=[], notes=list(results.notes))
    for run in results.benchmarks:
        first, second = hosts_of(run)
        figure, size = _best(run)
        wrong = bool(run.out_of_bounds) or any(
            row.out_of_place_wrong or row.in_place_wrong for row in run.rows
        )
        error = "wrong data arrived" if wrong else None if figure else "it has no result"
        for source, target in ((first, second), (second, first)):
            made.pairs.append(
                PairFigure(
                    source=source,
                    target=target,
                    gbit_per_s=None if error else figure,
                    size_bytes=size,
                    largest_bytes=max((row.size for row in run.rows), default=None),
                    error=error,
                    damaged=wrong,
                )
            )
        if wrong:
            made.notes.append(f"{first} and {second}: wrong data arrived, which is worse than slow")
    ends = (end for pair in made.pairs for end in (pair.source, pair.target))
    made.endpoints = list(dict.fromkeys(ends))
    return made


def _best(run: Benchmark) -> tuple[float | None, int | None]:
    """The largest bus bandwidth in Gbit/s, and its size: that of large messages."""
    rates = [
        (rate * _GBIT, row.size)
        for row in run.rows
        for rate in (row.out_of_place_busbw, row.in_place_busbw)
        if rate
    ]
    return max(rates, default=(None, None))


def _ranks(run: Benchmark) -> int:
    return run.expected_ranks or len(run.ranks)


def bench_runs(
    results: Iterable[ForeignResults], collective: Collective | None
) -> dict[Collective, list[BenchRun]]:
    """Runs by what they measured; ``collective`` is what those measured that do not tell.

    Raises :class:`UsageError` where none says.
    """
    found: dict[Collective, list[BenchRun]] = {}
    for one in results:
        for run in one.benchmarks:
            known = _collective(run.test) or collective
            if known is None:
                said = f" ({visible(run.test)})" if run.test else ""
                raise UsageError(
                    f"{visible(one.path)}: it does not say which collective it measured{said}; "
                    "give --collective all_reduce, or whatever it was"
                )
            hosts = hosts_of(run) or (UNKNOWN_HOST,)
            found.setdefault(known, []).append(
                BenchRun(
                    hosts=hosts,
                    ranks_per_host=max(1, _ranks(run) // len(hosts)),
                    benchmark=run,
                    error=_why_cut(run),
                )
            )
    return found


def _collective(test: str | None) -> Collective | None:
    name = PurePath(test or "").name.partition("_perf")[0]
    if name == "alltoallv":
        return Collective.ALLTOALL
    return next((one for one in Collective if one.value == name), None)


def _why_cut(run: Benchmark) -> str | None:
    if run.failed is not None:
        return "it ended in an error"
    return None if run.complete else "its output ends too early"


def sweep_lines(
    results: Sequence[ForeignResults], hosts: Sequence[Host], setting: Setting
) -> list[Line]:
    """The journal of a sweep out of all figures of pairs; ``hosts`` say rates and leaves.

    Raises :class:`UsageError` for figures that do not go together.
    """
    told = [one for one in results if one.pairs]
    _check_together(told)
    inside = _inside(told)
    placed = [_placed(pair, one, inside) for one in told for pair in one.pairs]
    pairs = comparable(placed, setting.faulty_below)
    names = list(dict.fromkeys(end for pair in pairs for end in (pair.source, pair.target)))
    if len(names) < 2:
        raise UsageError("the figures are of fewer than two hosts: there is no link to judge")
    chosen, notes = _hosts(names, hosts, pairs, told, inside)
    plan = _plan(told, chosen, inside, notes, setting)
    states = [HostState(name=host.name, facts=_facts(host, plan.engine)) for host in chosen]
    end = RunEnd(seconds=0.0)
    together = any(one.together for one in told)
    if together:
        slow = [pair for pair in pairs if not pair.damaged]  # damage is proven without this
        quiet = [_measured(pair, Purpose.QUIET, plan.engine) for pair in slow]
        suspected = SweepRecord.of([plan, *states, *quiet, end]).report().diagnosis.culprits
        plan = replace(plan, notes=(*map(_suspicion, suspected[:_SHOWN]), *plan.notes))
    purpose = Purpose.ROUND if together else Purpose.QUIET
    return [plan, *states, *(_measured(pair, purpose, plan.engine) for pair in pairs), end]


def _plan(
    told: Sequence[ForeignResults],
    hosts: Sequence[Host],
    inside: str | None,
    notes: Sequence[str],
    setting: Setting,
) -> Plan:
    """What a sweep would have planned that measured ``told``."""
    together = any(one.together for one in told)
    return Plan(
        started=setting.started,
        hosts=tuple(hosts),
        mode=IMPORTED,
        engine=told[0].format,
        launcher=LAUNCHER,
        seed=0,
        faulty_below=setting.faulty_below,
        timing=Timing(warmup_s=0.0, measure_s=0.0),
        versions=setting.versions,
        settings={
            "faulty below": f"{setting.faulty_below:g} of the yardstick",
            "imported": f"{format_count(setting.files, 'file')} of {told[0].format}",
        },
        notes=(
            _TOGETHER if together else _ALONE if inside is None else _AGAIN,
            *notes,
            *_notes(told),
        ),
        cut=any(one.cut or one.failed for one in told),
        inside=inside,
    )


def _check_together(told: Sequence[ForeignResults]) -> None:
    formats = Counter(one.format for one in told)
    if len(formats) > 1:
        counted = ", ".join(f"{name} ({format_count(n, 'file')})" for name, n in formats.items())
        raise UsageError(
            f"figures of several tools, which do not compare: {counted}; import each by itself"
        )
    for one in told:
        if one.unnamed:
            path = visible(one.path)
            raise UsageError(
                f"{path}: it does not name its hosts; write HOST,HOST={path}, the sending one "
                "first, or give --hosts with a file's name that holds both"
            )


def _inside(told: Sequence[ForeignResults]) -> str | None:
    """The host whose devices were measured, several as a node set; ``None`` for hosts."""
    if all(one.inside is None for one in told):
        return None
    names = [one.inside or "" for one in told]
    if len(told) > 1 and (len(set(names)) < len(names) or "" in names):
        path = visible(told[0].path)
        raise UsageError(f"several files about the inside of hosts; say whose each is: HOST={path}")
    return fold(names) if len(names) > 1 else names[0]


def _placed(pair: PairFigure, one: ForeignResults, inside: str | None) -> PairFigure:
    """A pair of devices with the host they are in."""
    if inside is None or not one.inside:
        return pair
    source, target = (
        end if ":" in end else f"{one.inside}:{end}" for end in (pair.source, pair.target)
    )
    return replace(pair, source=source, target=target)


def _hosts(
    names: Sequence[str],
    hosts: Sequence[Host],
    pairs: Sequence[PairFigure],
    told: Sequence[ForeignResults],
    inside: str | None,
) -> tuple[list[Host], list[str]]:
    """The hosts that were measured, those of the hosts file first and in its order, and notes."""
    if inside is not None:
        return [Host(name=name, address=name) for name in names], []
    for name in names:
        check_target(name)  # lists of hosts are made of these
    known = {host.name: host for host in hosts}
    listed = [host for host in hosts if host.name in set(names)]
    others = [name for name in names if name not in known]
    if hosts and not listed:
        raise UsageError(
            f"--hosts: none of its hosts is in the results, which name {_some(names)}; "
            "address= in the hosts file says what they are called there"
        )
    notes = []
    if hosts and others:
        notes.append(f"not in --hosts, so without rate and leaf: {_some(others)}")
    absent = [host.name for host in hosts if host.name not in set(names)]
    if absent:
        notes.append(f"in --hosts, but not in the results: {_some(absent)}")
    chosen = listed + [Host(name=name, address=name) for name in others]
    why = _no_rate(chosen, pairs, told)
    if why:
        notes.append(why)
        chosen = [replace(host, rate_gbit_per_s=None, uplink_gbit_per_s=None) for host in chosen]
    return chosen, notes


def _no_rate(
    hosts: Sequence[Host], pairs: Sequence[PairFigure], told: Sequence[ForeignResults]
) -> str | None:
    """Why ``rate=`` is no yardstick for these figures, if so."""
    rates = [host.rate_gbit_per_s for host in hosts if host.rate_gbit_per_s is not None]
    figures = [pair.gbit_per_s for pair in pairs if pair.gbit_per_s is not None]
    if not rates or not figures:
        return None
    if any(one.sums for one in told):
        return "rate= was not used: a figure may be the sum of both directions"
    if median(figures) > _ABOVE_RATE * median(rates):
        return (
            f"rate= was not used: a figure of {format_rate(median(figures))} is more than one NIC "
            f"of {format_rate(median(rates))} carries"
        )
    return None


def _some(names: Sequence[str]) -> str:
    return visible(fold(names))[:200]


def _notes(told: Sequence[ForeignResults]) -> list[str]:
    several = len(told) > 1
    notes = []
    for one in told:
        where = f"{visible(PurePath(one.path).name)}: " if several else ""
        notes += [f"{where}{note}" for note in one.notes]
        if one.cut:
            notes.append(f"{visible(PurePath(one.path).name)} is cut short: what it has was used")
    kept = list(dict.fromkeys(notes))
    more = [f"and {len(kept) - _SHOWN} more notes of its files"] if len(kept) > _SHOWN else []
    return kept[:_SHOWN] + more


def _facts(host: Host, engine: str) -> HostFacts:
    """One NIC for all there is to know, so that ``rate=`` of the hosts file is its rate."""
    name = host.nics[0] if host.nics else UNKNOWN_NIC
    rdma = name if engine == "perftest" else None
    return HostFacts(hostname=host.name, nics=(Nic(name=name, kind=NicKind.ETHERNET, hca=rdma),))


def _measured(pair: PairFigure, purpose: Purpose, engine: str) -> Measurement:
    figure = pair.gbit_per_s
    return Measurement(
        source=pair.source,
        target=pair.target,
        rail=min(max(pair.rail, 0), MAX_RAILS - 1),
        round=0,
        purpose=purpose,
        engine=engine,
        measured_gbit_per_s=figure,
        min_gbit_per_s=None if figure is None else pair.min_gbit_per_s,
        error=None if figure is not None else pair.error or "it has no figure",
        damaged=pair.damaged,
    )


def _suspicion(one: Culprit) -> str:
    name = one.name if one.name == one.kind else f"{one.kind} {one.name}"
    again = _SWEEP.search(one.next)
    how = f"; measure it alone: {again[0]}" if again else ""
    links = format_count(one.explains, "slow link")
    return (
        f"suspect, not proven: {name} at {format_share(one.efficiency)} ({links}, "
        f"{one.contradicts} fast ones against it){how}"
    )
