"""Puts one file in the place of another: whoever reads meanwhile sees the old one whole."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE
from typing import BinaryIO, Final

# Nobody's file, pipe or link is written into, whoever may make some in that folder.
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    """A file to write into, which takes the place of ``path`` unless something is raised.

    It has the owner and the mode of the ``old`` one, where it may have them, before there is
    anything in it to be read.
    """
    name = f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    unfinished = path.with_name(name)
    handle = os.open(unfinished, _NEW, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if old is not None:
                with suppress(OSError):  # not ours to give away
                    os.fchown(handle, old.st_uid, old.st_gid)
                with suppress(OSError):  # where the mount says it for all files
                    os.fchmod(handle, S_IMODE(old.st_mode))
            yield file
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
