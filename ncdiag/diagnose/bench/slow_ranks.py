"""Processes that take longer than the others in nearly every iteration."""

from collections.abc import Iterator, Sequence

import numpy as np

from ncdiag.diagnose.bench.thresholds import (
    LEAST_ITERATIONS,
    MOST_SLOW_RANKS,
    SLOW_RANK_RATIO,
    SLOW_RANK_WINDOWS,
)
from ncdiag.diagnose.stragglers import Settings, find_stragglers
from ncdiag.diagnose.stragglers.find import LEAST_RANKS
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchRun, BenchSeverity
from ncdiag.model.benchmark import IterationTimes
from ncdiag.model.straggler import IterationTable, TimeKind
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
    table = _table(runs, from_bytes)
    if table is None:
        return []
    found = find_stragglers(table, TimeKind.COMPUTE, Settings(least_slower=SLOW_RANK_RATIO - 1))
    slow = [one for one in found.slow if one.windows >= SLOW_RANK_WINDOWS * one.windows_total]
    if len(slow) > max(1, MOST_SLOW_RANKS * len(table.ranks)):
        return []
    return [_finding(runs[0], one.rank, one.ratio, len(table.ranks)) for one in slow]


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


def _table(runs: Sequence[BenchRun], from_bytes: int) -> IterationTable | None:
    """All iterations with a time of each process; ``None`` where too few have."""
    each = [times.process_max_us for run in runs for times in _iterations(run, from_bytes)]
    processes = max(map(len, each), default=0)
    rows = [
        at_once
        for its in each
        if len(its) == processes and len(set(map(len, its))) == 1
        for at_once in zip(*its, strict=True)
    ]
    if processes < LEAST_RANKS or len(rows) < LEAST_ITERATIONS:
        return None
    return IterationTable(ranks=tuple(range(processes)), seconds=np.array(rows) * 1e-6)


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
