"""Reads many dumps in a few processes; what is read ahead of its use stays bounded."""

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TYPE_CHECKING

from ncdiag.cli.topo.reading import STDIN, read_dump
from ncdiag.model.errors import NcdiagError, UndecidedError

if TYPE_CHECKING:
    from ncdiag.health.topology.pcie_links import PcieLinks
    from ncdiag.model.topology import Topology

# Below so many, starting processes takes longer than they save.
_WORTH_IT = 400
_BATCH = 32
_AHEAD = 3
_MOST_PROCESSES = 16


def read_many(paths: Sequence[str]) -> Iterator["Topology | PcieLinks | NcdiagError"]:
    """The dump at each path, or the error it gives, in their order."""
    processes = _processes()
    if len(paths) < _WORTH_IT or processes < 2 or STDIN in paths:
        yield from map(_read, paths)
        return
    batches = iter(paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH))
    pool = ProcessPoolExecutor(processes, initializer=_leave_ending_to_the_parent)
    waiting: deque[Future[list[Topology | PcieLinks | NcdiagError]]] = deque()
    try:
        for batch in islice(batches, _AHEAD * processes):
            waiting.append(pool.submit(_read_batch, batch))
        while waiting:
            yield from waiting.popleft().result()
            waiting.extend(pool.submit(_read_batch, batch) for batch in islice(batches, 1))
    except BrokenProcessPool:
        why = "a process that read dumps was killed; was there enough memory?"
        raise UndecidedError(why) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _processes() -> int:
    return min(len(os.sched_getaffinity(0)), _MOST_PROCESSES)


def _read_batch(paths: Sequence[str]) -> "list[Topology | PcieLinks | NcdiagError]":
    return [_read(path) for path in paths]


def _read(path: str) -> "Topology | PcieLinks | NcdiagError":
    try:
        return read_dump(path)
    except NcdiagError as error:
        return error


def _leave_ending_to_the_parent() -> None:
    """An interrupt is for the process that was started; its end ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
