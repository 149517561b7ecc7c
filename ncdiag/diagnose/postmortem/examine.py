"""The whole post-mortem: evidence in, answer out."""

from collections.abc import Mapping
from types import MappingProxyType

from ncdiag.diagnose.postmortem.assemble import findings
from ncdiag.diagnose.postmortem.benchmarks import benchmarks
from ncdiag.diagnose.postmortem.fold import fold
from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.diagnose.postmortem.job import job_shape, library
from ncdiag.diagnose.postmortem.network import network
from ncdiag.diagnose.postmortem.timeline import Timeline
from ncdiag.model.finding import Postmortem, PostmortemVerdict
from ncdiag.model.log import LogEvidence

_NO_NAMES: Mapping[str, str] = MappingProxyType({})


def diagnose(evidence: LogEvidence, names: Mapping[str, str] = _NO_NAMES) -> Postmortem:
    """What failed first, why, who only suffered from it, and whom to isolate.

    ``names`` maps addresses to host names, where the operator knows better than the logs.
    """
    hosts = HostBook(evidence, names)
    timeline = Timeline(evidence)
    drafts = fold(evidence, hosts, timeline)
    failed = any(draft.root for draft in drafts)
    return Postmortem(
        verdict=PostmortemVerdict.FINDINGS if failed else PostmortemVerdict.OK,
        inputs=tuple(evidence.inputs),
        library=library(evidence),
        job=job_shape(evidence),
        network=network(evidence),
        benchmarks=tuple(benchmarks(evidence)),
        findings=tuple(findings(drafts)),
        isolate=(),
    )
