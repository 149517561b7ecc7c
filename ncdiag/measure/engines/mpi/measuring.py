"""What a rank does with its part of a round. Importing this starts MPI."""

import ctypes
import gc
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mpi4py

# One thread calls MPI; locks for more would cost time. How it ends is our own affair.
mpi4py.rc.thread_level = "funneled"
mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402 - it starts MPI, so what is above has to be set

from ncdiag.measure.engines.exchange import exchange, measure_half  # noqa: E402
from ncdiag.measure.engines.halves import Half  # noqa: E402
from ncdiag.measure.engines.mpi.channel import MAX_CHUNK_BYTES, MpiChannel, one_line  # noqa: E402
from ncdiag.measure.engines.mpi.memory import HostMemory, gpu_memory  # noqa: E402
from ncdiag.measure.engines.mpi.messages import Part, Ready  # noqa: E402
from ncdiag.measure.engines.mpi.place import Place  # noqa: E402

# Below this many cores a rank that polls without a pause takes what the transfer needs.
_CORES_TO_POLL = 4
_SHARED = re.compile(r"/dev/shm/mpich_shm_\w+")  # noqa: S108 - MPICH chose it
_LIBRARY = re.compile(r"\S+/libmpi[\w\-]*\.so[\w.]*")


def ready(rank: int, place: Place) -> Ready:
    """What MPI is here."""
    lines = MPI.Get_library_version().replace("\0", "").splitlines()
    library = " ".join(lines[0].replace("Version:", "").split())[:80] if lines else "MPI"
    gpu = place.gpu is not None and takes_gpu_memory()
    return Ready(rank=rank, ranks=MPI.COMM_WORLD.size, library=library, gpu=gpu)


def forget_shared_memory() -> None:
    """Remove the file that MPICH's ranks of one host share, so that none is left by a kill.

    All have it by now, and MPICH minds that it is gone no more than another rank's removing it.
    """
    MPI.COMM_WORLD.Barrier()
    for path in set(_SHARED.findall(Path("/proc/self/maps").read_text())):
        with suppress(OSError):
            Path(path).unlink()


@cache
def takes_gpu_memory() -> bool:
    """Whether this MPI says that it can send from a GPU, and torch here has one."""
    if not _says_cuda() or not find_spec("torch"):
        return False
    import torch

    return torch.cuda.is_available()


def _says_cuda() -> bool:
    """The answer of ``MPIX_Query_cuda_support``, which MPICH and Open MPI have alike."""
    # mpi4py chose the library when it was loaded, and tells nobody which.
    libraries = set(_LIBRARY.findall(Path("/proc/self/maps").read_text()))
    for library in libraries:
        try:
            return bool(ctypes.CDLL(library).MPIX_Query_cuda_support())
        except (OSError, AttributeError):
            continue
    return False


class Measurer:
    """The memory of a rank, used for pair after pair; ``while_waiting`` is called in between."""

    def __init__(self, place: Place, while_waiting: Callable[[], None]) -> None:
        # Over TCP nothing moves but in MPI's calls, an RDMA card works on its own, and quickly.
        self._nap = not place.is_rdma or len(os.sched_getaffinity(0)) < _CORES_TO_POLL
        self._while_waiting = while_waiting
        self._memory: dict[bool, Any] = {False: HostMemory(MAX_CHUNK_BYTES)}
        self._given_up: list[object] = []
        gc.freeze()

    @property
    def is_clean(self) -> bool:
        """Whether no pair left anything unfinished in MPI."""
        return not self._given_up

    def measure(self, part: Part) -> Half:
        """Do one side of a pair; whatever fails is part of the answer."""
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
        if not channel.is_clean:
            self._give_up(channel)
        return half

    def _memory_for(self, part: Part) -> Any:
        if part.gpu not in self._memory:
            self._memory[part.gpu] = gpu_memory(MAX_CHUNK_BYTES)
        return self._memory[part.gpu]

    def _give_up(self, channel: MpiChannel) -> None:
        """Leave what is unfinished its memory: MPI may write there for as long as it runs."""
        channel.close()
        self._given_up.append((channel, self._memory))
        self._memory = {False: HostMemory(MAX_CHUNK_BYTES)}


def _tag(number: int) -> int:
    """The tag of a round: what is left over from an earlier one never matches."""
    most: Any = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)
    return 1 + number % (int(most) - 1)
