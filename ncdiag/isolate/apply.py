"""Carries decisions out at a place, and takes back what was carried out.

Each step is written into the ledger before it is taken, and how it went after it. Whoever comes
after a run that was killed first asks the place how the steps went that were begun, so that the end
is the same as without the kill. All of it happens under the ledger's lock: a second ncdiag waits,
and then plans with what the first one left.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from ncdiag.isolate.places.base import Asked, LeftAloneError, Place, given_reason
from ncdiag.isolate.planning import Situation, is_as_left, make_plan, why_left_alone, why_refused
from ncdiag.isolate.policy import Budget
from ncdiag.isolate.taken_back import SOMEBODY
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.isolation import Change, Decision, IsolationPlan, PlaceState
from ncdiag.model.nodes import fold
from ncdiag.store.ledger import Ledger
from ncdiag.store.ledger_records import ActionRecord, ActionState, AuditEntry

# What another ncdiag needs to drain hundreds of nodes.
WAIT_S: Final = 60.0
_NOT_TRIED: Final = "not tried, since the place no longer answers"
_NO_ROOM: Final = "not tried, since a host that was to make room for it is still out"
_INTERRUPTED: Final = "interrupted before it was carried out"


class Decide(Protocol):
    """Makes decisions with what is isolated now; called under the lock."""

    def __call__(self, isolated: Mapping[str, ActionRecord]) -> Sequence[Decision]:
        """The decisions."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who changes the list: ``plan`` names this run of ncdiag, the rest is for the audit trail."""

    plan: str
    user: str
    machine: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What plans are made by.

    ``fleet`` are the hosts that decisions may be about, ``None`` for all that the place has.
    """

    decide: Decide
    budget: Budget
    fleet: Collection[str] | None = None
    leaves: Mapping[str, str] = field(default_factory=dict)


def plan(ledger: Ledger, place: Place, rules: Rules) -> IsolationPlan:
    """What :func:`apply` would do now; writes nothing."""
    situation = _situation(ledger, place.key, place.ask(), rules)
    return _plan(situation, rules)


def _situation(ledger: Ledger, key: str, asked: Asked, rules: Rules) -> Situation:
    done = [*_settled(ledger, key, asked)]
    done += _lost(done, asked)
    return Situation(place=key, asked=asked, done=done, fleet=rules.fleet, leaves=rules.leaves)


def _plan(situation: Situation, rules: Rules) -> IsolationPlan:
    return make_plan(rules.decide(_isolated(situation.done)), situation, rules.budget)


def apply(ledger: Ledger, place: Place, rules: Rules, who: Who) -> IsolationPlan:
    """Plan and carry the plan out; the changes say how each went.

    Raises :class:`UndecidedError` where the place cannot be asked, or another ncdiag is at it.
    """
    with ledger.locked(wait_s=WAIT_S):
        asked = place.ask()
        reconcile(ledger, place.key, asked)
        for action in _lost(ledger.actions(place.key), asked):
            ledger.record_action(action)
        situation = _situation(ledger, place.key, asked, rules)
        made = _plan(situation, rules)
        if made.refused is None:

            def fits(changes: Sequence[Change]) -> bool:
                return why_refused(changes, situation, rules.budget) is None

            changes = _carry_out(ledger, place, asked, made.changes, who, fits=fits)
            made = replace(made, changes=changes)
            about = _about(made.changes)
        else:
            about = f"refused: {made.refused}"
        _note(ledger, "apply", f"{place.key}: {about}", who)
    return made


def plan_undo(ledger: Ledger, place: Place, hosts: Sequence[str] | None) -> tuple[Change, ...]:
    """What :func:`undo` would do now; writes nothing."""
    return _plan_undo(ledger, place.key, place.ask(), hosts)


def _plan_undo(
    ledger: Ledger, key: str, asked: Asked, hosts: Sequence[str] | None
) -> tuple[Change, ...]:
    isolated = _isolated([*_settled(ledger, key, asked)])
    changes = []
    for host, action in _chosen(isolated, hosts, key, asked).items():
        standing, reason = asked.of(host), given_reason(action.reason)
        changes.append(
            Change(
                host=host,
                place=key,
                isolate=False,
                reason=reason,
                before=standing.state,
                skipped=why_left_alone(standing, reason),
            )
        )
    return tuple(changes)


def undo(ledger: Ledger, place: Place, hosts: Sequence[str] | None, who: Who) -> tuple[Change, ...]:
    """Release ``hosts``, or those of the newest plan: what ncdiag isolated and nobody changed.

    What somebody has changed since is left as it is, and is no longer ncdiag's.
    """
    with ledger.locked(wait_s=WAIT_S):
        asked = place.ask()
        reconcile(ledger, place.key, asked)
        planned = _plan_undo(ledger, place.key, asked, hosts)
        changes = _carry_out(ledger, place, asked, planned, who)
        for change in changes:
            if change.skipped is not None:
                number = ledger.record_action(_record(change, who))
                ledger.finish_action(number, ActionState.DONE, error=change.skipped)
        _note(ledger, "undo", f"{place.key}: {_about(changes)}", who)
    return changes


def reconcile(ledger: Ledger, key: str, asked: Asked) -> None:
    """Write down how the steps went that were begun and of which nobody knows more."""
    before = {action.number: action for action in ledger.actions(key)}
    for action in _settled(ledger, key, asked):
        if action.state is not before[action.number].state:
            ledger.finish_action(action.number, action.state, error=action.error)


def _settled(ledger: Ledger, key: str, asked: Asked) -> Iterator[ActionRecord]:
    """All actions at the place; of those that were begun, what the place says of them."""
    for action in ledger.actions(key):
        if action.state is ActionState.INTENDED:
            yield _as_found(action, asked)
        else:
            yield action


def _as_found(action: ActionRecord, asked: Asked) -> ActionRecord:
    standing = asked.of(action.host)
    ours = is_as_left(standing, given_reason(action.reason))
    if action.isolate is ours:
        return replace(action, state=ActionState.DONE)
    why = _INTERRUPTED if standing.state is PlaceState.AVAILABLE or ours else standing.why
    return replace(action, state=ActionState.FAILED, error=why or standing.state.value)


def _lost(done: Sequence[ActionRecord], asked: Asked) -> list[ActionRecord]:
    """A release for each host that ncdiag isolated and somebody else has changed since.

    It is dated like the isolation: evidence since then is new, whenever the change was made.
    """
    return [
        replace(
            action,
            isolate=False,
            by=SOMEBODY,
            state=ActionState.DONE,
            error=why_left_alone(asked.of(host), given_reason(action.reason)),
        )
        for host, action in _isolated(done).items()
        if asked.of(host).state is not PlaceState.MISSING
        and not is_as_left(asked.of(host), given_reason(action.reason))
    ]


def _isolated(done: Sequence[ActionRecord]) -> dict[str, ActionRecord]:
    """The hosts whose isolation was carried out, and no release of which was."""
    found: dict[str, ActionRecord] = {}
    for action in done:
        if action.state is not ActionState.DONE:
            continue
        if action.isolate:
            found[action.host] = action
        else:
            found.pop(action.host, None)
    return found


def _chosen(
    isolated: Mapping[str, ActionRecord], hosts: Sequence[str] | None, key: str, asked: Asked
) -> Mapping[str, ActionRecord]:
    if hosts is not None:
        named = {asked.own_name(host): action for host, action in isolated.items()}
        found = {host: named.get(asked.own_name(host)) for host in hosts}
        if missing := next((host for host, action in found.items() if action is None), None):
            raise UsageError(f"{missing}: ncdiag has not isolated it at {key}")
        return {action.host: action for action in found.values() if action is not None}
    newest = max(isolated.values(), key=lambda action: action.number, default=None)
    if newest is None:
        return {}
    return {host: action for host, action in isolated.items() if action.plan == newest.plan}


def _carry_out(
    ledger: Ledger,
    place: Place,
    asked: Asked,
    changes: Sequence[Change],
    who: Who,
    *,
    fits: Callable[[Sequence[Change]], bool] = lambda _: True,
) -> tuple[Change, ...]:
    """The changes with how they went; none is isolated unless ``fits`` after the releases."""
    found: list[Change] = []
    stopped: str | None = None
    for place_in_row, change in enumerate(changes):
        first = change.isolate and not any(one.isolate for one in found)
        if first and stopped is None and not fits((*found, *changes[place_in_row:])):
            stopped = _NO_ROOM
        if change.skipped is not None:
            found.append(change)
        elif stopped is not None:
            found.append(replace(change, error=stopped))
        else:
            made, silent = _step(ledger, place, change, asked.own_name(change.host), who)
            found.append(made)
            stopped = _NOT_TRIED if silent else None
    return tuple(found)


def _step(ledger: Ledger, place: Place, change: Change, name: str, who: Who) -> tuple[Change, bool]:
    """The change with how it went, and whether the place no longer answers.

    Where it does not answer nobody knows how it went: the step stays written down as begun.
    """
    number = ledger.record_action(_record(change, who))
    try:
        if change.isolate:
            place.isolate(name, change.reason, who.plan)
        else:
            place.release(name, change.reason)
    except LeftAloneError as error:
        ledger.finish_action(number, ActionState.FAILED, error=f"{error}")
        return replace(change, skipped=f"{error}"), False
    except UndecidedError as error:
        return replace(change, error=f"{error}"), True
    except NcdiagError as error:
        ledger.finish_action(number, ActionState.FAILED, error=f"{error}")
        return replace(change, error=f"{error}"), False
    ledger.finish_action(number, ActionState.DONE)
    return replace(change, done=True), False


def _record(change: Change, who: Who) -> ActionRecord:
    return ActionRecord(
        place=change.place,
        host=change.host,
        isolate=change.isolate,
        reason=change.reason,
        plan=who.plan,
        by=f"{who.user}@{who.machine}",
        intended_s=time.time(),
    )


def _about(changes: Sequence[Change]) -> str:
    parts = {
        "isolated": [one.host for one in changes if one.done and one.isolate],
        "released": [one.host for one in changes if one.done and not one.isolate],
        "left alone": [one.host for one in changes if one.skipped],
        "failed": [one.host for one in changes if one.error],
    }
    told = [f"{word} {fold(hosts)}" for word, hosts in parts.items() if hosts]
    return "; ".join(told) or "nothing to do"


def _note(ledger: Ledger, what: str, about: str, who: Who) -> None:
    ledger.note(
        AuditEntry(
            what=what,
            user=who.user,
            machine=who.machine,
            command=who.command,
            about=about,
            at_s=time.time(),
        )
    )
