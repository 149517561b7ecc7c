"""The isolation list, plans and the audit trail as CSV: a row a host, a step, an entry."""

import csv
import io
from collections.abc import Iterable, Sequence

from ncdiag.model.isolation import Change
from ncdiag.model.text import visible
from ncdiag.report.csv_cells import as_text
from ncdiag.report.isolation.records import IsolationList, iso
from ncdiag.store.ledger_records import AuditEntry

_Cell = str | float | None


def render_list(found: IsolationList) -> bytes:
    """A row for each host."""
    heads = ("host", "action", "confidence", "until", "sticky", "lemon_score", "held_back")
    return _render(
        (*heads, "isolated_at", "reason"),
        (
            (
                one.host,
                one.action.value,
                one.confidence,
                iso(one.until_s),
                str(one.sticky).lower(),
                one.lemon_score,
                one.held_back,
                ";".join(found.places(one.host)),
                one.reason,
            )
            for one in found.decisions
        ),
    )


def render_changes(changes: Iterable[Change]) -> bytes:
    """A row for each step."""
    return _render(
        ("host", "place", "step", "before", "done", "skipped", "error", "reason"),
        (
            (
                one.host,
                one.place,
                "isolate" if one.isolate else "release",
                one.before.value,
                str(one.done).lower(),
                one.skipped,
                one.error,
                one.reason,
            )
            for one in changes
        ),
    )


def render_audit(entries: Iterable[AuditEntry]) -> bytes:
    """A row for each entry."""
    return _render(
        ("at", "user", "machine", "what", "command", "about"),
        ((iso(e.at_s), e.user, e.machine, e.what, e.command, e.about) for e in entries),
    )


def _render(heads: Sequence[str], rows: Iterable[Sequence[_Cell]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    for row in rows:
        writer.writerow([as_text(visible(one)) if isinstance(one, str) else one for one in row])
    return text.getvalue().encode()
