"""The one word that a post-mortem ends with."""

from collections.abc import Iterable

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.model.finding import PostmortemVerdict
from ncdiag.model.log import LogEvidence


def verdict(drafts: Iterable[Draft], case: Case) -> PostmortemVerdict:
    """``findings`` with a root; else ``ok`` where a run or report of a known kind is whole."""
    if any(draft.root for draft in drafts):
        return PostmortemVerdict.FINDINGS
    if not recognised(case.evidence) or missing(case):
        return PostmortemVerdict.INCONCLUSIVE
    return PostmortemVerdict.OK


def recognised(evidence: LogEvidence) -> bool:
    """Whether anything in the inputs is of a kind that is known here."""
    records = (
        evidence.processes,
        evidence.events,
        evidence.benchmarks,
        evidence.progress,
        evidence.failures,
        evidence.ras,
        evidence.dumps,
        evidence.inspector,
        evidence.versions,
    )
    return any(records) or any(given.kinds for given in evidence.inputs)


def missing(case: Case) -> bool:
    """Whether something that began is not told to its end."""
    evidence = case.evidence
    unread = any(given.error or given.truncated for given in evidence.inputs)
    tests = any(not benchmark.complete for benchmark in evidence.benchmarks)
    reports = any(not report.complete for report in evidence.ras)
    return unread or tests or reports or _starting(case) or _broken_off(evidence)


def _broken_off(evidence: LogEvidence) -> bool:
    """Whether a call failed in a start-up of which no step is known to have completed."""
    failed = any(process.chain for process in evidence.processes)
    states = [state for process in evidence.processes for state in process.communicators]
    went_on = any(s.completed or s.progressed or s.last_call for s in states)
    return failed and not went_on and not any(b.rows for b in evidence.benchmarks)


def _starting(case: Case) -> bool:
    """Whether a communicator was started, and nothing shows that any start-up completed."""
    states = [state for process in case.evidence.processes for state in process.communicators]
    begun = [state for state in states if state.started and not state.completed]
    return bool(begun) and not any(s.completed or s.ended or s.last_call for s in states)
