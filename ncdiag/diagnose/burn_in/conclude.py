"""What a burn-in ends with: who may start, who is out, who is not decided, and the verdict."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ncdiag.diagnose.burn_in import confidence
from ncdiag.diagnose.burn_in.choice import Candidate, Choice, choose
from ncdiag.diagnose.burn_in.outcomes import Judged, judge_hosts
from ncdiag.model.burn_in import GateVerdict, HostOutcome, Outcome, StageRun, StageState
from ncdiag.model.host import Host
from ncdiag.model.units import format_count
from ncdiag.model.verdict import CulpritKind, Diagnosis, LinkStatus

_MOST_CULPRITS: Final = 5
_MOST_LINKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The parts of a ``BurnInReport`` that are concluded; fields are called as there."""

    verdict: GateVerdict
    confidence: float
    hosts: tuple[HostOutcome, ...]
    chosen: tuple[str, ...]
    spares: tuple[str, ...]
    left: tuple[str, ...]
    isolate: tuple[str, ...]
    leaves: Mapping[str, int]
    notes: tuple[str, ...]


def conclude(
    hosts: Sequence[Host],
    stages: Sequence[StageRun],
    sweep: Diagnosis | None,
    *,
    need: int,
    spares: int,
) -> Conclusion:
    """Decide each host and the launch; ``hosts`` are all that were given, each once."""
    judged = judge_hosts(hosts, stages, sweep)
    by_outcome = {
        outcome: [one for one in judged if one.outcome.outcome is outcome] for outcome in Outcome
    }
    good, rejected = by_outcome[Outcome.GOOD], by_outcome[Outcome.REJECTED]
    choice = choose([_candidate(one) for one in good], need, spares)
    lacking = need - len(good) - len(by_outcome[Outcome.UNDECIDED])
    verdict = _verdict(len(good), lacking, need)
    sure = {one.outcome.name: one.outcome.confidence for one in good}
    return Conclusion(
        verdict=verdict,
        confidence=confidence.of_verdict(
            verdict,
            (sure[name] for name in choice.chosen),
            [one.outcome.confidence for one in rejected],
            lacking=max(0, lacking),
        ),
        hosts=tuple(one.outcome for one in judged),
        chosen=choice.chosen,
        spares=choice.spares,
        left=choice.left,
        isolate=tuple(one.outcome.name for one in judged if one.isolates),
        leaves=choice.leaves,
        notes=_notes(choice, judged, stages, sweep, spares),
    )


def _candidate(one: Judged) -> Candidate:
    host = one.outcome
    return Candidate(host.name, host.leaf, host.confidence, one.degraded)


def _verdict(good: int, lacking: int, need: int) -> GateVerdict:
    if good >= need:
        return GateVerdict.MET
    return GateVerdict.SHORT if lacking > 0 else GateVerdict.UNDECIDED


def _notes(
    choice: Choice,
    judged: Sequence[Judged],
    stages: Sequence[StageRun],
    sweep: Diagnosis | None,
    spares: int,
) -> tuple[str, ...]:
    lines = []
    if len(choice.spares) < spares:
        found = len(choice.spares) or "none"
        lines.append(f"{format_count(spares, 'spare')} wanted, {found} found")
    taken = {*choice.chosen, *choice.spares}
    if slow := sum(one.degraded and one.outcome.name in taken for one in judged):
        lines.append(f"{format_count(slow, 'host')} taken though degraded: no other good one left")
    unrun = dict.fromkeys(
        run.stage for run in stages if run.hosts == 0 and run.state is StageState.CUT
    )
    if unrun:
        lines.append(f"nobody has a result of {', '.join(unrun)}")
    if sweep is not None:
        lines += _shared_culprits(sweep)
        lines += _unclear_links(sweep, taken)
    return tuple(lines)


def _unclear_links(sweep: Diagnosis, taken: Container[str]) -> list[str]:
    """A line on links between hosts that were taken of which nothing is known: no host is out."""
    unclear = [
        f"{link.source}->{link.target}"
        for link in sweep.links
        if link.tests
        and link.status in {LinkStatus.INCONCLUSIVE, LinkStatus.ERROR}
        and link.source in taken
        and link.target in taken
    ]
    if not unclear:
        return []
    more = f" and {len(unclear) - _MOST_LINKS} more" if len(unclear) > _MOST_LINKS else ""
    return [f"pairs: no clear figure of {', '.join(unclear[:_MOST_LINKS])}{more}"]


def _shared_culprits(sweep: Diagnosis) -> list[str]:
    """What of the network is slow without a host to blame, such as a leaf's uplink."""
    shared = [one for one in sweep.culprits if one.kind not in {CulpritKind.HOST, CulpritKind.NIC}]
    lines = [
        f"pairs: {one.kind if one.kind is CulpritKind.FLEET else f'{one.kind} {one.name}'} "
        f"is {one.status}: {one.reason}"
        for one in shared[:_MOST_CULPRITS]
    ]
    if more := len(shared) - len(lines):
        lines.append(f"pairs: {more} more such culprits in the report of the pairs")
    return lines
