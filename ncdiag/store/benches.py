"""Puts a benchmark into the tables of a store, and gets the past ones out."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from ncdiag.model.bench import BenchFinding, BenchPoint, BenchReport, BenchSeverity
from ncdiag.store.numbering import Numbering, storable
from ncdiag.store.records import PastCurve
from ncdiag.store.redact import redacted_text

_MAX_INTEGER: Final = 2**63 - 1

_POINT: Final = (
    "size_bytes, time_us, algbw_gb_per_s, busbw_gb_per_s, min_busbw_gb_per_s, max_busbw_gb_per_s,"
    " repeats, wrong, expected_time_us, expected_busbw_gb_per_s, cliff"
)
_POINT_FIELDS: Final = tuple(_POINT.replace(" ", "").split(","))
_CURVE: Final = """
    SELECT curves.run, curves.place, runs.started, runs.engine, runs.verdict, curves.collective,
           curves.host_names, curves.ranks, curves.plateau_busbw_gb_per_s,
           curves.plateau_from_bytes, curves.expected_busbw_gb_per_s, curves.efficiency,
           curves.error
    FROM curves JOIN runs ON runs.id = curves.run
"""
_WHERE: Final = """
    WHERE curves.collective = :collective
      AND (:hosts IS NULL OR curves.hosts = :hosts)
      AND (:engine IS NULL OR runs.engine = :engine)
      AND (:since IS NULL OR runs.started >= :since)
      AND (:before IS NULL OR runs.started < :before)
    ORDER BY runs.started DESC, runs.id DESC, curves.place DESC
    LIMIT :last
"""
_CURVES: Final = _CURVE + _WHERE
_CURVES_OF_RUN: Final = _CURVE + " WHERE curves.run = ? ORDER BY curves.place"


def add_bench(database: sqlite3.Connection, run: int, report: BenchReport) -> None:
    """Add the curves, points and faults of ``report`` to the run numbered ``run``."""
    names = Numbering(database, "names")
    for place, curve in enumerate(report.curves):
        hosts = msgspec.json.encode([storable(name) for name in curve.hosts]).decode()
        error = None if curve.error is None else storable(redacted_text(curve.error))
        database.execute(
            "INSERT INTO curves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run,
                place,
                storable(report.collective),
                len(curve.hosts),
                curve.ranks,
                hosts,
                curve.plateau_busbw_gb_per_s,
                curve.plateau_from_bytes,
                curve.expected_busbw_gb_per_s,
                curve.efficiency,
                error,
            ),
        )
        database.executemany(
            f"INSERT OR REPLACE INTO points (run, place, {_POINT})"  # noqa: S608 - our own names
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (run, place, *(_bounded(getattr(point, name)) for name in _POINT_FIELDS))
                for point in curve.points
            ),
        )

    database.executemany(
        "INSERT INTO culprits (run, place, kind, name, direction, status, confidence, efficiency)"
        " VALUES (?, ?, ?, ?, 'both', 'faulty', 1, 0)",
        (
            (run, place, one.kind.value.replace("_", " "), names.number(_whose(one, report)))
            for place, one in enumerate(report.findings)
            if one.severity is BenchSeverity.FAULT
        ),
    )


def _bounded(value: float | None) -> float | None:
    """The value, or the largest that fits: what foreign files count may be anything."""
    return min(value, _MAX_INTEGER) if isinstance(value, int) else value


def _whose(finding: BenchFinding, report: BenchReport) -> str:
    if finding.host is not None:
        return finding.host
    return report.collective if finding.rank is None else f"rank {finding.rank}"


def past_curves(
    database: sqlite3.Connection,
    collective: str,
    *,
    hosts: int | None,
    engine: str | None,
    since: str | None,
    before: str | None,
    last: int,
) -> list[PastCurve]:
    """The newest ``last`` curves, the oldest of them first."""
    wanted = {
        "collective": storable(collective),
        "hosts": hosts,
        "engine": engine,
        "since": since,
        "before": before,
        "last": last,
    }
    rows = database.execute(_CURVES, wanted).fetchall()
    return [_curve(row, _points(database, row[0], row[1])) for row in reversed(rows)]


def curves_of(database: sqlite3.Connection, run: int) -> list[PastCurve]:
    """All curves of a run, in the order of its report."""
    rows = database.execute(_CURVES_OF_RUN, (run,)).fetchall()
    return [_curve(row, _points(database, row[0], row[1])) for row in rows]


def collectives(database: sqlite3.Connection) -> list[str]:
    """All collectives that a benchmark was recorded of, by name."""
    rows = database.execute("SELECT DISTINCT collective FROM curves ORDER BY collective")
    return [row[0] for row in rows]


def _curve(row: Sequence[object], points: tuple[BenchPoint, ...]) -> PastCurve:
    run, _place, started, engine, verdict, collective, names, ranks, *figures = row
    plateau, plateau_from, expected, efficiency, error = figures
    return msgspec.convert(
        {
            "run": run,
            "started": started,
            "engine": engine,
            "verdict": verdict,
            "collective": collective,
            "hosts": tuple(msgspec.json.decode(str(names))),
            "ranks": ranks,
            "plateau_busbw_gb_per_s": plateau,
            "plateau_from_bytes": plateau_from,
            "expected_busbw_gb_per_s": expected,
            "efficiency": efficiency,
            "error": error,
            "points": points,
        },
        PastCurve,
    )


def _points(database: sqlite3.Connection, run: int, place: int) -> tuple[BenchPoint, ...]:
    rows = database.execute(
        f"SELECT {_POINT} FROM points"  # noqa: S608 - our own names
        " WHERE run = ? AND place = ? ORDER BY size_bytes",
        (run, place),
    )
    return tuple(
        BenchPoint(**dict(zip(_POINT_FIELDS, (*row[:-1], bool(row[-1])), strict=True)))
        for row in rows
    )
