"""A worker's temporary folder, removed by the worker or, if that was killed, by the next one."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "ncdiag-worker-"
_NEW_PREFIX = "ncdiag-new-"


class Scratch:
    """A folder of this process; holding its lock tells that it is in use."""

    def __init__(self) -> None:
        # Locked before it bears the name that others look for.
        new = Path(tempfile.mkdtemp(prefix=_NEW_PREFIX))
        self._lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.path = new.rename(new.with_name(new.name.replace(_NEW_PREFIX, _PREFIX, 1)))

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_stale() -> None:
    """Remove the folders of our own workers that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
