"""Ranks that tensors waited for until the job was stopped, or its log ends."""

from collections.abc import Sequence
from dataclasses import replace

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.fold import draft_of
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.diagnose.postmortem.timeline import last_place
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity, Suspect, SuspectKind
from ncdiag.model.log import Event
from ncdiag.model.place import Place
from ncdiag.model.units import format_count
from ncdiag.read.horovod_stalls import FORM

# Lines of a launcher that may stand between the last report and the end.
_LINES_AFTER = 3


def last_stalls(drafts: Sequence[Draft], case: Case, stopped: Place | None) -> list[Draft]:
    """The drafts, with the reports as a hang after which nothing more was said.

    ``stopped`` is where the job was ended from outside. Only for logs in which nothing failed.
    """
    return [_hang(draft, case, stopped) or draft for draft in drafts]


def _hang(draft: Draft, case: Case, stopped: Place | None) -> Draft | None:
    if draft.class_ is not C.HANG_MID_RUN or any(event.form != FORM for event in draft.events):
        return None
    last = [event for event in draft.events if _is_last(event, case, stopped)]
    if not last:
        return None
    events = [replace(event, role=Role.ROOT, severity=Severity.FATAL) for event in last]
    hang = draft_of(C.HANG_MID_RUN, events)
    named = [str(rank) for rank in hang.ranks]
    hang.suspects += [Suspect(kind=SuspectKind.RANK, name=name) for name in named]
    hang.notes.append(f"The others waited for {format_count(len(named), 'rank')} {listed(named)}.")
    return hang


def _is_last(event: Event, case: Case, stopped: Place | None) -> bool:
    place = last_place(event)
    if case.ended_well_after(place):
        return False
    ends = (stopped, case.evidence.ends.get(place.path))
    return any(
        end and end.path == place.path and 0 <= end.line - place.line <= _LINES_AFTER
        for end in ends
    )
