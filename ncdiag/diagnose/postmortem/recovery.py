"""Failures that did not last: a retry that worked, a start-up that went on without."""

from collections.abc import Callable, Mapping

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Tier
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.ports import booting
from ncdiag.diagnose.postmortem.thresholds import BOOT_BEFORE_JOB_S
from ncdiag.diagnose.postmortem.timeline import last_place, seconds_between
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role
from ncdiag.model.log import Event
from ncdiag.model.place import Place

# Steps of a start-up that are tried again, or done without.
_RETRIED = (
    C.BOOTSTRAP_CONNECT_FAILED,
    C.BOOTSTRAP_NO_INTERFACE,
    C.SOCKET_CONNECT_FAILED,
    C.SOCKET_HANDSHAKE_FAILED,
    C.IB_MODIFY_QP_FAILED,
    C.OFI_ENDPOINT_FAILED,
    C.SHARP_FAILED,
    C.STORE_FAILURE,
    C.TOPOLOGY_ERROR,
    C.NVLS_MULTICAST_FAILED,
    C.MNNVL_FAILED,
)
# Sensors of processors, which slow down for moments under any load.
_PASSING_HEAT = "cpu_throttled"
# The row of Ray, which starts the task of a killed worker again.
_RETRIED_TASK = "ray_oom"


def recovered(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether what failed so did not last: whoever met it went on, or came to a regular end."""
    if draft.tier is Tier.HARDWARE and _before_boot(draft, drafts, case):
        draft.notes.append("The host was booted since, long before the job failed.")
        return True
    judge = _JUDGES.get(draft.class_)
    return judge is not None and judge(draft, drafts, case)


def store_closed(draft: Draft, case: Case) -> bool:
    """Whether those who ended last found the store of a run gone that nobody says failed."""
    if draft.class_ is not C.STORE_FAILURE:
        return False
    if not all(event.details.get("printed") == "W" for event in draft.strong):
        return False
    last = (last_place(event) for event in draft.strong)
    if case.finished or all(case.ended_well_after(place) for place in last):
        return True
    return draft.role is Role.CONSEQUENCE and case.ran


def _caught(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether a program that ran out of memory, and did not end by it, came to a regular end.

    The kernel's word of a process that it killed says nothing of a retry.
    """
    if draft.class_ is C.OOM_KILL and any(event.form != _RETRIED_TASK for event in draft.strong):
        return False
    raised = set(case.evidence.raised)
    places = {place for event in draft.strong for place in (event.place, last_place(event))}
    return not raised & places and _outlived(draft, drafts, case)


def _outlived(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether the run is said to have come to a regular end afterwards, and nothing else failed."""
    if not all(case.ended_well_after(last_place(event)) for event in draft.strong):
        return False
    return not any(
        other.role is not Role.WARNING and not store_closed(other, case)
        for other in drafts
        if other is not draft
    )


def at_the_end(draft: Draft, case: Case) -> bool:
    """Whether all that is heard came before or after a regular end, which it did not prevent."""
    return all(
        case.ended_well_after(last_place(event)) or case.ended_well_before(event.place)
        for event in draft.events
    )


def _before_boot(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether the host was booted after a fault of its hardware, and a job failed long after."""
    boots = set[Place]()
    for event in draft.events:
        boot = case.evidence.boots.get((event.place.path, event.speaker.host))
        if boot is None or not case.timeline.before(last_place(event), boot):
            return False
        boots.add(boot)
    jobs = (one for one in drafts if one.tier > Tier.HARDWARE and one.role is not Role.WARNING)
    gaps = [seconds_between(boot, one.first.place) or 0.0 for one in jobs for boot in boots]
    return bool(gaps) and min(gaps) > BOOT_BEFORE_JOB_S


def _cooled(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether only processors were hot for a moment, in a run that nothing else stopped."""
    passing = all(event.form == _PASSING_HEAT for event in draft.events)
    return passing and _ran_on(draft, drafts, case)


def _never_up(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether a port had no link since the host booted, and a run did without it."""
    return all(map(booting, draft.events)) and _ran_on(draft, drafts, case)


def _handled(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether the run, or every test, came to its end after the exception: it ended no rank."""
    if _outlived(draft, drafts, case):
        return True
    tests = case.evidence.benchmarks
    last = max((last_place(event) for event in draft.events), key=case.timeline.key)
    whole = bool(tests) and all(test.complete for test in tests)
    return whole and any(test.end and case.timeline.before(last, test.end) for test in tests)


def went_unanswered(draft: Draft, case: Case) -> bool:
    """Whether an optional feature failed, and no word tells that the job went on without it."""
    if draft.class_ is not C.SHARP_FAILED or draft.role is not Role.WARNING:
        return False
    if any("point-to-point" in event.text for event in draft.events):
        return False
    return not any(case.later_progress(last_place(event)) for event in draft.events)


def _ran_on(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether there is a run, and nothing else in it failed."""
    ended = all(case.ended_well_after(last_place(event)) for event in draft.events)
    run = case.evidence.processes or case.evidence.benchmarks or ended
    return bool(run) and not any(
        other.role is not Role.WARNING for other in drafts if other.class_ is not draft.class_
    )


def _tried_again(draft: Draft, drafts: list[Draft], case: Case) -> bool:
    """Whether every process that failed so went on to complete its start-up."""
    del drafts
    return store_closed(draft, case) or all(_went_on(event, case) for event in draft.strong)


def _went_on(event: Event, case: Case) -> bool:
    process = case.process_of(event.speaker)
    if process is not None and process.networks and "net_ib" in (event.source or ""):
        # Verbs are left out for want of an interface, and another network was chosen.
        return True
    if event.details.get("printed") == "W" and case.met_after(last_place(event)):
        # A client of the store that tried again: no ranks meet without it.
        return True
    if process is not None and process.chain_place:
        # It gave the call up: a back-trace that ends in no fall-back.
        failed = case.timeline.before(last_place(event), process.chain_place)
        if failed and not case.later_progress(process.chain_place, process):
            return False
    if process is None and event.speaker.host:
        return False
    return case.later_progress(last_place(event), process)


_JUDGES: Mapping[C, Callable[[Draft, list[Draft], Case], bool]] = {
    **dict.fromkeys(_RETRIED, _tried_again),
    C.APPLICATION_EXCEPTION: _handled,
    # What a program may catch, or a scheduler of tasks try again.
    C.CUDA_OUT_OF_MEMORY: _caught,
    C.OOM_KILL: _caught,
    C.NIC_LINK_DOWN: _never_up,
    C.STORAGE_ERROR: _ran_on,
    C.THERMAL_POWER: _cooled,
}
