"""Opens a store, and tells what can go wrong with its file in one line each."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.text import visible
from ncdiag.store.file_systems import FileSystem, file_system_of
from ncdiag.store.schema import APPLICATION_ID, STEPS, Step, migrate, version_of

# Adding the largest sweep takes under five seconds, also where somebody else is adding one.
BUSY_S: Final = 15.0
_RETRY_S: Final = 0.05

_OTHER: Final = "give another --store"
_REASONS: Final[Mapping[str, tuple[type[NcdiagError], str]]] = {
    "BUSY": (UndecidedError, "another process has been writing to it all the time; try again"),
    "PROTOCOL": (UndecidedError, f"its file system cannot lock files; {_OTHER} on a local disk"),
    "NOTADB": (UsageError, f"this is no store of results; {_OTHER}"),
    "CORRUPT": (
        UndecidedError,
        "it is damaged; restore a copy, or rescue what is left with 'sqlite3 FILE .recover'",
    ),
    "FULL": (UndecidedError, "the disk is full, and nothing was changed; make room and try again"),
    "READONLY": (
        UsageError,
        f"it, or its folder, may only be read; change who may write there, or {_OTHER}",
    ),
    "CANTOPEN": (
        UsageError,
        f"it cannot be opened; change who may read and write it and its folder, or {_OTHER}",
    ),
    "IOERR": (
        UndecidedError,
        f"its file system failed; see the system's log, or {_OTHER} on a local disk",
    ),
}


def open_database(
    path: Path,
    *,
    write: bool,
    busy_s: float = BUSY_S,
    steps: Sequence[Step] = STEPS,
    file_system: Callable[[Path], FileSystem] = file_system_of,
) -> sqlite3.Connection:
    """A connection to the store at ``path``, of the newest version; made when ``write``.

    Raises :class:`UsageError` for a file that is no store or cannot be used, and
    :class:`UndecidedError` where it is locked for longer than ``busy_s``, or damaged.
    """
    _check_path(path, write=write)
    shared = file_system(path).shared
    with told(path):
        database = _connect(path, "rwc" if write else "rw", busy_s)
        try:
            if shared:
                # Until the journal is chosen: a log that was copied here, as it may have been, is
                # then read without the memory that other machines cannot see.
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
            if not write:
                database = _readable(database, path, busy_s)
            _check_version(database, path, len(steps), write=write)
            outdated = version_of(database) < len(steps)
            if write or shared or outdated:
                _choose_journal(database, busy_s, shared=shared)
            if write or outdated:
                migrate(database, steps)
            database.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            database.close()
            raise
    return database


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what SQLite raises about the store at ``path`` into one line for the operator."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, visible(str(path))) from error


def _explained(error: sqlite3.Error, path: str) -> NcdiagError:
    name = getattr(error, "sqlite_errorname", "")
    # The longer names say more of the same: SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_WRITE.
    code = name.removeprefix("SQLITE_").split("_")[0]
    kind, text = _REASONS.get(code, (UndecidedError, f"{error}"))
    return kind(f"store {path}: {text}")


def _check_path(path: Path, *, write: bool) -> None:
    """Say plainly what SQLite would call 'unable to open database file'."""
    shown = visible(str(path))
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"store {shown}: this is no file; {_OTHER}")
        if not write and not path.exists():
            raise UsageError(
                f"there is no store {shown}; 'ncdiag sweep --record' makes one, --store names one"
            )
        if not path.absolute().parent.is_dir():
            folder = visible(str(path.absolute().parent))
            raise UsageError(f"store {shown}: there is no folder {folder}; make it first")
    except OSError as error:
        raise UsageError(f"store {shown}: {error.strerror}") from error


def _connect(path: Path, mode: str, busy_s: float, more: str = "") -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}{more}"
    return sqlite3.connect(address, uri=True, timeout=busy_s, isolation_level=None)


def _readable(database: sqlite3.Connection, path: Path, busy_s: float) -> sqlite3.Connection:
    """``database``, or a connection that can read where nothing may be made beside the file.

    The log of a store that nobody has open is gone; then the file alone is all there is.
    """
    try:
        version_of(database)
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        log = path.with_name(f"{path.name}-wal")
        left = log.stat().st_size if log.exists() else 0
        cannot = error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))
        if not cannot or left:
            raise
        database.close()
        database = _connect(path, "ro", busy_s, "&immutable=1")
        version_of(database)
    return database


def _check_version(database: sqlite3.Connection, path: Path, newest: int, *, write: bool) -> None:
    shown = visible(str(path))
    version = version_of(database)
    application = database.execute("PRAGMA application_id").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (application or version or tables):
        raise UsageError(f"{shown} is the SQLite file of another program; {_OTHER}")
    if version == 0 and not write:
        raise UsageError(f"{shown} is empty, and no store; {_OTHER}")
    if version > newest:
        raise UsageError(
            f"store {shown} has version {version}, of a newer ncdiag; this one knows {newest} "
            f"at most: update ncdiag, or {_OTHER}"
        )


def _choose_journal(database: sqlite3.Connection, busy_s: float, *, shared: bool) -> None:
    """A write-ahead log on a local disk, a rollback journal where other machines may write too."""
    wanted = "delete" if shared else "wal"
    deadline = time.monotonic() + busy_s
    while True:
        # SQLite itself does not wait for this lock.
        try:
            mode = database.execute("PRAGMA journal_mode").fetchone()[0]
            if mode == wanted:
                break
            database.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
            break
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)
    if shared:
        database.execute("PRAGMA locking_mode = NORMAL")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()  # lets the lock go
