"""Each collective in torch: its buffers, how it is called, and what must arrive.

Every rank sends numbers that say where they are from: a pattern over the place in the buffer, plus
the rank. All stay small enough for float32 to be exact, sums over thousands of ranks too.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import distributed

from ncdiag.expect.traffic import Collective

_PATTERN = 251  # a prime, so that no row of memory looks like the next
_ROOT = 0
_TAG = 0
_BYTES = 4


class Operation(ABC):
    """One collective on one rank, with messages of one size.

    ``group`` is a process group of torch: its methods are called directly, since a host may have
    no address that the module's own set-up would find.
    """

    parted: ClassVar[bool] = False
    """Whether the size is that of all ranks together."""

    def __init__(
        self, group: Any, rank: int, ranks: int, size_bytes: int, device: torch.device
    ) -> None:
        self.group, self.rank, self.ranks, self.device = group, rank, ranks, device
        each = size_bytes // _BYTES // (ranks if self.parted else 1)
        self.part = max(1, each)
        self.size_bytes = self.part * _BYTES * (ranks if self.parted else 1)
        self.prepare()

    def numbers(self, length: int, plus: float, start: int = 0, *, times: int = 1) -> torch.Tensor:
        """The pattern from ``start`` on, so many times, plus a number; takes no memory besides."""
        pattern = torch.arange(_PATTERN, dtype=torch.float32, device=self.device) * times + plus
        offset = start % _PATTERN
        return pattern.repeat(-(-(offset + length) // _PATTERN))[offset : offset + length]

    def sums(self, length: int, start: int = 0) -> torch.Tensor:
        """What all ranks' numbers add up to."""
        of_ranks = self.ranks * (self.ranks - 1) / 2
        return self.numbers(length, of_ranks, start, times=self.ranks)

    @abstractmethod
    def prepare(self) -> None:
        """Make the buffers."""

    def fill(self) -> None:
        """Put into the buffers what a check needs, where one run of it spoils them."""
        return

    @abstractmethod
    def begin(self) -> list[Any]:
        """Start it; what is returned is to be waited for."""

    @abstractmethod
    def wrong(self) -> int:
        """How many of the elements that arrived are not what was sent."""


def _differing(found: torch.Tensor, wanted: torch.Tensor) -> int:
    return int((found != wanted).sum().item())


class _AllReduce(Operation):
    def prepare(self) -> None:
        self.data = torch.empty(self.part, device=self.device)

    def fill(self) -> None:
        self.data.copy_(self.numbers(self.part, self.rank))

    def begin(self) -> list[Any]:
        return [self.group.allreduce([self.data])]

    def wrong(self) -> int:
        return _differing(self.data, self.sums(self.part))


class _Reduce(_AllReduce):
    def begin(self) -> list[Any]:
        options = distributed.ReduceOptions()
        options.rootRank = _ROOT
        return [self.group.reduce([self.data], options)]

    def wrong(self) -> int:
        return super().wrong() if self.rank == _ROOT else 0


class _Broadcast(_AllReduce):
    def begin(self) -> list[Any]:
        return [self.group.broadcast(self.data, _ROOT)]

    def wrong(self) -> int:
        return _differing(self.data, self.numbers(self.part, _ROOT))


class _AllGather(Operation):
    parted = True

    def prepare(self) -> None:
        self.own = self.numbers(self.part, self.rank)
        self.all = torch.empty(self.part * self.ranks, device=self.device)

    def begin(self) -> list[Any]:
        return [self.group.allgather([list(self.all.chunk(self.ranks))], [self.own])]

    def wrong(self) -> int:
        parts = enumerate(self.all.chunk(self.ranks))
        return sum(_differing(part, self.numbers(self.part, rank)) for rank, part in parts)


class _ReduceScatter(Operation):
    parted = True

    def prepare(self) -> None:
        self.all = self.numbers(self.part * self.ranks, self.rank)
        self.own = torch.empty(self.part, device=self.device)

    def begin(self) -> list[Any]:
        return [self.group.reduce_scatter([self.own], [list(self.all.chunk(self.ranks))])]

    def wrong(self) -> int:
        return _differing(self.own, self.sums(self.part, self.rank * self.part))


class _AllToAll(Operation):
    parted = True

    def prepare(self) -> None:
        self.sent = self.numbers(self.part * self.ranks, self.rank)
        self.received = torch.empty(self.part * self.ranks, device=self.device)

    def begin(self) -> list[Any]:
        return [self.group.alltoall_base(self.received, self.sent, [], [])]

    def wrong(self) -> int:
        mine = self.rank * self.part
        parts = enumerate(self.received.chunk(self.ranks))
        return sum(_differing(part, self.numbers(self.part, rank, mine)) for rank, part in parts)


class _Gather(_AllGather):
    def begin(self) -> list[Any]:
        options = distributed.GatherOptions()
        options.rootRank = _ROOT
        outputs = [list(self.all.chunk(self.ranks))] if self.rank == _ROOT else []
        return [self.group.gather(outputs, [self.own], options)]

    def wrong(self) -> int:
        return super().wrong() if self.rank == _ROOT else 0


class _Scatter(_ReduceScatter):
    def begin(self) -> list[Any]:
        options = distributed.ScatterOptions()
        options.rootRank = _ROOT
        inputs = [list(self.all.chunk(self.ranks))] if self.rank == _ROOT else []
        return [self.group.scatter([self.own], inputs, options)]

    def wrong(self) -> int:
        return _differing(self.own, self.numbers(self.part, _ROOT, self.rank * self.part))


class _SendReceive(Operation):
    def prepare(self) -> None:
        self.sent = self.numbers(self.part, self.rank)
        self.received = torch.empty(self.part, device=self.device)

    def begin(self) -> list[Any]:
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        together = self.device.type == "cuda"
        if together:  # one after the other, both would wait for the peer's receive
            self.group._start_coalescing(self.device)  # noqa: SLF001 - no public name exists
        works = [
            self.group.send([self.sent], after, _TAG),
            self.group.recv([self.received], before, _TAG),
        ]
        if together:
            works = [self.group._end_coalescing(self.device)]  # noqa: SLF001
        return works

    def wrong(self) -> int:
        return _differing(self.received, self.numbers(self.part, (self.rank - 1) % self.ranks))


OPERATIONS: dict[Collective, type[Operation]] = {
    Collective.ALL_REDUCE: _AllReduce,
    Collective.ALL_GATHER: _AllGather,
    Collective.REDUCE_SCATTER: _ReduceScatter,
    Collective.BROADCAST: _Broadcast,
    Collective.REDUCE: _Reduce,
    Collective.ALLTOALL: _AllToAll,
    Collective.GATHER: _Gather,
    Collective.SCATTER: _Scatter,
    Collective.SENDRECV: _SendReceive,
}
