"""Pairs: a sweep over the hosts still in; suspects meet other partners, and are alone again."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ncdiag.health.checks import check_bandwidth
from ncdiag.health.checks.limits import Limits
from ncdiag.measure.burn_in.plan import Level
from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Testbed
from ncdiag.measure.engines.base import PairOrder
from ncdiag.measure.engines.torch.engine import TorchEngine
from ncdiag.measure.journal import JOURNAL_NAME, Journal, Plan
from ncdiag.measure.plan import QUICK
from ncdiag.measure.record import SweepRecord
from ncdiag.measure.schedule import full_round_count
from ncdiag.measure.sweep import ROUND_OVERHEAD_S, Sweep
from ncdiag.model.burn_in import Figure, Outcome, Stage, StageFinding, StageState
from ncdiag.model.errors import NcdiagError
from ncdiag.model.health import HealthFinding, Severity
from ncdiag.model.host import HostFacts
from ncdiag.model.isolation import DAMAGED_DATA, SLOW_HOST, SLOW_NIC
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    HostStatus,
    HostVerdict,
    LinkStatus,
    SweepReport,
)

_FULL = "full"
_PASSES = "passes"
_NEXT = {
    HostStatus.UNREACHABLE: "look at the host's power, network and kernel log",
    HostStatus.INCONCLUSIVE: "measure again when less runs on the hosts, or with more of them",
}
# What every pair may take of the stage's time; suspects are to be measured again after it.
_FULL_SHARE = {Level.QUICK: 0.3, Level.NORMAL: 0.6, Level.SOAK: 0.6}


@dataclass(slots=True)
class Pairs:
    """The stage, and the last sweep; journals lie in ``directory``, of later passes below it."""

    directory: Path
    report: SweepReport | None = None

    def __call__(self, bed: Testbed, deadline: Deadline, pass_number: int) -> StageOutcome:
        """Sweep within the time that is left."""
        hosts = bed.fit
        if len(hosts) < 2:
            why = "there are no two hosts left to measure"
            return StageOutcome(hosts=0, state=StageState.SKIPPED, reason=why)
        plan = _plan(bed, hosts, deadline, pass_number)
        record = SweepRecord.of([plan])
        facts = {name: bed.facts[name] for name in hosts}
        cut, failed = False, None
        try:
            cut = self._sweep(bed, record, facts, deadline, pass_number)
        except (NcdiagError, OSError) as error:  # such as a full disk
            failed = visible(str(error))
        finally:
            self.report = record.report()
        outcome = _outcome(bed, self.report, cut=cut, pass_number=pass_number)
        if failed is not None:
            outcome.state, outcome.reason = StageState.FAILED, failed
        return outcome

    def _sweep(
        self,
        bed: Testbed,
        record: SweepRecord,
        facts: Mapping[str, HostFacts],
        deadline: Deadline,
        pass_number: int,
    ) -> bool:
        """Whether the time was not enough."""
        directory = self.directory
        if pass_number > 1:
            directory = directory / _PASSES / str(pass_number)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / JOURNAL_NAME).unlink(missing_ok=True)
        with Journal(directory) as journal:
            journal.append([record.plan])
            sweep = Sweep(
                record,
                _Started(bed.engine, facts),
                journal,
                bed.watcher,
                budget_s=deadline.left_s,
                is_stopped=bed.is_stopped,
            )
            sweep.run()
        return sweep.over_budget


@dataclass(slots=True)
class _Started:
    """An engine that is up already, and stays so when the sweep is over."""

    engine: TorchEngine
    facts: Mapping[str, HostFacts]
    name: str = TorchEngine.name

    @property
    def rails_together(self) -> bool:
        """As the engine itself."""
        return self.engine.rails_together

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Those of the sweep's own hosts that were lost."""
        return {name: why for name, why in self.engine.unreachable.items() if name in self.facts}

    def start(self, _on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """What is known of the hosts."""
        return self.facts

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """As the engine itself."""
        return self.engine.measure(orders)

    def close(self) -> None:
        """Nothing: other stages follow."""


def _plan(bed: Testbed, names: Sequence[str], deadline: Deadline, pass_number: int) -> Plan:
    own = bed.plan
    hosts = tuple(host for host in own.hosts if host.name in set(names))
    rails = max(len(bed.facts[name].nics) for name in names)
    mode = choose_mode(own.level, len(hosts), rails, own.timing.pair_s, deadline.left_s)
    return Plan(
        started=own.started,
        hosts=hosts,
        mode=mode,
        engine=TorchEngine.name,
        launcher=own.launcher or bed.launcher.name,
        # Another matching each pass: over a night, pairs of `quick` mix.
        seed=own.seed + pass_number - 1,
        faulty_below=own.faulty_below,
        timing=own.timing,
        versions=dict(own.versions),
        settings=dict(own.settings),
        profile=own.profile,
        variables=dict(own.variables),
    )


def choose_mode(level: Level, hosts: int, rails: int, pair_s: float, left_s: float) -> str:
    """Every pair where time allows, as it does for few hosts, else one round and its suspects."""
    needed_s = full_round_count(hosts) * rails * (pair_s + ROUND_OVERHEAD_S)
    return _FULL if needed_s <= _FULL_SHARE[level] * left_s else QUICK


def _outcome(bed: Testbed, report: SweepReport, *, cut: bool, pass_number: int) -> StageOutcome:
    found = report.diagnosis
    findings = list(_findings(found, pass_number, bed.plan.faulty_below))
    told = {one.host for one in findings}
    bed.rejected |= {one.host for one in findings if one.outcome is Outcome.REJECTED}
    notes = []
    if report.plan.mode == QUICK and bed.plan.level is not Level.QUICK:
        notes.append("pairs: there was no time for every pair; each host met one, suspects more")
    return StageOutcome(
        hosts=len(found.hosts),
        state=StageState.CUT if cut else StageState.DONE,
        reason="some pairs were left out" if cut else None,
        findings=findings,
        figures=list(_figures(found, pass_number)),
        passed=tuple(one.name for one in found.hosts if one.name not in told),
        notes=notes,
    )


def _findings(
    found: Diagnosis, pass_number: int, faulty_below: float = 0.8
) -> Iterator[StageFinding]:
    limits = Limits(pair_bandwidth_share=faulty_below)
    partners = _partners(found)
    blamed = {_host_of(one): one for one in reversed(found.culprits) if _host_of(one)}
    unclear = _mostly_unclear(found)
    for host in found.hosts:
        if host.status in {HostStatus.HEALTHY, HostStatus.DEGRADED}:
            if host.name in unclear:
                yield _unclear(host.name, unclear[host.name], pass_number)
            continue
        faulty = host.status is HostStatus.FAULTY
        culprit = blamed.get(host.name)
        yield StageFinding(
            host=host.name,
            stage=Stage.PAIRS,
            outcome=Outcome.REJECTED if faulty else Outcome.UNDECIDED,
            reason=_reason(host, check_bandwidth(host, host.name, limits=limits)),
            confidence=culprit.confidence if culprit and faulty else 0.0,
            confirmed=faulty,
            isolates=faulty and host.name in found.isolate,
            component=culprit.name if culprit and culprit.kind is CulpritKind.NIC else None,
            partners=partners.get(host.name, ()),
            class_=_class_of(culprit),
            next=culprit.next if culprit else _NEXT.get(host.status, ""),
            pass_number=pass_number,
        )


def _mostly_unclear(found: Diagnosis) -> dict[str, str]:
    """Hosts most of whose links, one way, gave no clear figure: of them too little is known.

    A few clear ones would do for a host that is healthy; one that is not may be among these.
    """
    counts: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for link in found.links:
        if link.tests:
            clear = link.status not in {LinkStatus.INCONCLUSIVE, LinkStatus.ERROR}
            counts[link.source, "sending"].append(clear)
            counts[link.target, "receiving"].append(clear)
    return {
        name: f"{way}: {clear.count(False)} of {len(clear)} links gave no clear figure"
        for (name, way), clear in counts.items()
        if 2 * clear.count(False) > len(clear)
    }


def _unclear(name: str, reason: str, pass_number: int) -> StageFinding:
    return StageFinding(
        host=name,
        stage=Stage.PAIRS,
        outcome=Outcome.UNDECIDED,
        reason=reason,
        confidence=0.0,
        class_=SLOW_HOST,
        next=_NEXT[HostStatus.INCONCLUSIVE],
        pass_number=pass_number,
    )


def _reason(host: HostVerdict, check: HealthFinding | None) -> str:
    """What the sweep says, and what the check of pair bandwidth does of all links of the host."""
    reason = host.reason or f"{host.status}"
    if check is None or check.severity is not Severity.FAULT:
        return reason
    return f"{reason}; {check.text} (below {check.limit})"


def _class_of(culprit: Culprit | None) -> str:
    if culprit is not None and culprit.damaged:
        return DAMAGED_DATA
    return SLOW_NIC if culprit is not None and culprit.kind is CulpritKind.NIC else SLOW_HOST


def _host_of(culprit: Culprit) -> str | None:
    match culprit.kind:
        case CulpritKind.HOST:
            return culprit.name
        case CulpritKind.NIC:
            return culprit.name.rpartition(":")[0]
        case _:
            return None


def _partners(found: Diagnosis) -> dict[str, tuple[str, ...]]:
    met: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for link in found.links:
        if link.tests:
            met[link.source][link.target] = None
            met[link.target][link.source] = None
    return {name: tuple(sorted(others)) for name, others in met.items()}


def _figures(found: Diagnosis, pass_number: int) -> Iterator[Figure]:
    """The median that each host sends and receives, beside that of the fleet."""
    for name in ("send_gbit_per_s", "receive_gbit_per_s"):
        by_host: defaultdict[str, list[float]] = defaultdict(list)
        for link in found.links:
            if link.measured_gbit_per_s is not None:
                end = link.source if name.startswith("send") else link.target
                by_host[end].append(link.measured_gbit_per_s)
        medians = {host: median(values) for host, values in by_host.items()}
        for host, value in medians.items():
            yield Figure(
                host=host,
                stage=Stage.PAIRS,
                name=name,
                value=value,
                median=median(medians.values()),
                pass_number=pass_number,
            )
