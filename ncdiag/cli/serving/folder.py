"""The folder of reports, as it is served: known files in real folders, and nothing else.

Every step down is opened below the one before it without following links, so that no name and no
race leads outside.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.text import is_hidden, visible
from ncdiag.report.serve.head import ReportHead, read_head
from ncdiag.report.serve.index import Shown

TYPES: Final = {
    "report.html": "text/html; charset=utf-8",
    "bench.html": "text/html; charset=utf-8",
    "report.json": "application/json",
    "bench.json": "application/json",
    "summary.txt": "text/plain; charset=utf-8",
    "links.csv": "text/csv; charset=utf-8",
    "bench.csv": "text/csv; charset=utf-8",
    "heatmap.png": "image/png",
    "bench.png": "image/png",
    "metrics.prom": "text/plain; charset=utf-8",
    "hosts.good.txt": "text/plain; charset=utf-8",
    "hosts.isolate.txt": "text/plain; charset=utf-8",
    "hosts.spare.txt": "text/plain; charset=utf-8",
    "hosts.undecided.txt": "text/plain; charset=utf-8",
}
METRICS: Final = "metrics.prom"
_DOCUMENTS: Final = ("report.json", "bench.json")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# An import of several collectives has a folder for each.
_DEPTH: Final = 2
_MOST_FOLDERS: Final = 10_000
_LISTED: Final = 200
_HEAD_BYTES: Final = 16 << 10
_MOST_METRICS_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that may be sent; whoever has it closes ``number``."""

    number: int
    size: int
    changed_s: float


def is_name(name: str) -> bool:
    """Whether ``name`` may be that of a folder with a report: nothing hidden, nothing above it."""
    return (
        0 < len(name) <= 255
        and not name.startswith(".")
        and "/" not in name
        and not any(map(is_hidden, name))
    )


class ReportFolder:
    """Reports below one folder, of which nothing is ever written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, path: Path) -> "ReportFolder":
        """Raises :class:`UsageError` where there is no such folder."""
        if not path.is_dir():
            raise UsageError(f"there is no folder {visible(str(path))}; name one with --reports")
        if not os.access(path, os.R_OK | os.X_OK):
            raise UsageError(f"the folder {visible(str(path))} may not be read")
        return cls(path.resolve())

    def open(self, folders: Sequence[str], file: str) -> OpenFile | None:
        """A known file of the report in ``folders``; ``None`` for anything else."""
        if file not in TYPES or not 0 < len(folders) <= _DEPTH or not all(map(is_name, folders)):
            return None
        with suppress(OSError, ValueError), self._descend(folders) as folder:
            return _open(folder, file)
        return None

    def shown(self) -> tuple[list[Shown], int]:
        """The reports, the last begun first, and how many older ones are left out.

        Raises OSError where there is no folder any more.
        """
        found = self._all()
        return found[:_LISTED], max(len(found) - _LISTED, 0)

    def _all(self) -> list[Shown]:
        found = []
        for folders in self._folders():
            with suppress(OSError), self._descend(folders) as folder:
                files = _known_files(folder)
                if files:
                    head = _head(folder, files)
                    found.append(Shown(name="/".join(folders), head=head, files=files))
        return sorted(found, key=lambda one: (one.head.started, one.name), reverse=True)

    def newest_metrics(self) -> list[str]:
        """The metrics of the newest report of each kind."""
        texts: dict[str, str] = {}
        for one in self._all():
            if METRICS in one.files and one.head.kind and one.head.kind not in texts:
                text = self._text(one.name.split("/"))
                if text is not None:
                    texts[one.head.kind] = text
        return list(texts.values())

    def _text(self, folders: Sequence[str]) -> str | None:
        opened = self.open(folders, METRICS)
        if opened is None:
            return None
        with os.fdopen(opened.number, "rb") as file:
            if opened.size > _MOST_METRICS_BYTES:
                return None
            return file.read(_MOST_METRICS_BYTES).decode(errors="replace")

    def _folders(self) -> Iterator[tuple[str, ...]]:
        """The folders of the root, and those within them; so many at most.

        Raises OSError where the root itself cannot be read any more.
        """
        left = _MOST_FOLDERS
        for name in self._names(()):
            inside = []
            with suppress(OSError):
                inside = [(name, below) for below in self._names((name,))]
            for folders in [(name,), *inside]:
                if left <= 0:
                    return
                left -= 1
                yield folders

    def _names(self, folders: Sequence[str]) -> list[str]:
        with self._descend(folders) as folder, os.scandir(folder) as entries:
            names = [
                one.name
                for one in entries
                if is_name(one.name) and one.is_dir(follow_symlinks=False)
            ]
        return sorted(names, reverse=True)

    @contextmanager
    def _descend(self, folders: Sequence[str]) -> Iterator[int]:
        """The open folder at the end of ``folders``; raises OSError where a link is on the way."""
        number = os.open(self.path, _FOLDER)
        try:
            for name in folders:
                below = os.open(name, _FOLDER, dir_fd=number)
                os.close(number)
                number = below
            yield number
        finally:
            os.close(number)


def _known_files(folder: int) -> list[str]:
    """Those of :data:`TYPES` that are there, in that order."""
    with os.scandir(folder) as entries:
        there = {
            one.name
            for one in islice(entries, _MOST_FOLDERS)
            if one.name in TYPES and one.is_file(follow_symlinks=False)
        }
    return [name for name in TYPES if name in there]


def _is_file(folder: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open(folder: int, name: str) -> OpenFile | None:
    if not _is_file(folder, name):  # opening a device may already do something
        return None
    number = os.open(name, _FILE, dir_fd=folder)
    told = os.fstat(number)
    if not stat.S_ISREG(told.st_mode):
        os.close(number)
        return None
    return OpenFile(number, told.st_size, told.st_mtime)


def _head(folder: int, files: Sequence[str]) -> ReportHead:
    for name in _DOCUMENTS:
        opened = _open(folder, name) if name in files else None
        if opened is not None:
            with os.fdopen(opened.number, "rb") as file:
                return read_head(file.read(_HEAD_BYTES))
    return ReportHead()
