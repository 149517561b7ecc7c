"""Events for Elasticsearch: JSON lines with the field names of the Elastic Common Schema."""

from typing import Any, Final

from ncdiag.model.json_text import encode
from ncdiag.report.announce.announcement import Announcement, Item, Status

SCHEMA: Final = "ncdiag/event/1"
_ECS_VERSION: Final = "8.11.0"
_OUTCOMES: Final = {
    Status.PASSED: "success",
    Status.WARNING: "success",
    Status.FAILED: "failure",
    Status.UNDECIDED: "unknown",
}
_LEVELS: Final = {
    Status.PASSED: "info",
    Status.WARNING: "warn",
    Status.FAILED: "error",
    Status.UNDECIDED: "warn",
}


def render_events(announcement: Announcement) -> bytes:
    """A line for the verdict and one for each finding; nothing for what passed."""
    events = [_verdict(announcement)]
    events += [_finding(announcement, item) for item in announcement.findings]
    return b"".join(encode(event) + b"\n" for event in events)


def _verdict(announcement: Announcement) -> dict[str, Any]:
    ours = {
        "hosts": {str(status): announcement.count(status) for status in Status},
        "isolate": announcement.isolate,
        "interrupted": announcement.interrupted,
    }
    message = f"ncdiag {announcement.command}: {announcement.verdict}: {announcement.headline}"
    return _event(announcement, "verdict", announcement.status, message, ours)


def _finding(announcement: Announcement, item: Item) -> dict[str, Any]:
    ours = {"about": item.about, "name": item.name, "status": item.status, "next": item.next}
    named = item.host is None or item.host in item.name
    where = item.name if named else f"{item.host} {item.name}"
    message = f"{where}: {item.text}" if item.text else f"{where}: {item.status}"
    host = item.name if item.about == "host" else item.host
    event = _event(announcement, "finding", item.status, message, ours)
    return event if host is None else event | {"host": {"name": host}}


def _event(
    announcement: Announcement, action: str, status: Status, message: str, ours: dict[str, Any]
) -> dict[str, Any]:
    common = {"schema": SCHEMA, "command": announcement.command, "verdict": announcement.verdict}
    report = {} if announcement.report is None else {"report": announcement.report}
    return {
        "@timestamp": announcement.ended,
        "ecs": {"version": _ECS_VERSION},
        "event": {
            "kind": "alert" if status is Status.FAILED else "event",
            "module": "ncdiag",
            "dataset": f"ncdiag.{announcement.command}",
            "action": action,
            "outcome": _OUTCOMES[status],
            "start": announcement.started,
            "duration": round(announcement.seconds * 1e9),  # in nanoseconds, as the schema has it
        },
        "log": {"level": _LEVELS[status]},
        "message": message,
        "ncdiag": common | report | ours,
    }
