"""Health: what each host says of itself, judged; a second reading tells which counters rose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ncdiag.cluster.fleet import Fleet
from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Testbed
from ncdiag.model.burn_in import Outcome, Stage, StageFinding, StageState
from ncdiag.model.health import (
    Difference,
    HealthFacts,
    HealthFinding,
    HealthReport,
    HostFitness,
    HostHealth,
    Severity,
)
from ncdiag.model.host import Host

Ask = Callable[[Fleet, Sequence[Host], float], tuple[dict[str, HealthFacts], dict[str, str]]]
Judge = Callable[
    [Testbed, Mapping[str, HealthFacts], Mapping[str, HealthFacts], Mapping[str, str]],
    tuple[tuple[HostHealth, ...], tuple[Difference, ...]],
]

# What a host finds on itself is a fact; only the finding can be wrong.
_CONFIDENCE = {Severity.FATAL: 0.99, Severity.FAULT: 0.95}


def ask_hosts(
    fleet: Fleet, hosts: Sequence[Host], timeout_s: float
) -> tuple[dict[str, HealthFacts], dict[str, str]]:
    """Facts by host, and errors in place of others."""
    from ncdiag.health.fleet_health import ask_fleet

    return ask_fleet(fleet, hosts, timeout_s=timeout_s)


def judge_hosts(
    bed: Testbed,
    facts: Mapping[str, HealthFacts],
    before: Mapping[str, HealthFacts],
    errors: Mapping[str, str],
) -> tuple[tuple[HostHealth, ...], tuple[Difference, ...]]:
    """Judge all hosts; ``before`` holds earlier facts, or nothing."""
    from ncdiag.health.checks.check import ExpectedHost
    from ncdiag.health.checks.judge import judge_fleet
    from ncdiag.health.checks.limits import Limits

    expected = {host.name: ExpectedHost(gpus=host.gpus, nics=host.nics) for host in bed.plan.hosts}
    return judge_fleet(
        facts,
        before=before,
        expected=expected,
        limits=bed.plan.limits or Limits(),
        errors=errors,
    )


@dataclass(slots=True)
class Health:
    """The stage, and what it keeps: the first reading of the run, and the last report."""

    ask: Ask = ask_hosts
    judge: Judge = judge_hosts
    report: HealthReport | None = None
    _first: dict[str, HealthFacts] = field(default_factory=dict)
    _first_s: float = 0.0

    def __call__(self, bed: Testbed, deadline: Deadline, pass_number: int) -> StageOutcome:
        """Ask every host that is up, and judge it."""
        up = set(bed.fleet.up)
        asked = [host for host in bed.plan.hosts if host.name in up]
        began_s = deadline.clock()
        facts, errors = self.ask(bed.fleet, asked, deadline.left_s)
        if self._first:
            facts = {name: _without_ours(one) for name, one in facts.items()}
        hosts, differences = self.judge(bed, facts, self._first, errors)
        self.report = HealthReport(
            started=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            seconds=deadline.clock() - began_s,
            hosts=_in_order(bed.plan.hosts, hosts),
            differences=differences,
            interval_s=began_s - self._first_s if self._first else None,
        )
        if not self._first:
            self._first, self._first_s = dict(facts), began_s
        return self._outcome(bed, asked, pass_number)

    def _outcome(self, bed: Testbed, asked: Sequence[Host], pass_number: int) -> StageOutcome:
        if self.report is None:
            raise RuntimeError("hosts are asked before they are judged")
        findings = [
            one for host in self.report.hosts for one in _findings(host, pass_number=pass_number)
        ]
        found = {one.host for one in findings}
        judged = {
            host.host for host in self.report.hosts if host.fitness is not HostFitness.UNKNOWN
        }
        bed.rejected |= {one.host for one in findings if one.outcome is Outcome.REJECTED}
        return StageOutcome(
            hosts=len(asked),
            state=StageState.DONE if judged else StageState.FAILED,
            reason=None if judged else "no host gave facts of its health",
            findings=findings,
            passed=tuple(
                host.name for host in asked if host.name in judged and host.name not in found
            ),
        )


def _without_ours(facts: HealthFacts) -> HealthFacts:
    """The facts without who holds the memory of GPUs: by now that is what measures."""
    gpus = tuple(replace(gpu, memory_free_bytes=None, processes=None) for gpu in facts.gpus)
    return replace(facts, gpus=gpus)


def _in_order(hosts: Sequence[Host], found: Sequence[HostHealth]) -> tuple[HostHealth, ...]:
    place = {host.name: number for number, host in enumerate(hosts)}
    return tuple(sorted(found, key=lambda one: place.get(one.host, len(place))))


def _findings(host: HostHealth, *, pass_number: int) -> list[StageFinding]:
    """What speaks against a launch on the host; the worst finding stands for others like it."""
    against = [one for one in host.findings if one.severity in _CONFIDENCE]
    if against:
        return [_finding(host.host, one, pass_number) for one in _worst_of_each(against)]
    if host.fitness is not HostFitness.UNKNOWN:
        return []
    reason = host.error or "nothing of its health could be told"
    return [
        StageFinding(
            host=host.host,
            stage=Stage.HEALTH,
            outcome=Outcome.UNDECIDED,
            reason=reason,
            confidence=0.0,
            next=f"run ncdiag health on {host.host}",
            pass_number=pass_number,
        )
    ]


def _worst_of_each(found: Sequence[HealthFinding]) -> list[HealthFinding]:
    """One finding of each check, with how many devices it names."""
    by_check: dict[str, list[HealthFinding]] = {}
    for one in found:
        by_check.setdefault(one.check, []).append(one)
    return [
        ones[0]
        if len(ones) == 1
        else replace(ones[0], text=f"{ones[0].text} (and {len(ones) - 1} more like it)")
        for ones in by_check.values()
    ]


def _finding(host: str, one: HealthFinding, pass_number: int) -> StageFinding:
    return StageFinding(
        host=host,
        stage=Stage.HEALTH,
        outcome=Outcome.REJECTED,
        reason=one.text,
        confidence=_CONFIDENCE[one.severity],
        confirmed=True,
        isolates=one.severity is Severity.FATAL and not one.configuration,
        component=one.device,
        class_=one.class_ or one.check,
        next=one.next,
        pass_number=pass_number,
    )
