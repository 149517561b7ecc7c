"""What two ranks said of a pair becomes two measurements, or errors that say why not."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

import msgspec

from ncdiag.cluster.fleet import reasons
from ncdiag.cluster.processes import Ended
from ncdiag.measure.engines.base import Endpoint, PairOrder
from ncdiag.measure.engines.halves import CROSSED_SHARE
from ncdiag.measure.engines.nccl_tests.programs import BUILD_HINT, WRONG_DATA_CODE, why_ended
from ncdiag.measure.engines.nccl_tests.shape import WIRE_SHARE, Shape
from ncdiag.measure.nccl_tests_rank import MARK
from ncdiag.model.benchmark import Benchmark, IterationTimes, TableRow
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_share
from ncdiag.read.nccl_tests import read_report

# Launchers may put a rank or a host's name in front of each line.
_LINE: Final = re.compile(re.escape(MARK) + r" ([01]) (out|err|log|end): ?(.*)")
_MAX_ERROR = 300


class RankReport(msgspec.Struct, frozen=True):
    """What a rank's wrapper says at the end; ``error`` is why nothing was started."""

    host: str = ""
    code: int | None = None
    killed: bool = False
    seconds: float = 0.0
    idle: float | None = None
    tx_bytes: int | None = None
    rx_bytes: int | None = None
    error: str | None = None


@dataclass(slots=True)
class Heard:
    """Everything a rank said."""

    printed: list[str] = field(default_factory=list)
    complained: list[str] = field(default_factory=list)
    report: RankReport | None = None

    @property
    def runs(self) -> list[Benchmark]:
        """The tables that it printed."""
        return read_report("\n".join([*self.printed, ""]).encode(), "")


def hear(stdout: bytes) -> tuple[Heard, Heard]:
    """Sort what came out of a launcher by rank."""
    ranks = (Heard(), Heard())
    for line in stdout.decode(errors="replace").split("\n"):
        found = _LINE.search(line)
        if not found:
            continue
        rank, text = ranks[int(found[1])], found[3].rstrip("\r")
        match found[2]:
            case "out":
                rank.printed.append(text)
            case "end":
                rank.report = _report(text) or rank.report
            case _:
                rank.complained.append(text)
    return ranks


def _report(text: str) -> RankReport | None:
    try:
        return msgspec.json.decode(text, type=RankReport)
    except msgspec.MsgspecError:
        return None


def silent_hosts(order: PairOrder, ended: Ended) -> set[str]:
    """The hosts of a pair whose rank did not come to its end, or was never started."""
    ends = zip((order.first, order.second), hear(ended.stdout), strict=True)
    return {end.host for end, rank in ends if rank.report is None}


def measurements(
    order: PairOrder, ended: Ended, shape: Shape, pair_test: str, engine: str
) -> tuple[Measurement, ...]:
    """Both directions of a pair: they were measured at the same time, so they have one figure.

    In which of them data arrived wrong cannot be told either: both are damaged.
    """
    ranks = hear(ended.stdout)
    pairs = tuple(zip((order.first, order.second), ranks, strict=True))
    runs = ranks[0].runs
    wrong = next(_wrong_data(pairs, runs), None)
    error = wrong or next(_errors(pairs, runs, ended, shape.timed_bytes(pair_test)), None)
    found = [
        Measurement(
            source=source.host,
            target=target.host,
            rail=order.rail,
            round=order.round,
            purpose=order.purpose,
            engine=engine,
            error=visible(error)[:_MAX_ERROR] if error else None,
            damaged=wrong is not None,
        )
        for source, target in (
            (order.first, order.second),
            (order.second, order.first),
        )
    ]
    if error:
        return tuple(found)
    figure = _figure(runs[0], shape, pair_test)
    idle = [rank.report.idle for rank in ranks if rank.report and rank.report.idle is not None]
    return tuple(
        replace(
            one,
            bytes=shape.timed_bytes(pair_test),
            seconds=figure.seconds,
            measured_gbit_per_s=figure.gbit_per_s,
            min_gbit_per_s=figure.min_gbit_per_s,
            idle=min(idle, default=None),
        )
        for one in found
    )


_Pairs = Sequence[tuple[Endpoint, Heard]]


def _errors(
    pairs: _Pairs, runs: Sequence[Benchmark], ended: Ended, expected_bytes: int
) -> Iterator[str]:
    """Why there is no figure, the most telling reason first."""
    yield from _never_started(pairs, ended)
    yield from _without_mpi(pairs)
    for end, rank in pairs:
        if rank.report and rank.report.error:
            yield f"{end.host}: {rank.report.error}"
    yield from _failed(pairs, ended)
    if not runs or not runs[0].complete or not _rates_gbit_per_s(runs[0], 1.0):
        yield f"{pairs[0][0].host}: the program printed no whole table of results"
    elif all(row.out_of_place_wrong is None for row in runs[0].rows):
        yield f"{pairs[0][0].host}: the program did not check what arrived"
    for end, rank in pairs:
        yield from _not_crossed(end, rank.report, expected_bytes)


def _wrong_data(pairs: _Pairs, runs: Sequence[Benchmark]) -> Iterator[str]:
    """Worse than slow: a job would compute with it."""
    between = " and ".join(end.host for end, _ in pairs)
    for run in runs:
        for row in run.rows:
            wrong = max(row.out_of_place_wrong or 0, row.in_place_wrong or 0)
            if wrong:
                counted = format_count(int(wrong), "wrong element")
                yield f"wrong data between {between}: {counted} in messages of {row.size} bytes"
        if run.out_of_bounds:
            yield f"wrong data between {between}: {run.out_of_bounds} values are out of bounds"
    if any(rank.report and rank.report.code == WRONG_DATA_CODE for _, rank in pairs):
        yield f"wrong data between {between}, as the exit code says"


def _never_started(pairs: _Pairs, ended: Ended) -> Iterator[str]:
    """The launcher itself failed, or was killed before a rank could say why."""
    if any(rank.report for _, rank in pairs):
        return
    if ended.timed_out:
        yield f"timed out after {ended.seconds:.0f} s, and {_silent(pairs)} said nothing"
    elif ended.stopped:
        yield "stopped before it was done"
    elif ended.code is None:
        yield f"cannot start {ended.error}"
    else:
        yield f"not started: {reasons.why_not_started(ended.code, ended.said)}"


def _silent(pairs: _Pairs) -> str:
    return " and ".join(end.host for end, rank in pairs if not rank.report)


def _without_mpi(pairs: _Pairs) -> Iterator[str]:
    """Rank 1 prints only where the ranks know nothing of one another."""
    end, rank = pairs[1]
    if any(run.rows or run.ranks for run in rank.runs):
        yield (
            f"{end.host}: the program was built without MPI, so that each rank ran by itself: "
            f"build it with {BUILD_HINT}"
        )


def _failed(pairs: _Pairs, ended: Ended) -> Iterator[str]:
    """What the programs say of their end; a peer's end is told only after a reason of its own."""
    late = []
    for end, rank in pairs:
        if rank.report is None:
            late.append(f"{end.host} was lost: {reasons.why_lost(ended.code, ended.said)}")
        elif rank.report.killed:
            late.append(f"{end.host}: timed out: killed after {rank.report.seconds:.0f} s")
        elif why := why_ended(rank.report.code or 0, [*rank.complained, *rank.printed]):
            if (rank.report.code or 0) < 0:
                late.append(f"{end.host}: {why}")
            else:
                yield f"{end.host}: {why}"
    yield from late


def _not_crossed(end: Endpoint, report: RankReport | None, wanted: int) -> Iterator[str]:
    """Whether the NIC's own counters account for the payload, out and in."""
    if report is None or report.tx_bytes is None or report.rx_bytes is None:
        yield f"{end.host}: the counters of {end.nic.name} cannot be read"
        return
    moved = min(report.tx_bytes, report.rx_bytes)
    if moved < wanted * CROSSED_SHARE:
        yield (
            f"did not cross {end.nic.name} of {end.host}: "
            f"its counters show {format_share(moved / wanted)} of the payload"
        )


@dataclass(frozen=True, slots=True)
class _Figure:
    gbit_per_s: float
    min_gbit_per_s: float
    seconds: float


def _rates_gbit_per_s(run: Benchmark, wire_share: float) -> list[float]:
    """What crossed the NIC a second, for every size that was asked for: all of them are large.

    From times, since bandwidths are printed in hundredths of a GB/s. None at all where a time is
    none: then the table is damaged, and its other times may be as well.
    """
    times_us = [(row, time) for row in run.rows for time in _times_us(row) if time]
    if any(time < 0 for _, time in times_us):
        return []
    return [row.size * wire_share * 8e-3 / time_us for row, time_us in times_us]


def _times_us(row: TableRow) -> tuple[float | None, float | None]:
    return row.out_of_place_time_us, row.in_place_time_us


def _figure(run: Benchmark, shape: Shape, pair_test: str) -> _Figure:
    wire_share = WIRE_SHARE[pair_test]
    rates = _rates_gbit_per_s(run, wire_share)
    usual = median(rates)
    worst = min([*rates, *_slowest_gbit_per_s(run, wire_share)])
    return _Figure(usual, worst, shape.timed_bytes(pair_test) * 8e-9 / usual)


def _slowest_gbit_per_s(run: Benchmark, wire_share: float) -> Iterator[float]:
    """The rates of the slowest iterations, where the program times them one by one."""
    for row in run.rows:
        for times in _iterations(row):
            if times.max_us:
                yield row.size * wire_share * 8e-3 / times.max_us


def _iterations(row: TableRow) -> Iterator[IterationTimes]:
    for times in (row.out_of_place_iterations, row.in_place_iterations):
        if times is not None:
            yield times
