"""What a rank does with its part of a round."""

import gc
import os
import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from ncdiag.measure.engines.exchange import exchange, measure_half
from ncdiag.measure.engines.halves import Blame, Failure, Half
from ncdiag.measure.engines.mpi.channel import MAX_CHUNK_BYTES, MpiChannel, one_line
from ncdiag.measure.engines.mpi.memory import HostMemory, gpu_memory
from ncdiag.measure.engines.mpi.messages import Part
from ncdiag.measure.engines.mpi.place import Place

# Below this many cores a rank that polls without a pause takes what the transfer needs.
_CORES_TO_POLL = 4
# The most that may be held for transfers that never end: a sweep goes on where links are dead.
_MAX_HELD_BYTES = 32 * MAX_CHUNK_BYTES
_TOO_MUCH_HELD = (
    f"{_MAX_HELD_BYTES >> 20} MiB are held there for transfers that never ended; "
    "--resume goes on without them"
)


class Measurer:
    """The memory of a rank, used for pair after pair; ``while_waiting`` is called in between."""

    def __init__(self, place: Place, while_waiting: Callable[[], None]) -> None:
        # Over TCP nothing moves but in MPI's calls, an RDMA card works on its own, and quickly.
        self._nap = not place.is_rdma or len(os.sched_getaffinity(0)) < _CORES_TO_POLL
        self._while_waiting = while_waiting
        self._memory: dict[bool, Any] = {False: HostMemory(MAX_CHUNK_BYTES)}
        self._given_up: list[MpiChannel] = []
        gc.freeze()

    @property
    def is_clean(self) -> bool:
        """Whether no pair left anything unfinished in MPI."""
        return not self._held()

    def _held(self) -> list[Any]:
        """The chunks that MPI may read or write for as long as it runs."""
        self._given_up = [channel for channel in self._given_up if channel.unfinished()]
        return [chunk for channel in self._given_up for chunk in channel.unfinished()]

    def measure(self, part: Part) -> Half:
        """Do one side of a pair; whatever fails is part of the answer."""
        if sum(int(chunk.nbytes) for chunk in self._held()) > _MAX_HELD_BYTES:
            return Half(failure=Failure(Blame.LOCAL, _TOO_MUCH_HELD))
        end_s = time.monotonic() + part.deadline_s
        channel = MpiChannel(
            part.peer,
            _tag(part.number),
            end_s=end_s,
            nap=self._nap,
            between=self._while_waiting,
        )

        def transfer(half: Half) -> None:
            exchange(channel, self._memory_for(part), part.timing, half, first=part.first)

        half = measure_half(part.nic, transfer, one_line)
        self._give_up(channel)
        return half

    def _memory_for(self, part: Part) -> Any:
        if part.gpu not in self._memory:
            self._memory[part.gpu] = gpu_memory(MAX_CHUNK_BYTES)
        return self._memory[part.gpu]

    def _give_up(self, channel: MpiChannel) -> None:
        """Leave what is unfinished its memory, and no more than that."""
        channel.close()
        if chunks := channel.unfinished():
            self._given_up.append(channel)
            self._memory[False].give_up(chunks)
            self._memory.pop(True, None)


def _tag(number: int) -> int:
    """The tag of a round: what is left over from an earlier one never matches."""
    most: Any = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)
    return 1 + number % (int(most) - 1)
