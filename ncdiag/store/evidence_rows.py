"""Evidence in the tables of a store, within a transaction of its caller."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.store.evidence_table import KINDS, Column, EvidenceTable, bounded
from ncdiag.store.numbering import Numbering, storable

_PUT: Final = """
    INSERT INTO evidence (host, run, class, component, kind, source, seen_s, until_s, uptime_s,
        confidence, conclusive, clears, partners, covers, text, report, after_action)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        (SELECT coalesce(max(id), 0) FROM actions))
    ON CONFLICT (host, run, class, component) DO UPDATE SET
        kind = excluded.kind, source = excluded.source, seen_s = excluded.seen_s,
        until_s = excluded.until_s, uptime_s = excluded.uptime_s,
        confidence = excluded.confidence, conclusive = excluded.conclusive,
        clears = excluded.clears, partners = excluded.partners, covers = excluded.covers,
        text = excluded.text, report = excluded.report,
        after_action = CASE
            WHEN excluded.seen_s > evidence.seen_s OR excluded.conclusive > evidence.conclusive
            THEN excluded.after_action ELSE evidence.after_action END
"""
_ORDER: Final = """
    SELECT hosts.name, max(after_action)
    FROM evidence JOIN names AS hosts ON hosts.id = evidence.host
    WHERE conclusive AND NOT clears
      AND hosts.name IN (SELECT value FROM json_each(?))
    GROUP BY evidence.host HAVING count(after_action) > 0
"""
# What makes a table; three small numbers in one, for each value takes its time.
_ALL: Final = """
    SELECT id, host, class, run, component, seen_s, until_s, uptime_s, confidence, partners, covers,
           kind * 4 + conclusive * 2 + clears
    FROM evidence WHERE seen_s >= ?
"""
_NAMES_OF: Final = """
    SELECT evidence.id, source, component, coalesce(texts.text, ''), report
    FROM evidence LEFT JOIN texts ON texts.id = evidence.text
"""
_WHOLE: Final = """
    SELECT evidence.id, hosts.name, kinds.name, classes.name, sources.name, runs.name,
           seen_s, coalesce(texts.text, ''), confidence, conclusive, clears, partners.members,
           components.name, reports.name, until_s, uptime_s, covers.members
    FROM evidence
         JOIN names AS hosts ON hosts.id = evidence.host
         JOIN names AS kinds ON kinds.id = evidence.kind
         JOIN names AS classes ON classes.id = evidence.class
         JOIN names AS sources ON sources.id = evidence.source
         JOIN names AS runs ON runs.id = evidence.run
         JOIN names AS components ON components.id = evidence.component
         JOIN sets AS partners ON partners.id = evidence.partners
         JOIN sets AS covers ON covers.id = evidence.covers
         LEFT JOIN texts ON texts.id = evidence.text
         LEFT JOIN names AS reports ON reports.id = evidence.report
"""
_NEWEST: Final = " ORDER BY seen_s DESC, hosts.name, classes.name, runs.name LIMIT :last"
# Clean runs are told of every host each time; only the newest few can still clear anything.
_OLD_CLEAN: Final = """
    DELETE FROM evidence WHERE id IN (
        SELECT id FROM (
            SELECT id, row_number() OVER (
                PARTITION BY host, class, component ORDER BY seen_s DESC, id DESC) AS place
            FROM evidence WHERE host = ? AND clears)
        WHERE place > ?)
"""
KEPT_CLEAN_RUNS: Final = 20
# A batch may tell of every host of a fleet, and each in words of its own.
_MAX_TEXTS: Final = 100_000
_CHUNK: Final = 50_000
_IDS: Final = 500  # SQLite takes 999 parameters at least


def put(database: sqlite3.Connection, pieces: Iterable[EvidencePiece], *, now_s: float) -> None:
    """Add ``pieces``, none of which was seen after ``now_s``."""
    names = Numbering(database, "names")
    texts = Numbering(database, "texts", most=_MAX_TEXTS)
    sets = _Sets(database)
    cleared: set[int] = set()

    def row(piece: EvidencePiece) -> tuple[object, ...]:
        host = names.number(piece.host)
        if piece.clears:
            cleared.add(host)
        return (
            host,
            names.number(piece.run),
            names.number(piece.class_),
            names.number(piece.component),
            names.number(piece.kind.value),
            names.number(piece.source),
            min(piece.seen_s, now_s),
            piece.until_s,
            piece.uptime_s,
            piece.confidence,
            piece.conclusive,
            piece.clears,
            sets.number(piece.partners),
            sets.number(piece.covers),
            texts.number(piece.text) or None,
            names.number(piece.report) if piece.report else None,
        )

    waiting = map(bounded, pieces)
    while rows := [row(piece) for piece in islice(waiting, _CHUNK)]:
        database.executemany(_PUT, rows)
    database.executemany(_OLD_CLEAN, [(host, KEPT_CLEAN_RUNS) for host in sorted(cleared)])


def drop_runs(database: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Forget what earlier records of the same runs said."""
    for run in sorted(set(runs)):
        database.execute(
            "DELETE FROM evidence WHERE run = (SELECT id FROM names WHERE name = ?)",
            (storable(run),),
        )


def pieces(
    database: sqlite3.Connection, hosts: Sequence[str] | None, since_s: float | None, last: int
) -> list[EvidencePiece]:
    """The newest ``last`` pieces, the newest first."""
    wanted: dict[str, Any] = {"since": since_s or 0.0, "last": last}
    where = " WHERE seen_s >= :since"
    if hosts is not None:
        wanted["hosts"] = msgspec.json.encode([storable(host) for host in hosts]).decode()
        where += " AND hosts.name IN (SELECT value FROM json_each(:hosts))"
    rows = database.execute(_WHOLE + where + _NEWEST, wanted)
    return [_piece(row) for row in rows]


def table(database: sqlite3.Connection, since_s: float | None) -> EvidenceTable:
    """All pieces as columns."""
    columns = _columns(database.execute(_ALL, (since_s or 0.0,)))
    names: dict[int, str] = dict(database.execute("SELECT id, name FROM names").fetchall())
    sets, set_places = _sets(database)
    flags = columns["flags"]
    kind = flags >> 2
    vocabularies: dict[str, tuple[str, ...]] = {}
    for column in ("host", "class", "run", "component"):
        ordered = sorted(_used(columns[column]), key=names.__getitem__)
        vocabularies[column] = tuple(names[number] for number in ordered)
        places = {number: place for place, number in enumerate(ordered)}
        columns[column] = _mapped(columns[column], places)
    found = EvidenceTable(
        hosts=vocabularies["host"],
        classes=vocabularies["class"],
        runs=vocabularies["run"],
        sets=sets,
        host=columns["host"],
        kind=_mapped(kind, {one: KINDS.index(EvidenceKind(names[one])) for one in _used(kind)}),
        class_=columns["class"],
        run=columns["run"],
        component=columns["component"],
        seen_s=columns["seen_s"],
        until_s=columns["until_s"],
        uptime_s=columns["uptime_s"],
        confidence=columns["confidence"],
        conclusive=(flags & 2).astype(bool),
        clears=(flags & 1).astype(bool),
        partners=_mapped(columns["partners"], set_places),
        covers=_mapped(columns["covers"], set_places),
        pieces_of=lambda rows: _records(database, found, columns["id"], names, rows),
    )
    return found


_TYPES: Final = {
    "id": "<i8",
    "host": "<i4",
    "class": "<i4",
    "run": "<i4",
    "component": "<i4",
    "seen_s": "<f8",
    "until_s": "<f8",
    "uptime_s": "<f8",
    "confidence": "<f4",
    "partners": "<i4",
    "covers": "<i4",
    "flags": "<i4",
}


def _columns(found: sqlite3.Cursor) -> dict[str, Column]:
    chunks: list[list[Column]] = []
    while rows := found.fetchmany(_CHUNK):
        chunk = np.array(rows, float)  # None becomes NaN, and whole numbers stay exact
        chunks.append([chunk[:, place].astype(kind) for place, kind in enumerate(_TYPES.values())])
    if not chunks:
        return {name: np.empty(0, kind) for name, kind in _TYPES.items()}
    return {
        name: np.concatenate(parts)
        for name, parts in zip(_TYPES, zip(*chunks, strict=True), strict=True)
    }


def _used(numbers: Column) -> list[int]:
    found: list[int] = np.unique(numbers).tolist()
    return found


def _mapped(numbers: Column, places: dict[int, int]) -> Column:
    """``numbers`` as their places; they are dense, so that a table of them all is small."""
    lookup = np.zeros(int(numbers.max(initial=0)) + 1, np.int32)
    for number, place in places.items():
        if number < len(lookup):
            lookup[number] = place
    found: Column = lookup[numbers]
    return found


def _sets(database: sqlite3.Connection) -> tuple[tuple[frozenset[str], ...], dict[int, int]]:
    rows = database.execute("SELECT id, members FROM sets ORDER BY members").fetchall()
    places = {number: place for place, (number, _) in enumerate(rows)}
    return tuple(frozenset(_members(members)) for _, members in rows), places


def _records(
    database: sqlite3.Connection,
    table: EvidenceTable,
    ids: Column,
    names: Mapping[int, str],
    rows: Sequence[int],
) -> list[EvidencePiece]:
    """The pieces of some rows: what no column holds is asked of the file."""
    numbers: list[int] = ids[np.array(rows, np.intp)].tolist()
    more: dict[int, tuple[int, int, str, int | None]] = {}
    for start in range(0, len(numbers), _IDS):
        some = numbers[start : start + _IDS]
        marks = ",".join("?" * len(some))
        found = database.execute(f"{_NAMES_OF} WHERE evidence.id IN ({marks})", some)
        more.update((one[0], one[1:]) for one in found)
    return [
        _record(table, row, names, more[number])
        for row, number in zip(rows, numbers, strict=True)
        if number in more  # else somebody dropped it meanwhile
    ]


def _record(
    table: EvidenceTable,
    row: int,
    names: Mapping[int, str],
    more: tuple[int, int, str, int | None],
) -> EvidencePiece:
    source, component, text, report = more
    return EvidencePiece(
        host=table.hosts[table.host[row]],
        kind=KINDS[table.kind[row]],
        class_=table.classes[table.class_[row]],
        source=names[source],
        run=table.runs[table.run[row]],
        seen_s=float(table.seen_s[row]),
        text=text,
        confidence=round(float(table.confidence[row]), 6),
        conclusive=bool(table.conclusive[row]),
        clears=bool(table.clears[row]),
        partners=tuple(sorted(table.sets[table.partners[row]])),
        component=names[component] or None,
        report=None if report is None else names[report],
        until_s=_known(table.until_s[row]),
        uptime_s=_known(table.uptime_s[row]),
        covers=tuple(sorted(table.sets[table.covers[row]])),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _piece(row: Sequence[Any]) -> EvidencePiece:
    return EvidencePiece(
        host=row[1],
        kind=EvidenceKind(row[2]),
        class_=row[3],
        source=row[4],
        run=row[5],
        seen_s=row[6],
        text=row[7],
        confidence=row[8],
        conclusive=bool(row[9]),
        clears=bool(row[10]),
        partners=_members(row[11]),
        component=row[12] or None,
        report=row[13],
        until_s=row[14],
        uptime_s=row[15],
        covers=_members(row[16]),
    )


def hosts(database: sqlite3.Connection) -> list[str]:
    """All hosts, by name."""
    found = database.execute(
        "SELECT name FROM names WHERE id IN (SELECT host FROM evidence) ORDER BY name"
    )
    return [name for (name,) in found]


def recorded_after(database: sqlite3.Connection, hosts: Iterable[str]) -> dict[str, int]:
    """The newest action when the last conclusive piece against each host came, where known."""
    wanted = msgspec.json.encode([storable(host) for host in hosts]).decode()
    return dict(database.execute(_ORDER, (wanted,)).fetchall())


def count(database: sqlite3.Connection) -> int:
    """How many pieces there are."""
    return int(database.execute("SELECT count(*) FROM evidence").fetchone()[0])


class _Sets:
    """Numbers for sets of names, each of which stands there once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._numbers: dict[tuple[str, ...], int] = {}

    def number(self, members: tuple[str, ...]) -> int:
        found = self._numbers.get(members)
        if found is None:
            found = self._numbers[members] = self._stored(members)
        return found

    def _stored(self, members: tuple[str, ...]) -> int:
        text = msgspec.json.encode([storable(member) for member in members]).decode()
        row = self._database.execute("SELECT id FROM sets WHERE members = ?", (text,)).fetchone()
        if row is not None:
            return int(row[0])
        added = self._database.execute("INSERT INTO sets (members) VALUES (?)", (text,)).lastrowid
        return int(added or 0)


_decode: Callable[[str], tuple[str, ...]] = msgspec.json.Decoder(tuple[str, ...]).decode


def _members(text: str) -> tuple[str, ...]:
    return _decode(text)
