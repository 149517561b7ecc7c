"""Which rank a process is, and where, as far as lines prove it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from ncdiag.model.log import LogEvidence, NcclProcess

Key = TypeVar("Key")


def world_rank(process: NcclProcess) -> int | None:
    """The rank of a process whose only communicator was not split from another."""
    known = {
        (c.rank, c.ranks) for c in process.communicators if c.parent is None and c.rank is not None
    }
    return next(iter(known))[0] if len(known) == 1 else None


def hosts_of_ranks(evidence: LogEvidence) -> dict[int, str]:
    """The host of each rank; a rank that two hosts claim, as of two runs, has none."""
    return _undisputed(_ranks(evidence))


def hosts_of_labels(evidence: LogEvidence) -> dict[tuple[str, str], str]:
    """The host of each stream of mpirun's (``1,5``) in each input, if one host only speaks there.

    The labels of other launchers are numbers of one host's processes, or count lines.
    """
    return _undisputed(
        ((process.first.path, label), process.host)
        for process in evidence.processes
        if process.first and "," in (label := process.speaker.label or "")
    )


def _undisputed(claims: Iterable[tuple[Key, str]]) -> dict[Key, str]:
    """The host of each key that one host only claims."""
    claimed: dict[Key, set[str]] = {}
    for key, host in claims:
        claimed.setdefault(key, set()).add(host)
    return {key: next(iter(hosts)) for key, hosts in claimed.items() if len(hosts) == 1}


def _ranks(evidence: LogEvidence) -> Iterator[tuple[int, str]]:
    for process in evidence.processes:
        rank = world_rank(process)
        if rank is not None:
            yield rank, process.host
    for benchmark in evidence.benchmarks:
        yield from ((entry.rank, entry.host) for entry in benchmark.ranks)
