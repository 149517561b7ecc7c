"""Ends that a scheduler or a person set: before them something failed, or after them everything."""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Blame, Tier
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.stated import stated
from ncdiag.diagnose.postmortem.thresholds import AGAIN_AFTER_S
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.model.finding import FindingClass as C

_ENDS = frozenset({C.JOB_TIME_LIMIT, C.JOB_CANCELLED})
# What the end of a job itself brings about, whenever it is printed.
_BROUGHT_ABOUT = frozenset({C.ELASTIC_WORKER_FAILED, C.PROCESS_DIED})


def ended_early(draft: Draft, drafts: Docket, case: Case) -> Draft | None:
    """The end of the job, for what fails only after it."""
    if draft.tier is Tier.HARDWARE or draft.class_ in _ENDS or draft.derived:
        return None
    for other in drafts.of(*_ENDS):
        if other.root and _ends(other, draft, case) and not _printed_late(draft, other, drafts):
            return other
    return None


def _ends(end: Draft, draft: Draft, case: Case) -> bool:
    """Whether the failure came after the end; what the end itself does may be printed before."""
    ordered = case.timeline.ordered(end.first.place, draft.first.place)
    if ordered and case.timeline.before(end.first.place, draft.first.place):
        return True
    if draft.class_ not in _BROUGHT_ABOUT or (ordered and _bare(end) and _killed(draft)):
        return False
    gap = seconds_between(draft.first.place, end.first.place)
    return gap is None or gap <= AGAIN_AFTER_S


def _bare(end: Draft) -> bool:
    """Whether a job was cancelled and nothing says why: as when a task of it had failed."""
    return end.class_ is C.JOB_CANCELLED and not any(e.attributes.get("reason") for e in end.events)


def _killed(draft: Draft) -> bool:
    return draft.class_ is C.PROCESS_DIED and any(e.details.get("signal") for e in draft.strong)


def _printed_late(draft: Draft, end: Draft, drafts: Docket) -> bool:
    """Whether a failure may be why a step was cancelled: a task of it ended with its own code.

    Without times, what tasks print may come after what the scheduler does. What points at another
    host is left out: whoever loses a peer to the end of the step says so, too.
    """
    if seconds_between(end.first.place, draft.first.place) is not None or not _bare(end):
        return False
    if any(event.details.get("what") != "STEP" for event in end.events):
        return False
    blames_peer = draft.tier > Tier.CALL or Blame.PEER in draft.rule.blame
    tasks = (event for died in drafts.of(C.PROCESS_DIED) for event in died.events)
    failed = any(e.details.get("tasks") and _is_own(e.attributes.get("exitcode")) for e in tasks)
    return failed and not blames_peer and draft.class_ not in _BROUGHT_ABOUT


def _is_own(code: str | None) -> bool:
    """Whether a process gave an exit code itself: no signal's."""
    return code is not None and code.isdecimal() and 0 < int(code) < 128


def after_the_end(draft: Draft, drafts: Docket, case: Case) -> Draft | None:
    """What failed before the end of the job and so made an end of it."""
    if draft.class_ not in _ENDS:
        return None
    failures = [
        other
        for other in drafts
        if other is not draft
        and other.root
        and other.class_ not in _ENDS
        and (other.tier < Tier.RESULT or other.class_ is C.DATA_CORRUPTION)
        and (other.derived or _not_after(other, draft, case) or _printed_late(other, draft, drafts))
    ]
    return failures[0] if failures else None


def _not_after(failure: Draft, end: Draft, case: Case) -> bool:
    """Whether a failure came first, or may have: jobs that failed are ended, not the reverse."""
    one, other = failure.first.place, end.first.place
    if case.pasted_below(failure.first, end.first):
        gap = seconds_between(one, stated(end.first))
        return gap is None or gap >= 0
    return not case.timeline.ordered(one, other) or case.timeline.before(one, other)
