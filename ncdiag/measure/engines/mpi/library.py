"""Starts and ends MPI, tells which one it is, and leaves none of its files behind.

mpi4py's own start and end keep all other threads of Python waiting, also the one that ends this
process when the driver is gone; both can last for ever, when another rank hangs. So MPI's own
functions are called, and other threads go on meanwhile.
"""

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mpi4py

mpi4py.rc.initialize = False
mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402 - it would start MPI but for what is set above

from ncdiag.measure.engines.mpi.messages import Ready  # noqa: E402
from ncdiag.measure.engines.mpi.place import Place  # noqa: E402

_LIBRARY = re.compile(r"\S+/libmpi[\w\-]*\.so[\w.]*")
# What MPICH's ranks of one host share, and what its process manager writes down for them.
_SHARED = re.compile(r"/dev/shm/mpich_shm_\w+")  # noqa: S108 - MPICH chose it
_TOPOLOGY = re.compile(r"/tmp/hydra_hwloc_xmlfile_\w+")  # noqa: S108 - Hydra chose it
_LOOK_S = 0.002


def start() -> None:
    """Start MPI on all ranks together; raises RuntimeError."""
    # One thread calls MPI; locks for more would cost time.
    provided = ctypes.c_int()
    initialize = _function("MPI_Init_thread")
    with _forgetting_shared_memory():
        if initialize is None:
            MPI.Init_thread(MPI.THREAD_FUNNELED)
        elif code := initialize(None, None, int(MPI.THREAD_FUNNELED), ctypes.byref(provided)):
            raise RuntimeError(f"MPI_Init_thread failed with {code}")
    for communicator in (MPI.COMM_WORLD, MPI.COMM_SELF):
        communicator.Set_errhandler(MPI.ERRORS_RETURN)
    _forget_topology(os.getppid())


def finalize() -> None:
    """End MPI; waits for the other ranks."""
    function = _function("MPI_Finalize")
    if function is None:
        MPI.Finalize()
    else:
        function()


def ready(rank: int, place: Place) -> Ready:
    """What MPI is here."""
    lines = MPI.Get_library_version().replace("\0", "").splitlines()
    library = " ".join(lines[0].replace("Version:", "").split())[:80] if lines else "MPI"
    gpu = place.gpu is not None and takes_gpu_memory()
    return Ready(rank=rank, ranks=MPI.COMM_WORLD.size, library=library, gpu=gpu)


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


def _function(name: str) -> Callable[..., Any] | None:
    """A function of the very MPI that mpi4py loaded, which its own module leads to."""
    try:
        function: Callable[..., Any] = getattr(ctypes.CDLL(MPI.__file__), name)
    except (OSError, AttributeError):
        return None
    return function


@contextmanager
def _forgetting_shared_memory() -> Iterator[None]:
    """Remove the file that MPICH's ranks of one host share as soon as it is there.

    So none is left however this ends. We are the only rank that uses it, since ranks are told to
    take those beside them for strangers, and MPICH does not mind that it is gone.
    """
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            _forget_shared_memory()

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield
    finally:
        over.set()
        looker.join()
        _forget_shared_memory()


def _forget_shared_memory() -> None:
    with suppress(OSError):
        for path in set(_SHARED.findall(Path("/proc/self/maps").read_text())):
            Path(path).unlink()


def _forget_topology(parent: int) -> None:
    """Remove the file that Hydra holds open for this rank alone, which has read it by now.

    Hydra itself only removes it where all ends well.
    """
    with suppress(OSError):
        for opened in Path(f"/proc/{parent}/fd").iterdir():
            with suppress(OSError):
                if _TOPOLOGY.fullmatch(str(path := opened.readlink())):
                    path.unlink()
