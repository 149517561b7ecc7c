"""Textfiles of metrics that are served beside those of reports, and what the ledger tells."""

import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.text import visible
from ncdiag.store.ledger import Ledger

_SUFFIX: Final = ".prom"
_MOST_FILES: Final = 1000
# Of all textfiles together.
_MOST_BYTES: Final = 64 << 20
# How old evidence may be that is counted; a policy may let it count for longer.
_EVIDENCE_S: Final = 30 * 86_400.0
# How long a page may be in the making, as on a file server that does not answer.
_LONGEST_S: Final = 30.0


def check_textfiles(paths: Sequence[Path]) -> None:
    """Refuse what is not there; raises :class:`UsageError`. A file may come later."""
    for path in paths:
        if not path.exists() and not path.parent.is_dir():
            raise UsageError(f"there is no {visible(str(path))}; name a textfile or a folder")


def read_textfiles(paths: Sequence[Path]) -> tuple[list[str], int]:
    """The texts of files, and of files ``*.prom`` in folders; and how many could not be read."""
    texts, failed, left = [], 0, _MOST_BYTES
    for path in paths:
        for file in _files(path):
            text = _read(file, left)
            if text is None:
                failed += 1
            else:
                texts.append(text)
                left -= len(text)
    return texts, failed


def _files(path: Path) -> list[Path]:
    try:
        found = sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIX))
    except OSError:  # a file, or nothing that can be read: then that is told
        return [path]
    return [file for file in found if not file.name.startswith(".")][:_MOST_FILES]


def _read(path: Path, most: int) -> str | None:
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            told = os.fstat(number)
            if stat.S_ISREG(told.st_mode) and told.st_size <= most:
                return file.read(most).decode(errors="replace")
    return None


def ledger_text(path: Path) -> str | None:
    """Metrics of the ledger in the store at ``path``; ``None`` where it cannot be read."""
    from ncdiag.report.serve.ledger import render_ledger_metrics

    try:
        with Ledger.open(path) as ledger:
            table = ledger.table(since_s=time.time() - _EVIDENCE_S)
            return render_ledger_metrics(ledger.isolated().values(), ledger.actions(), table)
    except NcdiagError:
        return None


class Kept:
    """What ``make`` gave, for so many seconds; whoever comes while it is made anew gets the old.

    Where that takes longer than ``longest_s``, what is old is given out no more.
    """

    def __init__(
        self, make: Callable[[], bytes], for_s: float, longest_s: float = _LONGEST_S
    ) -> None:
        self._make = make
        self._for_s = for_s
        self._longest_s = longest_s
        self._lock = threading.Lock()
        self._until_s = 0.0
        self._data: bytes | None = None

    def get(self) -> bytes:
        """Made now, or a few seconds ago. Raises TimeoutError where it takes too long."""
        old = self._data
        if old is None:
            is_ours = self._lock.acquire(timeout=self._longest_s)
        else:
            is_ours = self._lock.acquire(blocking=False)
        if is_ours:
            try:
                if self._data is None or time.monotonic() >= self._until_s:
                    self._data = self._make()
                    self._until_s = time.monotonic() + self._for_s
                return self._data
            finally:
                self._lock.release()
        if old is None or time.monotonic() >= self._until_s + self._longest_s:
            raise TimeoutError
        return old
