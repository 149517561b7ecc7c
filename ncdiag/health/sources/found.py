"""What one source gives, and what it is when it gives nothing."""

from dataclasses import dataclass, field
from typing import Any

from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.health import SourceState


@dataclass(frozen=True, slots=True)
class Found:
    """How asking a source went; ``facts`` are by the names of fields of ``HealthFacts``."""

    state: SourceState
    reason: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def read(**facts: Any) -> Found:
    """The source was there and told this; what is ``None`` is not known."""
    known = {name: value for name, value in facts.items() if value is not None}
    return Found(SourceState.READ, None, known)


def absent(reason: str) -> Found:
    """The host has no such thing."""
    return Found(SourceState.ABSENT, reason)


def denied(reason: str) -> Found:
    """It is there, and we may not see it."""
    return Found(SourceState.DENIED, reason)


def failed(reason: str) -> Found:
    """It is there, and broken."""
    return Found(SourceState.FAILED, reason)


def unanswered(answer: Answer) -> Found | None:
    """What to give where a program or its record gave nothing; ``None`` where it answered."""
    if answer.outcome is Outcome.CAPTURED:
        return None
    reason = answer.reason or "no reason given"
    if answer.outcome is Outcome.ABSENT:
        return absent(reason)
    if answer.timed_out:
        return Found(SourceState.TIMED_OUT, reason)
    return denied(reason) if answer.denied else failed(reason)
