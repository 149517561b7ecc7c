"""The tables of a store, as steps from each version to the next.

Names and texts stand once and are numbers elsewhere. What was measured on the links of one host
towards all others is one row a run and rail, columns packed into a blob: a full sweep of 512 hosts
takes 4 MB and half a second, and asking for one link or host reads a row a run. A row a link took
three times the space with half the columns and, since the next sweep's rows land all over such a
table, ever longer to add.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

# "ncdg": tells the store from the SQLite files of other programs.
APPLICATION_ID: Final = 0x6E636467

Step = Sequence[str]

_SWEEPS: Step = (
    "CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        identity TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        started TEXT NOT NULL,
        seconds REAL NOT NULL,
        verdict TEXT NOT NULL,
        interrupted INTEGER NOT NULL,
        engine TEXT NOT NULL,
        launcher TEXT NOT NULL,
        mode TEXT,
        hosts INTEGER NOT NULL,
        directory TEXT,
        settings TEXT NOT NULL,
        versions TEXT NOT NULL)""",
    "CREATE INDEX runs_by_time ON runs (started, id)",
    """CREATE TABLE hosts (
        host INTEGER NOT NULL REFERENCES names (id),
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        status TEXT NOT NULL,
        efficiency REAL,
        reason INTEGER REFERENCES texts (id),
        send_gbit_per_s REAL,
        receive_gbit_per_s REAL,
        expected_gbit_per_s REAL,
        fleet_ratio REAL,
        worst_window REAL,
        links INTEGER NOT NULL,
        slow_links INTEGER NOT NULL,
        PRIMARY KEY (host, run)) WITHOUT ROWID""",
    "CREATE INDEX hosts_by_run ON hosts (run)",
    """CREATE TABLE links (
        source INTEGER NOT NULL REFERENCES names (id),
        rail INTEGER NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        count INTEGER NOT NULL,
        packed BLOB NOT NULL,
        PRIMARY KEY (source, rail, run))""",
    "CREATE INDEX links_by_run ON links (run)",
    """CREATE TABLE culprits (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        kind TEXT NOT NULL,
        name INTEGER NOT NULL REFERENCES names (id),
        direction TEXT NOT NULL,
        status TEXT NOT NULL,
        confidence REAL NOT NULL,
        efficiency REAL NOT NULL,
        PRIMARY KEY (run, place)) WITHOUT ROWID""",
)

_BENCHMARKS: Step = (
    "ALTER TABLE runs ADD COLUMN collective TEXT",
    """CREATE TABLE curves (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        collective TEXT NOT NULL,
        hosts INTEGER NOT NULL,
        ranks INTEGER NOT NULL,
        host_names TEXT NOT NULL,
        plateau_busbw_gb_per_s REAL,
        plateau_from_bytes INTEGER,
        expected_busbw_gb_per_s REAL,
        efficiency REAL,
        error TEXT,
        PRIMARY KEY (run, place)) WITHOUT ROWID""",
    "CREATE INDEX curves_by_collective ON curves (collective, hosts, run)",
    """CREATE TABLE points (
        run INTEGER NOT NULL,
        place INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,
        time_us REAL,
        algbw_gb_per_s REAL,
        busbw_gb_per_s REAL,
        min_busbw_gb_per_s REAL,
        max_busbw_gb_per_s REAL,
        repeats INTEGER NOT NULL,
        wrong INTEGER,
        expected_time_us REAL,
        expected_busbw_gb_per_s REAL,
        cliff INTEGER NOT NULL,
        PRIMARY KEY (run, place, size_bytes),
        FOREIGN KEY (run, place) REFERENCES curves (run, place) ON DELETE CASCADE) WITHOUT ROWID""",
)

# Evidence is a row of numbers a piece, since millions are read at once; sets of hosts or of classes
# stand once, too. What was done, and by whom, is never changed: the file itself refuses it.
_ISOLATION: Step = (
    "CREATE TABLE sets (id INTEGER PRIMARY KEY, members TEXT NOT NULL UNIQUE)",
    """CREATE TABLE evidence (
        id INTEGER PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES names (id),
        run INTEGER NOT NULL REFERENCES names (id),
        class INTEGER NOT NULL REFERENCES names (id),
        component INTEGER NOT NULL REFERENCES names (id),
        kind INTEGER NOT NULL REFERENCES names (id),
        source INTEGER NOT NULL REFERENCES names (id),
        seen_s REAL NOT NULL,
        until_s REAL,
        uptime_s REAL,
        confidence REAL NOT NULL,
        conclusive INTEGER NOT NULL,
        clears INTEGER NOT NULL,
        partners INTEGER NOT NULL REFERENCES sets (id),
        covers INTEGER NOT NULL REFERENCES sets (id),
        text INTEGER REFERENCES texts (id),
        report INTEGER REFERENCES names (id))""",
    "CREATE UNIQUE INDEX evidence_once ON evidence (host, run, class, component)",
    "CREATE INDEX evidence_by_run ON evidence (run)",
    """CREATE TABLE actions (
        id INTEGER PRIMARY KEY,
        place TEXT NOT NULL,
        host INTEGER NOT NULL REFERENCES names (id),
        isolate INTEGER NOT NULL,
        reason TEXT NOT NULL,
        plan TEXT NOT NULL,
        intended_s REAL NOT NULL,
        changed_s REAL NOT NULL,
        by TEXT NOT NULL,
        state TEXT NOT NULL,
        error TEXT)""",
    "CREATE INDEX actions_by_host ON actions (place, host, id)",
    """CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        at_s REAL NOT NULL,
        what TEXT NOT NULL,
        user TEXT NOT NULL,
        machine TEXT NOT NULL,
        command TEXT NOT NULL,
        about TEXT NOT NULL)""",
    """CREATE TRIGGER audit_stays BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'what was done stays on record'); END""",
    """CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'what was done stays on record'); END""",
)

# The newest action when a piece was told first, or with something new: clocks may go back.
_ORDER: Step = ("ALTER TABLE evidence ADD COLUMN after_action INTEGER",)

# From no table to version 1, from 1 to 2, and so on. A step that was released never changes.
STEPS: Final[Sequence[Step]] = (_SWEEPS, _BENCHMARKS, _ISOLATION, _ORDER)


def version_of(database: sqlite3.Connection) -> int:
    """How many steps ``database`` has behind it."""
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def migrate(database: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Take the steps that ``database`` lacks, each whole or not at all.

    Nobody else can write meanwhile; whoever wanted to take the same step finds it taken.
    """
    for version, step in enumerate(steps, start=1):
        if version_of(database) >= version:
            continue
        database.execute("BEGIN EXCLUSIVE")
        try:
            if version_of(database) < version:
                for statement in step:
                    database.execute(statement)
                # A pragma takes no parameters; both are our own whole numbers.
                database.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
                database.execute(f"PRAGMA user_version = {version:d}")
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled back already
                database.execute("ROLLBACK")
            raise
