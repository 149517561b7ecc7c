"""Actions and the audit trail in the tables of a store, within a transaction of its caller."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from ncdiag.model.errors import UsageError
from ncdiag.store.ledger_records import ActionRecord, ActionState, AuditEntry
from ncdiag.store.numbering import Numbering, storable
from ncdiag.store.redact import redacted_text

_MAX_CHARS: Final = 4096
_ACTIONS: Final = """
    SELECT place, names.name, isolate, reason, plan, by, intended_s, changed_s, state, error,
           actions.id
    FROM actions JOIN names ON names.id = actions.host
    WHERE (:place IS NULL OR place = :place) AND (:host IS NULL OR names.name = :host)
      AND (:plan IS NULL OR plan = :plan)
    ORDER BY actions.id
"""
_OUTS: Final = """
    SELECT names.name, intended_s FROM actions JOIN names ON names.id = actions.host
    WHERE isolate AND state != 'failed' ORDER BY intended_s
"""
_AUDIT: Final = """
    SELECT what, user, machine, command, about, at_s, id FROM audit ORDER BY id DESC LIMIT ?
"""


def put_action(database: sqlite3.Connection, action: ActionRecord) -> int:
    """The number of the row that ``action`` became."""
    added = database.execute(
        "INSERT INTO actions (place, host, isolate, reason, plan, intended_s, changed_s, by, state,"
        " error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            storable(action.place),
            Numbering(database, "names").number(action.host),
            action.isolate,
            _line(action.reason),
            storable(action.plan),
            action.intended_s,
            action.intended_s if action.changed_s is None else action.changed_s,
            storable(action.by),
            action.state.value,
            None if action.error is None else _line(action.error),
        ),
    ).lastrowid
    return int(added or 0)


def finish_action(
    database: sqlite3.Connection, number: int, state: ActionState, error: str | None, now_s: float
) -> None:
    """Raises :class:`UsageError` where there is no such action."""
    changed = database.execute(
        "UPDATE actions SET state = ?, error = ?, changed_s = ? WHERE id = ?",
        (state.value, None if error is None else _line(error), now_s, number),
    ).rowcount
    if not changed:
        raise UsageError(f"there is no action {number} in the ledger")


def actions(
    database: sqlite3.Connection, place: str | None, host: str | None, plan: str | None
) -> list[ActionRecord]:
    """The oldest first."""
    wanted = {"place": place, "host": host and storable(host), "plan": plan}
    return [_action(row) for row in database.execute(_ACTIONS, wanted)]


def isolated(database: sqlite3.Connection, place: str | None) -> dict[str, ActionRecord]:
    """The last isolating action of each host that no release followed that was carried out."""
    found: dict[tuple[str, str], ActionRecord] = {}
    for action in actions(database, place, None, None):
        key = (action.place, action.host)
        if action.isolate and action.state is not ActionState.FAILED:
            found[key] = action
        elif not action.isolate and action.state is ActionState.DONE:
            found.pop(key, None)
    return {host: action for (_, host), action in sorted(found.items())}


def outs(database: sqlite3.Connection) -> dict[str, tuple[float, ...]]:
    """When each host was isolated."""
    found: dict[str, list[float]] = {}
    for host, when in database.execute(_OUTS):
        found.setdefault(host, []).append(when)
    return {host: tuple(times) for host, times in found.items()}


def put_audit(database: sqlite3.Connection, entry: AuditEntry) -> None:
    """At the end, and for good."""
    database.execute(
        "INSERT INTO audit (at_s, what, user, machine, command, about) VALUES (?, ?, ?, ?, ?, ?)",
        (
            entry.at_s,
            storable(entry.what),
            storable(entry.user),
            storable(entry.machine),
            _line(entry.command),
            _line(entry.about),
        ),
    )


def audit(database: sqlite3.Connection, last: int) -> list[AuditEntry]:
    """The oldest first."""
    rows = database.execute(_AUDIT, (last,)).fetchall()
    return [
        AuditEntry(
            what=row[0],
            user=row[1],
            machine=row[2],
            command=row[3],
            about=row[4],
            at_s=row[5],
            number=row[6],
        )
        for row in reversed(rows)
    ]


def _action(row: Sequence[Any]) -> ActionRecord:
    return ActionRecord(
        place=row[0],
        host=row[1],
        isolate=bool(row[2]),
        reason=row[3],
        plan=row[4],
        by=row[5],
        intended_s=row[6],
        changed_s=row[7],
        state=ActionState(row[8]),
        error=row[9],
        number=row[10],
    )


def _line(text: str) -> str:
    return storable(redacted_text(text[:_MAX_CHARS]))
