"""An open store, of which some only keep runs and others the ledger."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ncdiag.store.connection import BUSY_S, open_database


class OpenFile:
    """The one SQLite file of a store; close it, or use it in a ``with`` statement."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self.path = path

    @classmethod
    def open(cls, path: Path, *, write: bool = False, busy_s: float = BUSY_S) -> Self:
        """Open the store at ``path``; with ``write`` it is made where it is missing."""
        return cls(open_database(path, write=write, busy_s=busy_s), path)

    def close(self) -> None:
        """Let the file go."""
        with suppress(sqlite3.Error):  # what was committed is in the file, or in its log
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing of what is written meanwhile."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled back already
                self._database.execute("ROLLBACK")
            raise
