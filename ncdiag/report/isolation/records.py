"""What is told of the isolation list, and the words that all formats share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from ncdiag.model.isolation import Action, Decision, EvidencePiece
from ncdiag.store.ledger_records import ActionRecord, ActionState

SCHEMA: Final = "ncdiag/isolation/1"
_REPAIRED: Final = "repaired"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationList:
    """Decisions, and which hosts are isolated where now; ``all_evidence`` is of one host."""

    decisions: Sequence[Decision]
    isolated: Sequence[ActionRecord] = ()
    all_evidence: Sequence[EvidencePiece] = ()
    actions: Sequence[ActionRecord] = field(default=())

    def is_empty(self) -> bool:
        """Whether nothing is told."""
        return not (self.decisions or self.isolated or self.all_evidence or self.actions)

    def places(self, host: str) -> Sequence[str]:
        """Where ncdiag has isolated ``host``."""
        return tuple(action.place for action in self.isolated if action.host == host)

    def by_action(self) -> Mapping[Action, Sequence[str]]:
        """The hosts that each action is decided of; those that are held back are watched."""
        found: dict[Action, list[str]] = {}
        for decision in self.decisions:
            action = Action.WATCH if decision.held_back else decision.action
            found.setdefault(action, []).append(decision.host)
        return found


def until(decision: Decision) -> str:
    """When a decision ends by itself; nothing where it is held back and has not begun."""
    if decision.held_back is not None:
        return ""
    if decision.until_s is not None:
        return moment(decision.until_s)
    return _REPAIRED if decision.sticky else ""


def moment(seconds: float | None) -> str:
    """``2026-11-30 12:00`` in UTC, nothing for none."""
    return "" if seconds is None else f"{_utc(seconds):%Y-%m-%d %H:%M}"


def iso(seconds: float | None) -> str | None:
    """``2026-11-30T12:00:00Z``."""
    return None if seconds is None else f"{_utc(seconds):%Y-%m-%dT%H:%M:%SZ}"


def how_it_went(action: ActionRecord) -> str:
    """``isolated``, ``release failed`` and so on."""
    if action.state is ActionState.DONE:
        return "isolated" if action.isolate else "released"
    what = "isolation" if action.isolate else "release"
    return f"{what} {'failed' if action.state is ActionState.FAILED else 'begun'}"


def _utc(seconds: float) -> datetime:
    """The nearest moment that a calendar has."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), 253402300799.0), UTC)
