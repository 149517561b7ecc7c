"""Where the facts of a host are read: this host, live, or a folder that was recorded of one.

Nothing is read outside a recorded folder, only regular files are read, and only so much of them:
a FIFO, a device or a file of gigabytes in place of a small file is as good as none.
"""

import os
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from ncdiag.health.topology import programs
from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.text import visible

# What one file of sysfs holds is at most a page, and so are those of procfs but for a few tables.
PAGE_BYTES: Final = 4096
# Where a recorded folder keeps what programs printed.
RECORDED: Final = "recorded"
# More entries than any folder of sysfs or procfs that is looked at has.
_MOST_ENTRIES: Final = 65_536
# A name below the root that nothing has: where a path would lead out of it.
_OUTSIDE: Final = "\x01outside"
_PLAYED: Final = (b"!hung", b"!denied", b"!failed")
_LONGEST_PLAYED: Final = 512
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotRegularError(OSError):
    """Something that is no regular file stands where one should be."""


@dataclass(frozen=True, slots=True)
class HostRoot:
    """The folder that facts are read from; ``/`` is this host itself."""

    root: Path = Path("/")

    @property
    def live(self) -> bool:
        """Whether this host itself is asked."""
        return self.root == Path("/")

    def path(self, absolute: str) -> Path:
        """Where ``absolute`` is, below the root: what would lead out of it is not there."""
        if self.live:
            return Path(absolute)
        top = os.path.realpath(self.root)
        try:
            found = os.path.realpath(os.path.join(top, absolute.lstrip("/")))  # noqa: PTH118
        except (OSError, ValueError):
            return Path(top, _OUTSIDE)
        inside = found == top or found.startswith(top.rstrip("/") + "/")
        return Path(found) if inside else Path(top, _OUTSIDE)

    def read(self, absolute: str, most_bytes: int = PAGE_BYTES) -> bytes:
        """The beginning of a regular file; raises :class:`OSError`."""
        number = self.open(absolute)
        try:
            return _read(number, most_bytes)
        finally:
            os.close(number)

    def open(self, absolute: str) -> int:
        """A descriptor of a regular file, which never blocks; raises :class:`OSError`."""
        return open_regular(self.path(absolute))

    def text(self, absolute: str, most_bytes: int = PAGE_BYTES) -> str | None:
        """What stands in a small file, without blanks around it; ``None`` if it is unreadable."""
        try:
            return self.read(absolute, most_bytes).decode(errors="replace").strip()
        except (OSError, ValueError):
            return None

    def names(self, absolute: str) -> list[str]:
        """What the folder holds, sorted; nothing where there is none."""
        names: list[str] = []
        try:
            with os.scandir(self.path(absolute)) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if len(names) >= _MOST_ENTRIES:
                        break
        except (OSError, ValueError):
            return []
        return sorted(names)

    def exists(self, absolute: str) -> bool:
        """Whether there is anything of this name."""
        try:
            return self.path(absolute).exists()
        except (OSError, ValueError):
            return False

    def target(self, absolute: str) -> str:
        """The last name of where a link leads, such as the driver of a device; else nothing."""
        try:
            name = self.path(absolute).resolve(strict=True).name
        except (OSError, RuntimeError, ValueError):
            return ""
        # A copy of a folder without its links does not tell.
        return "" if name == absolute.rpartition("/")[2] else name

    def ask(self, argv: Sequence[str], *, timeout_s: float, recorded: str) -> Answer:
        """What the program prints here, or what was recorded of it as ``recorded/NAME``.

        A recorded file that holds exactly ``!hung``, ``!denied`` or ``!failed REASON`` plays that.
        """
        if self.live:
            return programs.ask(argv, timeout_s=timeout_s)
        return self.recorded(recorded)

    def recorded(self, name: str) -> Answer:
        """What was recorded of a program, wherever the facts are read; absent where nothing was."""
        if self.live:
            return Answer(outcome=Outcome.ABSENT, reason=f"{name} is not recorded")
        try:
            number = self.open(f"{RECORDED}/{name}")
        except FileNotFoundError:
            return Answer(outcome=Outcome.ABSENT, reason=f"{name} is not recorded")
        except OSError as error:
            return _unreadable(name, error)
        try:
            data = _read(number, programs.MAX_BYTES + 1)
        except OSError as error:
            return _unreadable(name, error)
        finally:
            os.close(number)
        if len(data) > programs.MAX_BYTES:
            reason = f"{name} holds more than {programs.MAX_BYTES >> 20} MiB"
            return Answer(outcome=Outcome.FAILED, reason=reason)
        return played(data[:_LONGEST_PLAYED], name) or Answer(outcome=Outcome.CAPTURED, output=data)


def played(beginning: bytes, name: str) -> Answer | None:
    """The outcome that a recorded file stands for, if it does; ``!hung`` never comes back."""
    if not beginning.startswith(_PLAYED) or len(beginning) >= _LONGEST_PLAYED:
        return None
    word, _, rest = beginning.decode(errors="replace").strip().partition(" ")
    if word == "!hung" and not rest:
        _hang()
    if word == "!denied" and not rest:
        return Answer(outcome=Outcome.FAILED, reason=f"{name}: permission denied", denied=True)
    if word == "!failed":
        reason = visible(" ".join(rest.split())) or f"{name} failed"
        return Answer(outcome=Outcome.FAILED, reason=reason)
    return None


def open_regular(path: Path) -> int:
    """A descriptor of a regular file; raises :class:`OSError` for anything else."""
    try:
        # Looked at before it is opened: to open a device can do something.
        regular = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - tens of thousands a host
        number = os.open(path, _OPEN) if regular else -1
    except ValueError as error:  # a NUL in the name
        raise FileNotFoundError(str(error)) from None
    if number < 0:
        raise NotRegularError(0, "is no regular file")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise NotRegularError(0, "is no regular file")
    return number


def _read(number: int, most_bytes: int) -> bytes:
    """So many bytes at most; sysfs and procfs give no more than a page at a time."""
    data = bytearray()
    while len(data) < most_bytes:
        part = os.read(number, min(most_bytes - len(data), 1 << 20))
        if not part:
            break
        data += part
    return bytes(data)


def _unreadable(name: str, error: OSError) -> Answer:
    denied = isinstance(error, PermissionError)
    reason = f"{name}: {(error.strerror or str(error)).lower()}"
    return Answer(outcome=Outcome.FAILED, reason=reason, denied=denied)


def _hang() -> NoReturn:
    """Wait for what never comes, as a process does that a broken driver holds."""
    while True:
        threading.Event().wait()
