"""Processes that take longer than the others in nearly every iteration."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median, median_low

from ncdiag.diagnose.bench.thresholds import (
    LEAST_ITERATIONS,
    MOST_SLOW_RANKS,
    SLOW_RANK_ITERATIONS,
    SLOW_RANK_RATIO,
)
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchRun, BenchSeverity
from ncdiag.model.benchmark import IterationTimes
from ncdiag.model.units import format_share

# In the others a root does less, or ends earlier, than the rest by design.
SYMMETRIC = frozenset(
    {
        Collective.ALL_REDUCE,
        Collective.ALL_GATHER,
        Collective.REDUCE_SCATTER,
        Collective.ALLTOALL,
    }
)


def find_slow_ranks(
    runs: Sequence[BenchRun], collective: Collective, from_bytes: int
) -> list[BenchFinding]:
    """A fault for each process that is slower than the others at sizes from ``from_bytes`` on.

    Iterations are compared with each other across processes, so that one that is slow for all
    blames nobody. Runs must be over the same hosts.
    """
    if not _symmetric(runs, collective):
        return []
    ratios: defaultdict[int, list[float]] = defaultdict(list)
    for run in runs:
        for times in _iterations(run, from_bytes):
            for process, its in enumerate(_ratios(times)):
                ratios[process].extend(its)
    slow = {
        process: median(its)
        for process, its in ratios.items()
        if len(its) >= LEAST_ITERATIONS and _is_slow(its)
    }
    if not slow or len(slow) > max(1, MOST_SLOW_RANKS * len(ratios)):
        return []
    return [
        _finding(runs[0], process, ratio, len(ratios))
        for process, ratio in sorted(slow.items(), key=lambda one: -one[1])
    ]


def _symmetric(runs: Sequence[BenchRun], collective: Collective) -> bool:
    """Whether all ranks do the same: in sendrecv, the last of a host has a neighbour elsewhere."""
    if collective is Collective.SENDRECV:
        return all(run.ranks_per_host == 1 or len(run.hosts) == 1 for run in runs)
    return collective in SYMMETRIC


def _iterations(run: BenchRun, from_bytes: int) -> Iterator[IterationTimes]:
    for row in run.benchmark.rows if run.benchmark else ():
        if row.size >= from_bytes:
            halves = (row.out_of_place_iterations, row.in_place_iterations)
            yield from (half for half in halves if half is not None)


def _ratios(times: IterationTimes) -> list[list[float]]:
    """Of each process, its times over those of the others in the same iteration."""
    processes = times.process_max_us
    if len(processes) < 2 or len(set(map(len, processes))) != 1:
        return []
    usual = [median_low(at_once) for at_once in zip(*processes, strict=True)]
    return [
        [time / other for time, other in zip(own, usual, strict=True) if other > 0]
        for own in processes
    ]


def _is_slow(ratios: Sequence[float]) -> bool:
    slower = sum(ratio > (1 + SLOW_RANK_RATIO) / 2 for ratio in ratios)
    return median(ratios) > SLOW_RANK_RATIO and slower >= SLOW_RANK_ITERATIONS * len(ratios)


def _finding(run: BenchRun, process: int, ratio: float, processes: int) -> BenchFinding:
    """A process has all ranks of a host, or one of them."""
    per_host = max(1, processes // len(run.hosts))
    place = process // per_host
    host = run.hosts[place] if place < len(run.hosts) else None
    own = run.hosts.index(host) * per_host if host is not None else 0
    gpu = f", its GPU {process - own}" if per_host > 1 and host is not None else ""
    more = format_share(ratio - 1)
    return BenchFinding(
        kind=BenchFindingKind.SLOW_RANK,
        severity=BenchSeverity.FAULT,
        text=(
            f"rank {process} on {host or 'an unknown host'}{gpu} takes {more} longer than the "
            "others in nearly every iteration"
        ),
        next="measure its links: ncdiag sweep over the same hosts",
        rank=process,
        host=host,
    )
