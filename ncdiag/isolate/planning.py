"""What has to change at a place so that decisions hold there; nothing is asked or done here.

Hosts are released before others are isolated, which may need the room.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ncdiag.isolate.budget import hold_back
from ncdiag.isolate.places.base import Asked, Standing, given_reason
from ncdiag.isolate.policy import Budget
from ncdiag.isolate.taken_back import why_not_again
from ncdiag.model.isolation import Action, Change, Decision, IsolationPlan, PlaceState
from ncdiag.store.ledger_records import ActionRecord, ActionState
from ncdiag.store.redact import redacted_text

_WANTED_OUT: Final = frozenset((Action.ISOLATE, Action.KEEP))
_OUT: Final = frozenset((PlaceState.OURS, PlaceState.THEIRS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a plan is made from.

    ``done`` has all that was carried out at the place, the oldest first. ``fleet`` are the hosts
    that decisions may be about, ``None`` for all that the place has.
    """

    place: str
    asked: Asked
    done: Sequence[ActionRecord] = ()
    fleet: Collection[str] | None = None
    leaves: Mapping[str, str] = field(default_factory=dict)

    def last(self) -> Mapping[str, ActionRecord]:
        """The last action of each host that was carried out, by what the place calls the host."""
        done = (action for action in self.done if action.state is ActionState.DONE)
        return {self.asked.own_name(action.host): action for action in done}


def make_plan(decisions: Sequence[Decision], situation: Situation, budget: Budget) -> IsolationPlan:
    """The steps that are missing, and the reason where none may be taken at all."""
    fleet = _fleet(situation)
    last = situation.last()
    named: dict[str, list[Decision]] = {}
    for decision in sorted(decisions, key=lambda one: one.host):
        named.setdefault(situation.asked.own_name(decision.host), []).append(decision)
    found = (
        _change(min(some, key=_weakness), situation, last.get(name), fleet)
        for name, some in named.items()
    )
    steps = sorted(filter(None, found), key=lambda change: change.isolate)
    return IsolationPlan(
        decisions=tuple(decisions),
        changes=tuple(steps),
        refused=why_refused(steps, situation, budget),
        hosts=len(fleet),
        leaves=situation.leaves,
    )


def why_refused(changes: Sequence[Change], situation: Situation, budget: Budget) -> str | None:
    """Why the safety budget forbids these steps, whoever took out those who are out already.

    It is a share of the fleet, and so many hosts: of the whole place those that ncdiag took out, so
    that who asks about it in parts gets no more. What is left out, or failed, makes no room.
    """
    asked, fleet = situation.asked, _fleet(situation)
    steps = [
        Decision(
            host=asked.own_name(change.host),
            action=Action.ISOLATE if change.isolate else Action.RELEASE,
            reason=change.reason,
            confidence=1.0,
        )
        for change in changes
        if change.skipped is None and change.error is None
    ]
    out = {name for name, one in asked.standings.items() if one.state in _OUT}
    ours = {name for name in out if asked.standings[name].state is PlaceState.OURS}
    leaves = {asked.own_name(host): leaf for host, leaf in situation.leaves.items()}
    held = hold_back(
        steps, budget, out & fleet, hosts=len(fleet), leaves=leaves, beside=ours - fleet
    )
    return next((step.held_back for step in held if step.held_back), None)


def _weakness(decision: Decision) -> int:
    """Of decisions on one host under several names, whoever wants it out goes before others.

    Who is held back takes nobody out, and lets nobody in either.
    """
    if decision.action in _WANTED_OUT:
        return 1 if decision.held_back else 0
    return 2 if decision.action is Action.RELEASE else 3


def reason_of(decision: Decision) -> str:
    """Why, as a place and the ledger keep it."""
    return given_reason(redacted_text(decision.reason))


def _fleet(situation: Situation) -> frozenset[str]:
    """Hosts by the names that the place has for them; who is not there makes no fleet larger."""
    known = frozenset(situation.asked.standings)
    if situation.fleet is None:
        return known
    return known.intersection(map(situation.asked.own_name, situation.fleet))


def _change(
    decision: Decision,
    situation: Situation,
    last: ActionRecord | None,
    fleet: Collection[str],
) -> Change | None:
    """The step for one host, ``None`` where it stands as it should."""
    standing = situation.asked.of(decision.host)
    change = Change(
        host=decision.host,
        place=situation.place,
        isolate=decision.action in _WANTED_OUT,
        reason=reason_of(decision),
        before=standing.state,
    )
    if decision.action is Action.RELEASE and last is not None and last.isolate:
        reason = given_reason(last.reason)
        why = why_left_alone(standing, reason)
        return replace(change, host=last.host, reason=reason, skipped=why)
    if not change.isolate or decision.held_back:
        return None
    if standing.state is PlaceState.OURS and last is not None and last.isolate:
        return None
    return replace(
        change, skipped=_why_not_isolated(decision, standing, last, fleet, situation.done)
    )


def _why_not_isolated(
    decision: Decision,
    standing: Standing,
    last: ActionRecord | None,
    fleet: Collection[str],
    done: Sequence[ActionRecord],
) -> str | None:
    if standing.state is PlaceState.OURS:
        return "it is isolated already, by an ncdiag with another store"
    if standing.state is not PlaceState.AVAILABLE:
        return standing.why or standing.state.value
    if standing.name not in fleet:
        return "it is not among --nodes"
    return None if last is None else why_not_again(decision, last, done)


def why_left_alone(standing: Standing, reason: str) -> str | None:
    """Why a host that ncdiag isolated for ``reason`` is not released, ``None`` where it may be."""
    if standing.state is PlaceState.AVAILABLE or is_as_left(standing, reason):
        return None
    return f"changed since: {standing.why or standing.reason or standing.state.value}"


def is_as_left(standing: Standing, reason: str) -> bool:
    """Whether a host stands as ncdiag left it when it isolated it for ``reason``."""
    return standing.state is PlaceState.OURS and standing.reason == reason
