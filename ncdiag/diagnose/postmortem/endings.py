"""Processes that ended: by themselves, or because a call of theirs had failed."""

from collections.abc import Sequence
from dataclasses import replace

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import RULES, Tier
from ncdiag.diagnose.postmortem.draft import Draft, role_of
from ncdiag.diagnose.postmortem.failed_calls import FailedCalls
from ncdiag.diagnose.postmortem.fold import draft_of
from ncdiag.diagnose.postmortem.kernel_log import UNDER_PROCESSES
from ncdiag.diagnose.postmortem.speakers import same_process
from ncdiag.diagnose.postmortem.workers import in_another_worker
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role
from ncdiag.model.log import Event

_ENDINGS = frozenset({C.APPLICATION_EXCEPTION, C.PROCESS_CRASH, C.PROCESS_DIED})
# Reports of others, and what is no failure of the process that speaks.
_NO_CALLS = _ENDINGS | {
    C.ELASTIC_WORKER_FAILED,
    C.STORE_FAILURE,
    C.JOB_TIME_LIMIT,
    C.JOB_CANCELLED,
    C.TERMINATED_BY_LAUNCHER,
    C.OOM_KILL,
}

# Codes of a process that was killed, rather than one that gave a code of its own.
_KILLED = frozenset({"-9", "137"})


# What a fault signal, or an unexplained kill, in an agent's report stands for.
_BY_EXITCODE = {
    **dict.fromkeys(("-4", "-7", "-8", "-11"), C.PROCESS_CRASH),
    "-9": C.PROCESS_DIED,
}


def ends_of_workers(drafts: Sequence[Draft]) -> list[Draft]:
    """Crashes and deaths that only an agent's report tells of, as the faults they are."""
    known = {draft.class_ for draft in drafts}
    found: dict[C, list[Event]] = {}
    for draft in drafts:
        if draft.class_ is C.ELASTIC_WORKER_FAILED:
            for event in draft.events:
                class_ = _BY_EXITCODE.get(event.attributes.get("exitcode", ""))
                if class_ and class_ not in known:
                    found.setdefault(class_, []).append(_end_of(class_, event))
    return [draft_of(class_, events) for class_, events in found.items()]


def _end_of(class_: C, report: Event) -> Event:
    code = report.attributes["exitcode"]
    crash = class_ is C.PROCESS_CRASH
    named = {"signal": code.removeprefix("-")} if crash else {"exitcode": code}
    host = report.attributes.get("host")
    return replace(
        report,
        class_name=class_,
        attributes=named,
        details={**report.details, **({"host": host} if host else {})},
        role=None,
        severity=None,
    )


def after_failed_call(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """The failed call after which every process of ``draft`` ended, if each had one.

    An ending before which nothing of its process failed stands, and speaks for the draft.
    """
    if draft.class_ not in _ENDINGS:
        return None
    calls = FailedCalls((d for d in drafts if d is not draft and _failure(d)), case)
    causes = {id(event): _cause(event, calls, case) for event in draft.strong}
    standing = [event for event in draft.strong if causes[id(event)] is None]
    if draft.class_ is C.PROCESS_DIED:
        standing = [event for event in standing if not _exited(event)] or standing
    if standing:
        draft.standing = standing
        if draft.first not in standing:
            draft.first = standing[0]
        return None
    return next(iter(causes.values()))


def is_bare_exit(draft: Draft) -> bool:
    """Whether a launcher only says that a task exited, with a code of its own."""
    if draft.class_ is not C.PROCESS_DIED:
        return False
    return all(_exited(event) for event in draft.accusing)


def _exited(event: Event) -> bool:
    return event.attributes.get("exitcode", "137") not in _KILLED


def _failure(draft: Draft) -> bool:
    """Whether a draft holds failed calls; what comes of a comparison is no process's call."""
    if draft.derived or draft.class_ in _NO_CALLS:
        return False
    return draft.role is not Role.WARNING and draft.tier < Tier.RESULT


def _cause(ending: Event, calls: FailedCalls, case: Case) -> Draft | None:
    for draft, call in calls.near(ending, case):
        if _led_to(call, ending, case):
            return draft
    return None


def _led_to(call: Event, ending: Event, case: Case) -> bool:
    """Whether ``ending`` follows ``call`` in one process.

    Where the lines do not tell whose they are, a failed call counts and an echo does not: somebody
    must have caused the echo, and that may be this ending.
    """
    below = not case.timeline.before(call.place, ending.place)
    if below and not (_may_have_killed(call, ending) and case.pasted_below(call, ending)):
        return False
    if RULES[C(call.class_name)].tier is Tier.HARDWARE:
        return _on_same_host(call, ending, case) or _signalled(call, ending)
    # One stream may carry what a launcher tells of other hosts.
    if _elsewhere(call, ending, case) or in_another_worker(call, ending, case):
        return False
    same = same_process(call.speaker, ending.speaker)
    if same is None:
        return role_of(call) is Role.ROOT and case.timeline.ordered(call.place, ending.place)
    return same


def _may_have_killed(fault: Event, ending: Event) -> bool:
    """Whether a process without words of its own may have ended by a fault of its hardware."""
    bare = ending.class_name in {C.PROCESS_CRASH, C.PROCESS_DIED}
    return bare and fault.class_name in UNDER_PROCESSES


def _on_same_host(fault: Event, ending: Event, case: Case) -> bool:
    host, other = case.hosts.of_event(fault), case.hosts.of_event(ending)
    return host is not None and host == other and role_of(fault) is Role.ROOT


def _signalled(fault: Event, ending: Event) -> bool:
    """Whether the kernel sent the very process a signal for the fault."""
    if fault.class_name != C.HOST_MEMORY_ERROR or ending.class_name != C.PROCESS_CRASH:
        return False
    pid = fault.details.get("pid")
    return pid is not None and pid in {ending.details.get("pid"), ending.speaker.pid}


def _elsewhere(call: Event, ending: Event, case: Case) -> bool:
    """Whether the two are on different hosts for sure."""
    host, other = case.hosts.of_event(call), case.hosts.of_event(ending)
    return host is not None and other is not None and host != other


def killed_for_memory(draft: Draft, drafts: list[Draft], case: Case) -> Draft | None:
    """The kernel's record of the process that died, if it killed it for memory."""
    if draft.class_ not in {C.PROCESS_DIED, C.ELASTIC_WORKER_FAILED}:
        return None
    hosts = {case.hosts.of_event(event) for event in draft.strong} - {None}
    for other in drafts:
        if other.class_ is C.OOM_KILL and other.root:
            theirs = {case.hosts.of_event(event) for event in other.strong} - {None}
            if not hosts or not theirs or hosts & theirs:
                return other
    return None
