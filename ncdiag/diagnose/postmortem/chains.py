"""What a return-code chain tells where no message explains it."""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.thresholds import ECHO_CONFIDENCE
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import NcclProcess
from ncdiag.read.signatures.results import CLASS_OF_CODE

# The outermost frames: a chain that ends there was returned to the caller.
_CALLERS = ("group.cc", "init.cc", "enqueue.cc")


def unexplained(case: Case) -> list[Draft]:
    """A draft for chains that reached the caller, one a result."""
    found: dict[C, Draft] = {}
    for process in case.evidence.processes:
        result = _returned(process, case)
        class_ = CLASS_OF_CODE.get(result or 0)
        if class_ and process.chain_place:
            text = " <- ".join(f"{file}:{line} -> {n}" for file, line, n in process.chain[-3:])
            draft = found.setdefault(class_, derived(class_, process.chain_place, text))
            draft.confidence = ECHO_CONFIDENCE
    return list(found.values())


def _returned(process: NcclProcess, case: Case) -> int | None:
    """The result of a chain that went up to the caller and was not followed by progress."""
    if not process.chain or not process.chain_place:
        return None
    file, _, result = process.chain[-1]
    if file.rsplit("/", 1)[-1] not in _CALLERS:
        return None
    return None if _did_without(process, case) else result


def _did_without(process: NcclProcess, case: Case) -> bool:
    """Whether the job went on without what failed, or had ended when it did.

    A start-up that goes on anywhere has done without; connections that close at a regular end
    leave such chains, too.
    """
    tests = case.evidence.benchmarks
    over = any(c.ended and not c.aborted for c in process.communicators)
    finished = bool(tests) and all(test.complete for test in tests)
    place = process.chain_place
    return over or finished or (place is not None and case.later_progress(place))
