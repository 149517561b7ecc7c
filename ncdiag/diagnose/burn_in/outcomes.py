"""Each host decided: good, rejected or undecided, with the reasons in a line each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ncdiag.diagnose.burn_in import confidence
from ncdiag.model.burn_in import (
    HostOutcome,
    Outcome,
    Stage,
    StageFinding,
    StageRun,
    StageState,
)
from ncdiag.model.host import Host
from ncdiag.model.verdict import CulpritKind, Diagnosis, HostStatus, HostVerdict

# Passing only these says nothing of what a host can do.
_NOT_MEASURING = frozenset({Stage.REACH, Stage.HEALTH})
# A fleet that was never measured in pairs is not known, whatever its hosts do alone.
_NOT_LEFT_OUT = frozenset({Stage.PAIRS})
# What these find is a fact; nothing has to be measured again to confirm it.
_FACTS = frozenset({Stage.REACH, Stage.HEALTH})
_NOT_CONFIRMED = " (not confirmed)"


@dataclass(frozen=True, slots=True)
class Judged:
    """A host's outcome; ``isolates`` says it is itself to blame, ``degraded`` that it is slow."""

    outcome: HostOutcome
    isolates: bool = False
    degraded: bool = False


@dataclass(slots=True)
class _Case:
    """What there is for and against one host."""

    against: list[tuple[Stage, str, float]] = field(default_factory=list)
    doubts: list[tuple[Stage, str]] = field(default_factory=list)
    remarks: list[tuple[Stage, str]] = field(default_factory=list)
    passes: Counter[Stage] = field(default_factory=Counter)
    isolates: bool = False
    degraded: bool = False


def judge_hosts(
    hosts: Sequence[Host], stages: Sequence[StageRun], sweep: Diagnosis | None
) -> tuple[Judged, ...]:
    """Judge every host, in the given order, from all that was run; ``sweep`` is of the last pass.

    A host is rejected for what is certain or confirmed, undecided for what is suspected or was not
    measured, and else good if any measuring stage was gone through.
    """
    cases = {host.name: _Case() for host in hosts}
    for run in stages:
        for one in run.findings:
            if one.host in cases:
                _take_finding(cases[one.host], one)
    _count_passes(cases, stages)
    if sweep is not None:
        _take_sweep(cases, stages, sweep)
    runs = [
        (run, frozenset(run.passed))
        for run in stages
        if run.state is not StageState.SKIPPED and (run.hosts > 0 or _is_needed(run))
    ]
    for name, case in cases.items():
        if not case.against and not case.doubts:
            case.doubts.extend(_missing(name, case, runs))
    return tuple(_judge(host, cases[host.name]) for host in hosts)


def _is_needed(run: StageRun) -> bool:
    return run.stage in _NOT_LEFT_OUT and run.state is StageState.CUT


def _take_finding(case: _Case, one: StageFinding) -> None:
    reason = _reason(one)
    if one.stage is Stage.REACH:  # whoever cannot be reached is out, and not to blame
        case.against.append((one.stage, reason, 1.0))
    elif one.outcome is Outcome.GOOD:
        case.remarks.append((one.stage, reason))
    elif one.outcome is Outcome.REJECTED and (one.confirmed or one.stage in _FACTS):
        case.against.append((one.stage, reason, one.confidence))
        case.isolates |= one.isolates
    else:
        unsure = one.outcome is Outcome.REJECTED
        case.doubts.append((one.stage, reason + (_NOT_CONFIRMED if unsure else "")))


def _reason(one: StageFinding) -> str:
    text = " ".join(one.reason.split()) or "no reason given"
    if one.component and one.component not in text:
        text = f"{one.component}: {text}"
    return text


def _count_passes(cases: Mapping[str, _Case], stages: Sequence[StageRun]) -> None:
    for run in stages:
        found = {one.host for one in run.findings if one.outcome is not Outcome.GOOD}
        for name in set(run.passed) - found:
            if name in cases:
                cases[name].passes[run.stage] += 1


def _take_sweep(cases: Mapping[str, _Case], stages: Sequence[StageRun], sweep: Diagnosis) -> None:
    """Add what the pairs say of each host, unless the stage's own findings tell it already."""
    told = {one.host for run in stages if run.stage is Stage.PAIRS for one in run.findings}
    last = max((run for run in stages if run.stage is Stage.PAIRS), key=_pass_number, default=None)
    cut = last is not None and last.state is StageState.CUT
    sure = _confidence_by_host(sweep)
    to_blame = set(sweep.isolate)
    for verdict in sweep.hosts:
        case = cases.get(verdict.name)
        if case is None or any(stage is Stage.REACH for stage, _, _ in case.against):
            continue
        passed_before = case.passes[Stage.PAIRS] > 0
        match verdict.status:
            case HostStatus.HEALTHY | HostStatus.DEGRADED:
                _take_fit(case, verdict)
            case HostStatus.FAULTY:
                case.isolates |= verdict.name in to_blame
                if not any(stage is Stage.PAIRS for stage, _, _ in case.against):
                    how_sure = sure.get(verdict.name, confidence.FAULTY)
                    case.against.append((Stage.PAIRS, _words(verdict), how_sure))
            case _ if not (verdict.name in told or (cut and passed_before)):
                case.doubts.append((Stage.PAIRS, _words(verdict)))


def _pass_number(run: StageRun) -> int:
    return run.pass_number


def _take_fit(case: _Case, verdict: HostVerdict) -> None:
    case.passes[Stage.PAIRS] = max(1, case.passes[Stage.PAIRS])
    if verdict.status is HostStatus.DEGRADED:
        case.degraded = True
        case.remarks.append((Stage.PAIRS, f"degraded: {_words(verdict)}"))


def _words(verdict: HostVerdict) -> str:
    unsaid = "could not be reached" if verdict.status is HostStatus.UNREACHABLE else verdict.status
    return " ".join(verdict.reason.split()) or f"{unsaid}"


def _confidence_by_host(sweep: Diagnosis) -> dict[str, float]:
    """How sure the sweep is of each host that it blames, whole or for one of its NICs."""
    sure: dict[str, float] = {}
    for one in sweep.culprits:
        if one.kind in {CulpritKind.HOST, CulpritKind.NIC}:
            host = one.name if one.kind is CulpritKind.HOST else one.name.rpartition(":")[0]
            sure[host] = max(one.confidence, sure.get(host, 0.0))
    return sure


def _missing(
    name: str, case: _Case, runs: Sequence[tuple[StageRun, frozenset[str]]]
) -> Iterator[tuple[Stage, str]]:
    """Yield why nothing can be said of a host that nothing was found against."""
    for run, passed in runs:
        if name in passed:
            continue
        seen = case.passes[run.stage] > 0
        if run.stage is Stage.PAIRS and seen and run.state is not StageState.FAILED:
            continue  # the sweep itself has judged this host
        because = f": {' '.join(run.reason.split())}" if run.reason else ""
        if run.state is StageState.FAILED:
            yield run.stage, f"the stage failed{because}"
        elif run.state is StageState.DONE:
            yield run.stage, f"gave no result{because}"
        elif not seen:
            yield run.stage, f"cut off before its own result{because}"
    if not set(case.passes) - _NOT_MEASURING:
        yield Stage.LOCAL, "nothing of it was measured"


def _judge(host: Host, case: _Case) -> Judged:
    stages = tuple(
        stage
        for stage in Stage
        if case.passes[stage]
        and all(stage is not at for at, _, _ in case.against)
        and all(stage is not at for at, _ in case.doubts)
    )
    if case.against:
        outcome, sure = Outcome.REJECTED, max(one for _, _, one in case.against)
    elif case.doubts:
        outcome, sure = Outcome.UNDECIDED, 0.0
    else:
        outcome, sure = Outcome.GOOD, confidence.of_good(case.passes, degraded=case.degraded)
    lines = [*((at, why) for at, why, _ in case.against), *case.doubts, *case.remarks]
    return Judged(
        HostOutcome(
            name=host.name,
            outcome=outcome,
            confidence=sure,
            reasons=tuple(dict.fromkeys(f"{stage}: {why}" for stage, why in lines)),
            stages=stages,
            leaf=host.leaf,
        ),
        isolates=case.isolates and outcome is Outcome.REJECTED,
        degraded=case.degraded,
    )
