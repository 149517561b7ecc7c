"""From runs to a curve: one point a size, medians over the repeats."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import median

from ncdiag.expect.collective import CollectiveExpectation
from ncdiag.expect.traffic import Collective, bus_factor
from ncdiag.model.bench import BenchPoint, BenchRun
from ncdiag.model.benchmark import TableRow

# A printed figure of at least this much has the digits to be checked against.
_PRECISE_GB_PER_S = 1.0
_ROUNDING = 0.05


@dataclass(slots=True)
class Looks:
    """Every measurement of one size: (time in microseconds, bus bandwidth in GB/s) by half."""

    out_of_place: list[tuple[float | None, float]] = field(default_factory=list)
    in_place: list[tuple[float | None, float]] = field(default_factory=list)
    wrong: float | None = None

    @property
    def rates(self) -> list[float]:
        """All bus bandwidths."""
        return [rate for _, rate in (*self.out_of_place, *self.in_place)]

    @property
    def better(self) -> list[tuple[float | None, float]]:
        """The half whose median is the better one."""
        halves = [half for half in (self.out_of_place, self.in_place) if half]
        return max(halves, key=lambda half: median(rate for _, rate in half), default=[])


def looks(runs: Sequence[BenchRun], collective: Collective) -> dict[int, Looks]:
    """All measurements of ``runs`` by size in bytes, the smallest first; sizes of 0 are none."""
    found: defaultdict[int, Looks] = defaultdict(Looks)
    for run in runs:
        for row in run.benchmark.rows if run.benchmark else ():
            if row.size > 0:
                _add(found[row.size], row, _factor(run, collective))
    return dict(sorted(found.items()))


def points(
    found: dict[int, Looks], factor: float | None, expected: CollectiveExpectation | None
) -> tuple[BenchPoint, ...]:
    """One point a size; ``factor`` is bus over algorithm bandwidth."""
    return tuple(_point(size, one, factor, expected) for size, one in found.items())


def factor_of(collective: Collective, ranks: int) -> float | None:
    """Bus over algorithm bandwidth; ``None`` for one rank alone, whose bus carries nothing."""
    return bus_factor(collective, ranks) if ranks > 1 else None


def _factor(run: BenchRun, collective: Collective) -> float | None:
    return factor_of(collective, len(run.hosts) * run.ranks_per_host)


def _add(one: Looks, row: TableRow, factor: float | None) -> None:
    for half, time_us, rate in (
        (one.out_of_place, row.out_of_place_time_us, row.out_of_place_busbw),
        (one.in_place, row.in_place_time_us, row.in_place_busbw),
    ):
        if rate is not None and isfinite(rate) and rate >= 0:
            half.append((time_us, _exact(row.size, time_us, rate, factor)))
    wrongs = [
        w for w in (row.out_of_place_wrong, row.in_place_wrong) if w is not None and isfinite(w)
    ]
    if wrongs:
        one.wrong = (one.wrong or 0.0) + sum(wrongs)


def _exact(size: int, time_us: float | None, printed: float, factor: float | None) -> float:
    """The rate out of size and time, which has more digits than ``0.01``, where they agree."""
    if not time_us or not isfinite(time_us) or factor is None:
        return printed
    worked_out = size / time_us / 1e3 * factor
    if printed < _PRECISE_GB_PER_S:
        return worked_out if abs(worked_out - printed) <= _ROUNDING * max(printed, 0.2) else printed
    return worked_out if abs(worked_out - printed) <= _ROUNDING * printed else printed


def _point(
    size: int, one: Looks, factor: float | None, expected: CollectiveExpectation | None
) -> BenchPoint:
    half = one.better
    rates = [rate for _, rate in half]
    times = [time for time, _ in half if time is not None and isfinite(time)]
    rate = median(rates) if rates else None
    should = None if expected is None else expected.at(size)
    return BenchPoint(
        size_bytes=size,
        time_us=median(times) if times else None,
        algbw_gb_per_s=rate / factor if rate is not None and factor else None,
        busbw_gb_per_s=rate,
        min_busbw_gb_per_s=min(rates, default=None),
        max_busbw_gb_per_s=max(rates, default=None),
        repeats=len(rates),
        wrong=None if one.wrong is None else round(one.wrong),
        expected_time_us=None if should is None else should.time_us,
        expected_busbw_gb_per_s=None if should is None else should.busbw_gb_per_s,
    )


def rated(curve: Sequence[BenchPoint]) -> Iterator[tuple[BenchPoint, float]]:
    """The points that have a bus bandwidth, with it."""
    for point in curve:
        if point.busbw_gb_per_s is not None:
            yield point, point.busbw_gb_per_s
