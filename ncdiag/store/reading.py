"""What is asked of the tables of runs, hosts and links."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ncdiag.model.verdict import HostStatus
from ncdiag.store.numbering import storable
from ncdiag.store.records import HostPoint, LinkPoint, LinkTable, Run

_RUNS: Final = """
    SELECT id, kind, started, seconds, verdict, interrupted, engine, launcher, mode, hosts,
           directory, collective, settings, versions
    FROM runs
    WHERE (:kind IS NULL OR kind = :kind) AND (:since IS NULL OR started >= :since)
    ORDER BY started DESC, id DESC
    LIMIT :last
"""
_CULPRITS: Final = """
    SELECT culprits.kind, names.name FROM culprits JOIN names ON names.id = culprits.name
    WHERE run = ? ORDER BY place
"""
_HOST: Final = """
    SELECT names.name, hosts.run, runs.started, runs.engine, hosts.status, hosts.efficiency,
           texts.text, hosts.send_gbit_per_s, hosts.receive_gbit_per_s, hosts.expected_gbit_per_s,
           hosts.fleet_ratio, hosts.worst_window, hosts.links, hosts.slow_links
    FROM hosts JOIN names ON names.id = hosts.host JOIN runs ON runs.id = hosts.run
         LEFT JOIN texts ON texts.id = hosts.reason
"""
_WHERE_HOST: Final = """
    WHERE hosts.host = (SELECT id FROM names WHERE name = :host)
      AND (:since IS NULL OR runs.started >= :since)
    ORDER BY runs.started DESC, runs.id DESC
    LIMIT :last
"""
_ONE_HOST: Final = _HOST + _WHERE_HOST
_HOSTS_OF_RUN: Final = _HOST + " WHERE hosts.run = ? ORDER BY names.name"
_LINKS: Final = """
    SELECT links.run, runs.started, runs.engine, names.name, links.rail, links.count, links.packed
    FROM links JOIN runs ON runs.id = links.run JOIN names ON names.id = links.source
"""
_WHERE_SOURCE: Final = """
    WHERE links.source = (SELECT id FROM names WHERE name = :source)
      AND (:rail IS NULL OR links.rail = :rail)
      AND (:since IS NULL OR runs.started >= :since)
    ORDER BY runs.started DESC, runs.id DESC, links.rail DESC
"""
_ONE_SOURCE: Final = _LINKS + _WHERE_SOURCE
_OF_RUN: Final = _LINKS + " WHERE links.run = ? ORDER BY links.rowid"
_FIGURES: Final = (
    "measured_gbit_per_s",
    "min_gbit_per_s",
    "expected_gbit_per_s",
    "fleet_gbit_per_s",
    "idle",
)


def runs(
    database: sqlite3.Connection, *, kind: str | None, since: str | None, last: int
) -> list[Run]:
    """The newest ``last`` runs, the oldest of them first."""
    rows = database.execute(_RUNS, {"kind": kind, "since": since, "last": last}).fetchall()
    return [_run(database, row) for row in reversed(rows)]


def host_history(
    database: sqlite3.Connection, host: str, *, since: str | None, last: int
) -> list[HostPoint]:
    """The host's newest ``last`` points, the oldest of them first."""
    wanted = {"host": storable(host), "since": since, "last": last}
    rows = database.execute(_ONE_HOST, wanted).fetchall()
    return [_host(row) for row in reversed(rows)]


def link_history(
    database: sqlite3.Connection,
    source: str,
    target: str,
    *,
    rail: int | None,
    since: str | None,
    last: int,
) -> list[LinkPoint]:
    """The link in the newest ``last`` runs that have it, the oldest of them first."""
    found = database.execute("SELECT id FROM names WHERE name = ?", (storable(target),)).fetchone()
    if found is None:
        return []
    wanted = {"source": storable(source), "rail": rail, "since": since}
    points: list[LinkPoint] = []
    seen: set[int] = set()
    texts = _Texts(database)
    for row in database.execute(_ONE_SOURCE, wanted):
        here = list(_table(row, texts, only=found[0]).points())
        seen |= {point.run for point in here}
        if len(seen) > last:
            break
        points += here
    return points[::-1]


def host_names(database: sqlite3.Connection) -> list[str]:
    """Every host that there is a verdict of, by name."""
    rows = database.execute(
        "SELECT name FROM names WHERE EXISTS (SELECT 1 FROM hosts WHERE host = names.id)"
        " ORDER BY name"
    )
    return [row[0] for row in rows]


def links_of(database: sqlite3.Connection, run: int) -> Iterator[LinkTable]:
    """All links of a run, those of one source and rail at a time."""
    texts = _Texts(database)
    for row in database.execute(_OF_RUN, (run,)):
        yield _table(row, texts)


def hosts_of(database: sqlite3.Connection, run: int) -> Iterator[tuple[str, HostPoint]]:
    """All hosts of a run with their names."""
    for row in database.execute(_HOSTS_OF_RUN, (run,)):
        yield row[0], _host(row)


def _run(database: sqlite3.Connection, row: Sequence[Any]) -> Run:
    number, kind, started, seconds, verdict, interrupted, engine, launcher, mode, *rest = row
    hosts, directory, collective, settings, versions = rest
    blamed = database.execute(_CULPRITS, (number,))
    return Run(
        number=number,
        kind=kind,
        started=started,
        seconds=seconds,
        verdict=verdict,
        interrupted=bool(interrupted),
        engine=engine,
        launcher=launcher,
        mode=mode,
        hosts=hosts,
        directory=directory,
        collective=collective,
        culprits=tuple(name if name == kind else f"{kind} {name}" for kind, name in blamed),
        settings=msgspec.json.decode(settings, type=dict[str, str]),
        versions=msgspec.json.decode(versions, type=dict[str, str]),
    )


def _host(row: Sequence[Any]) -> HostPoint:
    _name, run, started, engine, status, efficiency, reason, send, receive, *rest = row
    expected, fleet_ratio, worst_window, links, slow_links = rest
    return HostPoint(
        run=run,
        started=started,
        engine=engine,
        status=HostStatus(status),
        efficiency=efficiency,
        reason=reason or "",
        send_gbit_per_s=send,
        receive_gbit_per_s=receive,
        expected_gbit_per_s=expected,
        fleet_ratio=fleet_ratio,
        worst_window=worst_window,
        links=links,
        slow_links=slow_links,
    )


class _Texts:
    """Looks each number of names and texts up once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._names: dict[int, str] = {}
        self._texts: dict[int, str | None] = {0: None}

    def name(self, number: int) -> str:
        if number not in self._names:
            self._names[number] = self._find("SELECT name FROM names WHERE id = ?", number)
        return self._names[number]

    def text(self, number: int) -> str | None:
        if number not in self._texts:
            self._texts[number] = self._find("SELECT text FROM texts WHERE id = ?", number)
        return self._texts[number]

    def _find(self, query: str, number: int) -> str:
        found = self._database.execute(query, (number,)).fetchone()
        if found is None:
            raise sqlite3.DatabaseError(f"what has the number {number} is not in it")
        return str(found[0])


def _table(row: Sequence[Any], texts: _Texts, only: int | None = None) -> LinkTable:
    """The links of one row of the table, or those to the host numbered ``only``."""
    # numpy takes a while to load, and who asks for runs or hosts has no use for it.
    from ncdiag.store.packing import STATUSES, unpack

    run, started, engine, source, rail, count, packed = row
    try:
        packed_columns = unpack(packed, count)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"the links of run {run} cannot be read: {error}") from error
    if only is not None:
        wanted = packed_columns["target"] == only
        packed_columns = {name: values[wanted] for name, values in packed_columns.items()}
    columns = {name: values.tolist() for name, values in packed_columns.items()}
    if max(columns["status"], default=0) >= len(STATUSES):
        raise sqlite3.DatabaseError(f"the links of run {run} have an unknown status")
    for name in _FIGURES:
        columns[name] = [None if one != one else one for one in columns[name]]  # noqa: PLR0124
    columns["target"] = [texts.name(one) for one in columns["target"]]
    columns["status"] = [STATUSES[one] for one in columns["status"]]
    columns["round"] = [None if one < 0 else one for one in columns["round"]]
    columns["expected_from"] = [texts.text(one) for one in columns["expected_from"]]
    columns["error"] = [texts.text(one) for one in columns["error"]]
    return LinkTable(
        run=run, started=started, engine=engine, source=source, rail=rail, columns=columns
    )
