"""What agents' reports prove of their workers: which of them was already dead, and which ended."""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import Event, WorkerFailure

# How a watchdog ends its process.
_ABORTED = frozenset({"-6", "134"})


def in_another_worker(timeout: Event, ending: Event, case: Case) -> bool:
    """Whether a time-out and an exception without times are of workers of two agents.

    The agent of one reports it as aborted before the exception is printed, and that of the other
    its exit after that. Which agent's output was put first says nothing of what came first.
    """
    classes = timeout.class_name, ending.class_name
    first, last = timeout.place, ending.place
    if classes != (C.TORCH_WATCHDOG_TIMEOUT, C.APPLICATION_EXCEPTION):
        return False
    if first.path != last.path or seconds_between(first, last) is not None:
        return False
    failures = [one for one in case.evidence.failures if one.place.path == first.path]
    dead = {
        one.pid
        for one in failures
        if one.exitcode in _ABORTED and first.line < one.place.line < last.line
    }
    ended = {one.pid for one in failures if _exited(one) and last.line < one.place.line}
    return bool(dead and ended) and None not in dead | ended and not dead & ended


def _exited(failure: WorkerFailure) -> bool:
    return (failure.exitcode or "").isdecimal() and failure.exitcode not in _ABORTED | {"0"}
