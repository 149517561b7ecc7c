"""Which draft explains which: the order of causes and echoes.

Each rule looks for one kind of cause. Rules come in the order in which they are sure, and a draft
that is explained explains nobody itself.
"""

from collections.abc import Callable, Iterable

from ncdiag.diagnose.postmortem.cascade import cascade
from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Tier
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft, role_of
from ncdiag.diagnose.postmortem.endings import (
    after_failed_call,
    is_bare_exit,
    killed_for_memory,
)
from ncdiag.diagnose.postmortem.pointing import local_hardware, points_at
from ncdiag.diagnose.postmortem.recovery import at_the_end, recovered, store_closed, went_unanswered
from ncdiag.diagnose.postmortem.retold import retold
from ncdiag.diagnose.postmortem.scheduled import after_the_end, ended_early
from ncdiag.diagnose.postmortem.thresholds import CLOCK_SKEW_S, UNANSWERED_CONFIDENCE
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.diagnose.postmortem.workers import in_another_worker
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role
from ncdiag.model.log import NOBODY

Rule = Callable[[Draft, Docket, Case], Draft | None]

# What only the ones who launched the job say; it names no cause.
_REPORTS = frozenset({C.ELASTIC_WORKER_FAILED, C.STORE_FAILURE})
_TIMEOUTS = frozenset({C.TORCH_WATCHDOG_TIMEOUT, C.TORCH_WATCHDOG_STUCK, C.RAS_MISMATCH})

# What ends a rank by itself, whatever others do.
_RAISED = frozenset({C.CUDA_OUT_OF_MEMORY, C.APPLICATION_EXCEPTION})
_GIVEN_UP = frozenset({C.TORCH_WATCHDOG_TIMEOUT, C.TORCH_DESYNC})


def explain(drafts: Docket, case: Case) -> None:
    """Give every draft its final role."""
    for draft in drafts:
        if draft.root and recovered(draft, drafts, case):
            draft.role = Role.WARNING
        elif went_unanswered(draft, case):
            draft.role, draft.confidence = Role.ROOT, UNANSWERED_CONFIDENCE
    for rules in (_FIRST_RULES, _RULES):
        _apply(rules, drafts, case)
    _echoes(drafts, case)


def _apply(rules: Iterable[Rule], drafts: Docket, case: Case) -> None:
    """Try each rule on every draft, the least sure first."""
    ranked = sorted(drafts, key=lambda draft: order(draft, case), reverse=True)
    for rule in rules:
        for draft in ranked:
            if draft.root and (cause := rule(draft, drafts, case)):
                draft.explain_by(cause)


def order(draft: Draft, case: Case) -> tuple[object, ...]:
    """Sorts roots: surer kinds first, then the earliest; what says little is last of its kind."""
    return (draft.tier, is_generic(draft), case.timeline.key(draft.first.place))


def is_generic(draft: Draft) -> bool:
    """Whether a draft only says that something failed."""
    if draft.class_ is C.CUDA_ERROR:
        return not any(event.attributes for event in draft.accusing)
    return draft.rule.generic


def is_echo(draft: Draft) -> bool:
    """Whether a draft is by its kind what others hear of a failure."""
    return bool(draft.rule.echo) and all(role_of(e) is Role.CONSEQUENCE for e in draft.events)


def roots(drafts: Iterable[Draft], case: Case) -> list[Draft]:
    """The drafts that stand as roots, in order."""
    return sorted((d for d in drafts if d.root), key=lambda draft: order(draft, case))


def _exact(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """A message that only says that something failed is explained by any that says what."""
    if not is_generic(draft):
        return None
    told = [
        other
        for other in roots(drafts, case)
        if other is not draft
        and other.class_ not in _REPORTS
        and (other.tier <= Tier.CALL or _gave_up(other, draft, case))
        and (not is_generic(other) or order(other, case) < order(draft, case))
    ]
    own = {event.speaker for event in draft.events} - {NOBODY}
    by_itself = (d for d in told if any(e.speaker in own for e in d.strong))
    return next(by_itself, None) or next(iter(told), None)


def _gave_up(cause: Draft, draft: Draft, case: Case) -> bool:
    """Whether a time-out had ended the job before: what is aborted returns an error."""
    if cause.class_ not in _GIVEN_UP:
        return False
    one, other = cause.first.place, draft.first.place
    return case.timeline.ordered(one, other) and case.timeline.before(one, other)


def _timed_out(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """A time-out is explained by a rank that did not join, a dead process, a fault, before it."""
    if draft.class_ not in _TIMEOUTS:
        return None
    for other in roots(drafts, case):
        if other is draft or other.class_ in _REPORTS:
            continue
        joined = other.class_ is C.TORCH_DESYNC and draft.class_ is not C.TORCH_WATCHDOG_STUCK
        if (other.tier <= Tier.CALL or joined) and (joined or _not_after(other, draft, case)):
            return other
    return None


def _not_after(cause: Draft, draft: Draft, case: Case) -> bool:
    """Whether ``cause`` may have come first; the order in different files alone proves nothing."""
    gap = seconds_between(cause.first.place, draft.first.place)
    if gap is not None:
        return gap >= -CLOCK_SKEW_S
    if cause.first.place.path != draft.first.place.path:
        return True
    if in_another_worker(draft.first, cause.first, case):
        return True
    if case.pasted_below(cause.first, draft.first) or _was_missing(cause, draft, case):
        return True
    return case.timeline.before(cause.first.place, draft.first.place)


def _was_missing(cause: Draft, draft: Draft, case: Case) -> bool:
    """Whether the ranks that raised are none of those that waited: those waited for them.

    Streams of ranks are put one after another, so that lines tell no order.
    """
    if cause.class_ not in _RAISED or draft.class_ is not C.TORCH_WATCHDOG_TIMEOUT:
        return False
    failed, waited = case.ranks_of(cause.accusing), case.ranks_of(draft.accusing)
    return bool(failed and waited) and not failed & waited


def _lost_store(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """A store is lost because whoever held it failed first."""
    if draft.class_ is not C.STORE_FAILURE:
        return None
    for other in roots(drafts, case):
        if other is draft or other.tier >= Tier.RESULT:
            continue
        if _not_after(other, draft, case) or _owed_a_key(other, draft):
            return other
    return None


def _owed_a_key(cause: Draft, draft: Draft) -> bool:
    """Whether the rank ended whose key the others wait for; how long they do orders nothing."""
    gap = seconds_between(cause.first.place, draft.first.place)
    if cause.tier is not Tier.ENDED or gap is not None:
        return False
    ended = {str(event.speaker.rank) for event in cause.accusing}
    waiting = [e for e in draft.strong if e.attributes.get("error", "").startswith("wait timeout")]
    return bool(waiting) and all(event.details.get("from") in ended for event in waiting)


def _reported(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """A report of who launched it stands only where it alone speaks of the failure.

    Of two reports, that of the agent knows the worker, and that of the scheduler only the agent.
    """
    agent = draft.class_ is C.ELASTIC_WORKER_FAILED
    if not agent and not is_bare_exit(draft):
        return None
    for other in roots(drafts, case):
        if other is not draft and other.tier < Tier.RESULT and not (agent and is_bare_exit(other)):
            return other
    return None


# The last of these lets another event speak for a draft, which may change the order.
_FIRST_RULES: tuple[Rule, ...] = (
    cascade,
    ended_early,
    killed_for_memory,
    retold,
    after_failed_call,
)
_RULES: tuple[Rule, ...] = (
    local_hardware,
    points_at,
    _exact,
    _timed_out,
    _lost_store,
    _reported,
    after_the_end,
)


def _echoes(drafts: list[Draft], case: Case) -> None:
    """Echoes belong to the first root; where there is none, the clearest of them stands for it."""
    echoes = [d for d in drafts if d.role is Role.CONSEQUENCE and d.cause is None]
    standing = [d for d in roots(drafts, case) if _can_cause(d)]
    if not standing and (clearest := _clearest(echoes, case)):
        clearest.role = Role.ROOT
        standing = [clearest]
    for echo in echoes:
        if echo.role is Role.CONSEQUENCE and standing:
            echo.cause = standing[0]


def _clearest(echoes: list[Draft], case: Case) -> Draft | None:
    echoes = [draft for draft in echoes if not _harmless(draft, case)]
    if not echoes:
        return None
    clearest = min(echoes, key=lambda draft: (draft.rule.echo or 99, order(draft, case)))
    quiet = clearest.class_ in {C.TERMINATED_BY_LAUNCHER, C.COMM_ABORTED}
    # Who is stopped after having finished did not fail.
    return None if quiet and case.finished else clearest


def _harmless(draft: Draft, case: Case) -> bool:
    return _taken_down(draft) or store_closed(draft, case) or at_the_end(draft, case)


def _taken_down(draft: Draft) -> bool:
    """Whether communicators are only said to be aborted, as they are at a regular end, too."""
    return draft.class_ is C.COMM_ABORTED and all(e.details.get("step") for e in draft.events)


def _can_cause(draft: Draft) -> bool:
    """Whether anything can be an echo of it: a slow or useless result does not end processes."""
    return draft.tier < Tier.RESULT or draft.class_ in {
        C.JOB_TIME_LIMIT,
        C.JOB_CANCELLED,
        C.DATA_CORRUPTION,
    }
