"""What an operator names: files, folders, patterns and ``-``, as a list of inputs."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

STDIN = "-"
_REFUSED = (
    (stat.S_ISSOCK, "is a socket, not a log"),
    (stat.S_ISBLK, "is a device, not a log"),
    (stat.S_ISCHR, "is a device, not a log"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input; ``name`` is its path as it may be printed, ``size`` is ``None`` for streams.

    ``error`` says why it cannot be read.
    """

    path: str
    name: str
    size: int | None = None
    error: str | None = None


def sources(paths: Sequence[str]) -> list[Source]:
    """All inputs below ``paths``, each once, in the order named and sorted within folders."""
    seen: set[tuple[int, int]] = set()
    return [found for path in paths for found in _named(path, seen)]


def _named(path: str, seen: set[tuple[int, int]]) -> Iterator[Source]:
    if path == STDIN:
        yield Source(path=path, name=STDIN)
    elif os.path.lexists(path) or not glob.has_magic(path):
        yield from _below(path, seen)
    else:
        matches = sorted(set(_matches(path)))
        if not matches:
            yield _failed(path, "matches no file")
        for match in matches:
            yield from _below(match, seen)


def _matches(pattern: str) -> Iterator[str]:
    """What a shell finds for a pattern; ``**`` follows no links, for they may lead in circles."""
    parts = pattern.split("/")
    if "**" not in parts:
        yield from glob.iglob(pattern)  # noqa: PTH207 - as a shell does it
        return
    depth = parts.index("**")
    start = "/".join((*parts[:depth], "")) or "./"
    rest = parts[depth + 1 :]
    while rest and rest[0] in ("", "**"):
        del rest[0]
    for top in _matches(start):
        for folder, inside, _ in os.walk(top):
            inside[:] = [name for name in inside if not name.startswith(".")]
            if rest:
                yield from _matches("/".join((glob.escape(folder.rstrip("/")), *rest)))
            else:
                yield folder


def _below(named: str, seen: set[tuple[int, int]]) -> Iterator[Source]:
    """A file, or all plain files in a folder; links that lead in circles end the second time."""
    waiting = [named]
    while waiting:
        path = waiting.pop()
        try:
            status = Path(path).stat()
            mark = status.st_dev, status.st_ino
            if mark in seen:
                continue
            seen.add(mark)
            if stat.S_ISDIR(status.st_mode):
                inside = sorted((str(entry) for entry in Path(path).iterdir()), reverse=True)
                waiting += inside
                continue
        except (OSError, ValueError) as error:
            yield _failed(path, getattr(error, "strerror", None) or str(error))
            continue
        if stat.S_ISREG(status.st_mode):
            yield Source(path=path, name=printable(path), size=status.st_size)
        elif path == named:
            refusal = next((why for test, why in _REFUSED if test(status.st_mode)), None)
            yield Source(path=path, name=printable(path), error=refusal)


def _failed(path: str, why: str) -> Source:
    return Source(path=path, name=printable(path), error=why)


def printable(path: str) -> str:
    """A path as text that any encoder takes, whatever bytes its name holds."""
    return os.fsencode(path).decode(errors="replace")
