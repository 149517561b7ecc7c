"""One ncdiag at a time changes the isolation list.

The lock is a file beside the store, held by the kernel: it is gone with the process that held it,
however that ended. On file systems that other machines share it is a POSIX lock, which NFS and
its like carry to the other machines; a flock may stay on this one.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.text import visible
from ncdiag.store.file_systems import FileSystem, file_system_of

_MAX_BYTES: Final = 512
_RETRY_S: Final = 0.1


@contextmanager
def locked(
    store: Path,
    *,
    wait_s: float = 0.0,
    file_system: Callable[[Path], FileSystem] = file_system_of,
) -> Iterator[None]:
    """Hold the isolation list of the store at ``store``; nobody else changes it meanwhile.

    Raises :class:`UndecidedError` where another ncdiag holds it for longer than ``wait_s``.
    """
    path = store.with_name(f"{store.name}.lock")
    shared = file_system(store).shared
    handle = _open(path)
    try:
        _take(handle, path, shared=shared, wait_s=wait_s)
        _sign(handle)
        yield
    finally:
        os.close(handle)  # lets go of the lock; the file stays, or two could hold two of them


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(
            f"lock {visible(str(path))}: {error.strerror}; change who may write there, or give "
            "another --store"
        ) from error


def _take(handle: int, path: Path, *, shared: bool, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    take = fcntl.lockf if shared else fcntl.flock
    while True:
        try:
            take(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            if time.monotonic() >= deadline:
                raise UndecidedError(
                    f"another ncdiag ({_holder(handle)}) is changing the isolation list; "
                    "try again when it is done"
                ) from error
            time.sleep(_RETRY_S)
        except OSError as error:
            raise UndecidedError(
                f"lock {visible(str(path))}: its file system cannot lock files "
                f"({error.strerror}); give another --store on a local disk"
            ) from error
        else:
            return


def _sign(handle: int) -> None:
    """Say who holds the lock; whoever cannot write that holds it all the same."""
    when = datetime.now(UTC)
    text = f"pid {os.getpid()} on {socket.gethostname()}, since {when:%Y-%m-%dT%H:%M:%SZ}"
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode()[:_MAX_BYTES], 0)


def _holder(handle: int) -> str:
    with suppress(OSError):
        text = os.pread(handle, _MAX_BYTES, 0).decode(errors="replace").strip()
        if text:
            return visible(text)
    return "its process is not known"
