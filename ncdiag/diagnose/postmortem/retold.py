"""One failure in several messages of a process: the one that says what it was stands."""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.speakers import same_process
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import Event

# Features that the library tries first: what its try says is explained by its verdict.
_VERDICTS = frozenset({C.MNNVL_FAILED, C.NVLS_MULTICAST_FAILED})
# Exceptions that torch raises for its store.
_STORE_EXCEPTIONS = frozenset({"DistStoreError"})


def retold(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """The draft that tells of the same failure and says more of it."""
    if draft.class_ is C.CUDA_ERROR:
        return _other(draft, drafts, _VERDICTS, case, later=True)
    if draft.class_ is C.SHM_NO_SPACE and not any("error" in e.attributes for e in draft.strong):
        return _other(draft, drafts, frozenset({C.CUDA_ERROR}), case, later=False)
    if draft.class_ is C.PROCESS_DIED:
        return _crash_of(draft, drafts)
    if draft.class_ is C.APPLICATION_EXCEPTION and _of_the_store(draft):
        return next((d for d in drafts if d.class_ is C.STORE_FAILURE and d.root), None)
    return None


def _other(
    draft: Draft, drafts: list[Draft], classes: frozenset[C], case: Case, *, later: bool
) -> Draft | None:
    """A draft that tells, for every process of this one, of its failure: before, or after."""
    for other in drafts:
        if other.class_ not in classes or not other.root:
            continue
        if all(_beside(event, other, case, later=later) for event in draft.strong):
            return other
    return None


def _beside(event: Event, other: Draft, case: Case, *, later: bool) -> bool:
    for told in other.strong:
        first, second = (event, told) if later else (told, event)
        alike = told.speaker == event.speaker or same_process(told.speaker, event.speaker)
        if alike and case.timeline.before(first.place, second.place):
            return True
    return False


def _crash_of(draft: Draft, drafts: list[Draft]) -> Draft | None:
    """The crash that the dead processes themselves tell of."""
    dead = {event.attributes.get("pid") for event in draft.strong}
    for other in drafts:
        if other.class_ is C.PROCESS_CRASH and other.root:
            crashed = {e.attributes.get("pid") or e.speaker.pid for e in other.strong}
            if None not in dead and dead <= crashed:
                return other
    return None


def _of_the_store(draft: Draft) -> bool:
    return all(event.attributes.get("exception") in _STORE_EXCEPTIONS for event in draft.strong)
