"""The whole post-mortem: evidence in, answer out."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ncdiag.diagnose.postmortem.assemble import findings
from ncdiag.diagnose.postmortem.benchmarks import benchmarks
from ncdiag.diagnose.postmortem.blame import blame
from ncdiag.diagnose.postmortem.calls import call_mismatches
from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.chains import unexplained
from ncdiag.diagnose.postmortem.confidence import weigh
from ncdiag.diagnose.postmortem.desync import desyncs
from ncdiag.diagnose.postmortem.differences import differences
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.endings import ends_of_workers
from ncdiag.diagnose.postmortem.explain import explain, order
from ncdiag.diagnose.postmortem.fold import fold
from ncdiag.diagnose.postmortem.hangs import hangs, timed_before_first_row
from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.diagnose.postmortem.isolation import isolate
from ncdiag.diagnose.postmortem.job import job_shape, library
from ncdiag.diagnose.postmortem.network import network
from ncdiag.diagnose.postmortem.ports import settle_ports
from ncdiag.diagnose.postmortem.reports import ras_drafts
from ncdiag.diagnose.postmortem.rereading import reread
from ncdiag.diagnose.postmortem.results import results
from ncdiag.diagnose.postmortem.settings import complete
from ncdiag.diagnose.postmortem.stalls import last_stalls
from ncdiag.diagnose.postmortem.stated import stated
from ncdiag.diagnose.postmortem.story import story
from ncdiag.diagnose.postmortem.timeline import Timeline
from ncdiag.diagnose.postmortem.verdict import verdict
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Postmortem, Role
from ncdiag.model.log import LogEvidence
from ncdiag.model.place import Place

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
# Ends from outside: they stop a job, and say nothing of what it was doing.
_STOPS = frozenset({C.TERMINATED_BY_LAUNCHER, C.JOB_TIME_LIMIT, C.JOB_CANCELLED, C.COMM_ABORTED})
_ROLES = (Role.ROOT, Role.CONSEQUENCE, Role.WARNING)


def diagnose(evidence: LogEvidence, names: Mapping[str, str] = _NO_NAMES) -> Postmortem:
    """What failed first, why, who only suffered from it, and whom to isolate.

    ``names`` maps addresses to host names, where the operator knows better than the logs.
    """
    case = Case(evidence, HostBook(evidence, names), Timeline(evidence))
    drafts = Docket(_drafts(case), case.hosts)
    explain(drafts, case)
    blame(drafts, case)
    weigh(drafts, case)
    isolated = isolate(drafts, case)
    ranked = sorted(drafts, key=lambda draft: (_ROLES.index(draft.role), *order(draft, case)))
    word = verdict(ranked, case)
    job, used = job_shape(evidence), library(evidence)
    return Postmortem(
        verdict=word,
        inputs=tuple(evidence.inputs),
        library=used,
        job=job,
        network=network(evidence),
        benchmarks=tuple(benchmarks(evidence)),
        findings=tuple(findings(ranked)),
        isolate=tuple(isolated),
        story=tuple(story(ranked, case, verdict=word, job=job, library=used, isolate=isolated)),
    )


def _drafts(case: Case) -> list[Draft]:
    """All that the records show, nothing judged against another."""
    measured = results(case)
    better = {draft.class_ for draft in measured}
    drafts = settle_ports(fold(reread(case.evidence.events, case), case.hosts, case.timeline), case)
    complete(drafts, case)
    # A table tells more of its values than the line that sums them up.
    drafts = measured + [draft for draft in drafts if draft.class_ not in better]
    drafts += ends_of_workers(drafts)
    timed_before_first_row(drafts, case)
    found = [*desyncs(case), *ras_drafts(case), *call_mismatches(case)]
    known = {draft.class_ for draft in drafts}
    drafts += [draft for draft in found if draft.class_ not in known]
    drafts += [draft for draft in differences(case) if draft.class_ not in known]
    if not _failed(drafts):
        drafts = last_stalls(drafts, case, _stopped(drafts, case))
    if not _failed(drafts):
        drafts += unexplained(case) or hangs(case, _stopped(drafts, case))
    return drafts


def _failed(drafts: Sequence[Draft]) -> bool:
    """Whether something certainly failed."""
    return any(
        draft.role is not Role.WARNING
        and draft.class_ not in _STOPS
        and draft.class_ is not C.SINGLE_RANK_RUN
        for draft in drafts
    )


def _stopped(drafts: Sequence[Draft], case: Case) -> Place | None:
    """Where the job was first stopped from outside."""
    places = [stated(draft.first) for draft in drafts if draft.class_ in _STOPS]
    return min(places, key=case.timeline.key, default=None)
