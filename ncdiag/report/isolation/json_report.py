"""The isolation list, plans and the audit trail as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncdiag.model.isolation import Change, Decision, EvidencePiece, IsolationPlan
from ncdiag.report.isolation.records import SCHEMA, IsolationList, iso
from ncdiag.report.json_document import layout
from ncdiag.store.ledger_records import ActionRecord, AuditEntry


def render_list(found: IsolationList) -> bytes:
    """Every host that something speaks against, and of one host all evidence and actions."""
    document = {
        "schema": SCHEMA,
        "kind": "list",
        "hosts": [_decision(one, found.places(one.host)) for one in found.decisions],
        "isolated": [_action(one) for one in found.isolated],
    }
    if found.all_evidence or found.actions:
        document["evidence"] = [_piece(one) for one in found.all_evidence]
        document["actions"] = [_action(one) for one in found.actions]
    return layout(document)


def render_plan(plan: IsolationPlan, place: str | None, *, carried_out: bool) -> bytes:
    """The plan, with how each step went where it was carried out."""
    return layout(
        {
            "schema": SCHEMA,
            "kind": "plan",
            "place": place,
            "carried_out": carried_out and plan.refused is None,
            "refused": plan.refused,
            "fleet_hosts": plan.hosts,
            "changes": [_change(one) for one in plan.changes],
            "hosts": [_decision(one, ()) for one in plan.decisions],
        }
    )


def render_undo(changes: Iterable[Change], place: str | None, *, carried_out: bool) -> bytes:
    """The hosts that are taken back in."""
    return layout(
        {
            "schema": SCHEMA,
            "kind": "undo",
            "place": place,
            "carried_out": carried_out,
            "changes": [_change(one) for one in changes],
        }
    )


def render_audit(entries: Iterable[AuditEntry]) -> bytes:
    """The audit trail, the oldest first."""
    rows = [
        {
            "number": entry.number,
            "at": iso(entry.at_s),
            "user": entry.user,
            "machine": entry.machine,
            "what": entry.what,
            "command": entry.command,
            "about": entry.about,
        }
        for entry in entries
    ]
    return layout({"schema": SCHEMA, "kind": "audit", "entries": rows})


def render_document(kind: str, document: Mapping[str, Any]) -> bytes:
    """``document`` under the schema's name."""
    return layout({"schema": SCHEMA, "kind": kind, **document})


def _decision(decision: Decision, places: Sequence[str]) -> dict[str, Any]:
    return {
        "host": decision.host,
        "action": decision.action.value,
        "reason": decision.reason,
        "confidence": decision.confidence,
        "sticky": decision.sticky,
        "until": iso(decision.until_s),
        "lemon_score": decision.lemon_score,
        "held_back": decision.held_back,
        "isolated_at": list(places),
        "evidence": [_piece(piece) for piece in decision.evidence],
    }


def _piece(piece: EvidencePiece) -> dict[str, Any]:
    return {
        "seen": iso(piece.seen_s),
        "source": piece.source,
        "run": piece.run,
        "kind": piece.kind.value,
        "class": piece.class_,
        "component": piece.component,
        "text": piece.text,
        "confidence": piece.confidence,
        "conclusive": piece.conclusive,
        "clears": piece.clears,
        "partners": list(piece.partners),
        "until": iso(piece.until_s),
        "report": piece.report,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "host": change.host,
        "step": "isolate" if change.isolate else "release",
        "reason": change.reason,
        "before": change.before.value,
        "done": change.done,
        "skipped": change.skipped,
        "error": change.error,
    }


def _action(action: ActionRecord) -> dict[str, Any]:
    return {
        "host": action.host,
        "place": action.place,
        "step": "isolate" if action.isolate else "release",
        "state": action.state.value,
        "reason": action.reason,
        "plan": action.plan,
        "by": action.by,
        "at": iso(action.intended_s),
        "error": action.error,
    }
