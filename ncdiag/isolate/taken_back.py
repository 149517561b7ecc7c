"""Whom somebody took back in stays in, until something new speaks against it.

That holds wherever the last word on a host was: what ``show`` tells, ``export`` prints and ``plan``
would do is one decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from ncdiag.isolate.places.base import short_name
from ncdiag.model.isolation import Action, Decision
from ncdiag.store.ledger_records import ActionRecord, ActionState

# Who changed a host outside of ncdiag; nobody knows when.
SOMEBODY: Final = "somebody else"


def acted_upon(decisions: Iterable[Decision], actions: Iterable[ActionRecord]) -> list[str]:
    """The hosts decided upon that ncdiag did anything to, by any of their names."""
    names = {short_name(one.host).lower() for one in actions}
    return [one.host for one in decisions if short_name(one.host).lower() in names]


def hold_taken_back(
    decisions: Sequence[Decision], actions: Sequence[ActionRecord]
) -> tuple[Decision, ...]:
    """``decisions``, with each ``isolate`` held back where a host was taken back in since.

    ``actions`` are all there were, the oldest first.
    """
    words = _LastWords.of(actions)
    return tuple(replace(one, held_back=_why_held(one, words, actions)) for one in decisions)


def why_not_again(
    decision: Decision, last: ActionRecord, actions: Iterable[ActionRecord]
) -> str | None:
    """Why a host stays in that ``last`` left in, ``None`` where something new speaks against it.

    New is what was told after it, as far as the ledger knows the order; else what is dated later.
    """
    against = (one.seen_s for one in decision.evidence if one.conclusive and not one.clears)
    since_s = last.intended_s if last.changed_s is None else last.changed_s
    if decision.accused_after is not None:
        is_new = decision.accused_after >= _since(last, actions)
    else:
        is_new = max(against, default=0.0) > since_s
    if is_new:
        return None
    when = ""
    if last.by != SOMEBODY:
        when = f" on {datetime.fromtimestamp(since_s, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{last.by} took it back in{when}, and nothing new speaks against it"


def _since(last: ActionRecord, actions: Iterable[ActionRecord]) -> int:
    """The number of ``last``; where nobody knows when it was, of the isolation that it ended."""
    if last.by != SOMEBODY:
        return last.number
    same = (last.place, last.host, last.plan)
    return min(
        (one.number for one in actions if (one.place, one.host, one.plan) == same),
        default=last.number,
    )


def _why_held(
    decision: Decision, words: "_LastWords", actions: Sequence[ActionRecord]
) -> str | None:
    if decision.action is not Action.ISOLATE or decision.held_back is not None:
        return decision.held_back
    last = words.on(decision.host)
    return None if last is None or last.isolate else why_not_again(decision, last, actions)


@dataclass(frozen=True, slots=True)
class _LastWords:
    """The last action that was carried out on each host, by its name and by its short name."""

    by_name: Mapping[str, ActionRecord] = field(default_factory=dict)
    by_short: Mapping[str, ActionRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, actions: Iterable[ActionRecord]) -> "_LastWords":
        done = [one for one in actions if one.state is ActionState.DONE]
        return cls(
            {one.host.lower(): one for one in done},
            {short_name(one.host).lower(): one for one in done},
        )

    def on(self, host: str) -> ActionRecord | None:
        """The last word on ``host``; one name may be in full where the other is in short."""
        name = host.lower()
        found = (
            self.by_name.get(name),
            self.by_name.get(short_name(name)),
            self.by_short.get(name),
        )
        return max(filter(None, found), key=lambda action: action.number, default=None)
