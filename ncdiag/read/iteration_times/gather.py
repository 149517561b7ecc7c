"""Puts single times together into a table of ranks and iterations."""

from array import array
from typing import Final

import numpy as np

from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import IterationTable

# 20 bytes each; 16,384 ranks over 1,200 iterations.
MAX_TIMES: Final = 20_000_000
# 8 bytes each, most of them empty where there are so many more cells than times.
MAX_CELLS: Final = 60_000_000
_MAX_NAMES: Final = 1_000_000


class Room:
    """How much is held already of all that is read, in however many gatherings."""

    def __init__(self) -> None:
        self.times = 0
        self.names = 0


class Gathering:
    """Times of one job, in any order; of the same rank and iteration the last counts."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ranks = array("q")
        self._iterations = array("q")
        self._seconds = array("d")
        self.hosts: dict[int, str] = {}
        self.places: dict[int, str] = {}
        self.groups: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._seconds)

    def add(self, rank: int, iteration: int, seconds: float) -> None:
        """Keep one time; raises :class:`UsageError` where there are too many."""
        if self._room.times >= MAX_TIMES:
            raise UsageError(
                f"more than {MAX_TIMES:,} times; give a part of them, such as the last iterations"
            )
        self._room.times += 1
        self._ranks.append(rank)
        self._iterations.append(iteration)
        self._seconds.append(seconds)

    def place(self, rank: int, host: str | None, gpu: str | None, group: str | None) -> None:
        """Where a rank runs, and whom it is like."""
        if rank not in self.hosts:
            if self._room.names >= _MAX_NAMES:
                return
            self._room.names += bool(host)
        if host:
            self.hosts[rank] = host
            self.places[rank] = f"{host} gpu{gpu}" if gpu else host
        if group:
            self.groups[rank] = group

    def table(self, source: str, notes: tuple[str, ...] = ()) -> IterationTable:
        """All times in one table; raises :class:`UsageError` where it would be too large."""
        ranks, columns = np.unique(np.array(self._ranks, np.int64), return_inverse=True)
        iterations, rows = np.unique(np.array(self._iterations, np.int64), return_inverse=True)
        if len(ranks) * len(iterations) > MAX_CELLS:
            raise UsageError(
                f"{len(ranks):,} ranks times {len(iterations):,} iterations are too many; give a "
                "part of them, such as the last iterations"
            )
        seconds = np.full((len(iterations), len(ranks)), np.nan)
        seconds[rows, columns] = np.array(self._seconds)
        filled = int(np.isfinite(seconds).sum())
        if filled < len(self):
            notes = (*notes, f"{len(self) - filled:,} times stand there twice; the last counts")
        return IterationTable(
            ranks=tuple(ranks.tolist()),
            seconds=seconds,
            iterations=tuple(iterations.tolist()),
            hosts=self.hosts,
            places=self.places,
            groups=self.groups,
            source=source,
            notes=notes,
        )
