"""Times of reports as seconds, and names for runs."""

import hashlib
from datetime import UTC, datetime

from ncdiag.model.json_text import encode


def seconds_of(started: str) -> float | None:
    """UTC seconds since the epoch of an ISO 8601 time, ``None`` where it is none."""
    try:
        found = datetime.fromisoformat(started)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def ended_s(started: str, seconds: float) -> float:
    """When a run ended that began at ``started``; 0, long ago, where that is no time."""
    began = seconds_of(started)
    return 0.0 if began is None else began + max(seconds, 0.0)


def run_name(source: str, *content: object) -> str:
    """A name for a run that is told by its content, the same each time."""
    return f"{source} {hashlib.sha256(encode(content)).hexdigest()[:24]}"
