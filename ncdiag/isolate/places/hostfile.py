"""A hosts file: the line of an isolated host becomes a comment that says why.

``gpu07 slots=8`` becomes ``# ncdiag: slow host | gpu07 slots=8``. Comments, order and line ends
stay as they are, and a line that comes back is the one that went, byte for byte. The line of a node
set is parted around the host. Whoever reads the file meanwhile sees the old one whole.
"""

import glob
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

from ncdiag.cluster.inventory import MAX_FILE_BYTES, parse_hosts
from ncdiag.cluster.names import expand, parted
from ncdiag.isolate.places.base import Asked, LeftAloneError, Standing, asking, with_aliases
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.store.whole_file import replacing

# Nobody takes so long to write one.
_ABANDONED_S: Final = 3600.0
_LINE: Final = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")
_OURS: Final = re.compile(r"# (?P<reason>ncdiag:[^|]*) \| (?P<line>.*)", re.DOTALL)
_ENTRY: Final = re.compile(
    r"(?P<before>\s*(?:[^@\s]*@)?)(?P<names>\S+?)(?P<after>(?::\d+)?(?:\s.*)?)"
)


class Line(NamedTuple):
    """A line without its end; ``reason`` is why its hosts are isolated, if they are."""

    text: str
    hosts: tuple[str, ...]
    reason: str | None = None


class HostfilePlace:
    """The hosts file at ``path``; ``remembered`` says that no operator named it just now."""

    def __init__(self, path: Path, *, remembered: bool = False) -> None:
        self._path = path
        self._remembered = remembered

    @property
    def key(self) -> str:
        """The place, with the file's whole path."""
        return f"hostfile:{os.path.realpath(self._path)}"

    def ask(self) -> Asked:
        """How all hosts of the file stand; who was taken out by others is not in it."""
        with asking() if self._remembered else nullcontext():
            return asked(self._read()[0], self._shown)

    def isolate(self, name: str, reason: str, run: str) -> None:  # noqa: ARG002 - is not kept there
        """Make a comment of the host's line."""
        text, read = self._read()
        now = asked(text, self._shown).of(name).state
        if now is PlaceState.MISSING:
            raise LeftAloneError("its line is gone")
        if now is PlaceState.AVAILABLE:
            self._write(without(text, name, reason, self._shown), read)

    def release(self, name: str, reason: str) -> None:
        """Make the comment the line that it was."""
        text, read = self._read()
        now = asked(text, self._shown).of(name)
        if now.state is PlaceState.AVAILABLE:
            return
        if now.state is not PlaceState.OURS or now.reason != reason:
            raise LeftAloneError(f"changed since: {now.reason or 'its line is gone'}")
        self._write(with_again(text, name, self._shown), read)

    @property
    def _shown(self) -> str:
        return visible(str(self._path))

    def _read(self) -> tuple[str, os.stat_result]:
        try:
            with open(self._path, "rb", opener=_at_once) as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise UsageError(f"--file {self._shown}: this is no file to be written over")
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise UsageError(f"--file {self._shown}: cannot be read: {error.strerror}") from None
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"--file {self._shown}: too large for a hosts file")
        try:
            return data.decode(), about
        except UnicodeDecodeError:
            raise UsageError(f"--file {self._shown}: not UTF-8 text; is it a hosts file?") from None

    def _write(self, text: str, read: os.stat_result) -> None:
        """Put ``text`` in the place of what was read, with its owner and mode."""
        path = Path(os.path.realpath(self._path))
        _clear_abandoned(path)
        try:
            with replacing(path, read) as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
                now = path.stat()
                if (now.st_ino, now.st_mtime_ns) != (read.st_ino, read.st_mtime_ns):
                    raise UsageError(f"{self._shown} was changed by somebody at that moment; again")
        except OSError as error:
            said = error.strerror or f"{error}"
            raise UndecidedError(f"cannot write {self._shown}: {said}") from error


def _at_once(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes into holds nobody up."""
    return os.open(path, flags | os.O_NONBLOCK)


def _clear_abandoned(path: Path) -> None:
    """Take away what runs left beside the file that were killed while they wrote it."""
    with suppress(OSError):
        for left in path.parent.glob(f".{glob.escape(path.name)}.[0-9]*.tmp"):
            if time.time() - left.lstat().st_mtime > _ABANDONED_S:
                left.unlink()


def asked(text: str, source: str) -> Asked:
    """How the hosts of a hosts file stand; raises :class:`UsageError` where it is none."""
    standings: dict[str, Standing] = {}
    lines = [line for line, _ in _lines(text, source)]
    for line in (*(one for one in lines if one.reason), *(one for one in lines if not one.reason)):
        state = PlaceState.OURS if line.reason else PlaceState.AVAILABLE
        for name in line.hosts:
            standings[name] = Standing(state=state, name=name, reason=line.reason)
    if not standings:
        raise UsageError(f"{source}: no hosts in it")
    return with_aliases(standings)


def without(text: str, name: str, reason: str, source: str) -> str:
    """``text`` with every line of the host made a comment, and out of the node sets it is in."""
    made: list[str] = []
    for line, end in _lines(text, source):
        if line.reason or name not in line.hosts:
            made.append(line.text + end)
            continue
        parts = [*_parts_around(line, name, reason)]
        made += [part + (end or "\n") for part in parts[:-1]] + [parts[-1] + end]
    return "".join(made)


def with_again(text: str, name: str, source: str) -> str:
    """``text`` with the host's comments made lines again."""
    made = []
    for line, end in _lines(text, source):
        ours = _OURS.fullmatch(line.text) if line.reason and name in line.hosts else None
        made.append((ours["line"] if ours else line.text) + end)
    return "".join(made)


def _lines(text: str, source: str) -> Iterator[tuple[Line, str]]:
    for number, found in enumerate(_LINE.finditer(text), start=1):
        content, end = found.groups()
        if content or end:
            yield _line(content, f"{source}:{number}"), end


def _line(content: str, where: str) -> Line:
    if ours := _OURS.fullmatch(content):
        with suppress(UsageError):  # a comment of somebody's own that looks like ours
            return Line(content, _names(ours["line"]), ours["reason"])
    if not content.removeprefix("\ufeff").partition("#")[0].strip():
        return Line(content, ())
    try:
        return Line(content, _names(content.removeprefix("\ufeff")))
    except UsageError as error:
        raise UsageError(f"{where}: {f'{error}'.removeprefix('1: ')}") from None


def _names(content: str) -> tuple[str, ...]:
    try:
        return tuple(host.name for host in parse_hosts(content, ""))
    except UsageError as error:
        raise UsageError(f"{error}".removeprefix(":1: ").removeprefix(": ")) from None


def _parts_around(line: Line, name: str, reason: str) -> Iterator[str]:
    """The line as those before the host, the comment, and those after it."""
    start = "\ufeff" if line.text.startswith("\ufeff") else ""
    text = line.text.removeprefix("\ufeff")
    if len(line.hosts) == 1:
        yield f"{start}# {reason} | {text}"
        return
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise UsageError(f"{visible(text)}: {name} cannot be taken out of this line; write its own")
    at = line.hosts.index(name)
    for names in _folded(line.hosts[:at]):
        yield f"{start}{found['before']}{names}{found['after']}"
        start = ""
    yield f"{start}# {reason} | {found['before']}{name}{found['after']}"
    for names in _folded(line.hosts[at + 1 :]):
        yield f"{found['before']}{names}{found['after']}"


def _folded(names: Sequence[str]) -> Sequence[str]:
    """Node sets, one a line, that are these names in this order."""
    if not names:
        return ()
    parts = parted(fold(names))
    again = [name for part in parts for name in expand(part)]
    return parts if again == list(names) else names
