"""What reports say against hosts and for them, and that --record keeps it."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ncdiag.cli import keeping, main
from ncdiag.health.checks.table import CHECKS
from ncdiag.isolate.decide import decide
from ncdiag.isolate.evidence.of_bench import of_bench
from ncdiag.isolate.evidence.of_burn_in import of_burn_in
from ncdiag.isolate.evidence.of_health import of_health
from ncdiag.isolate.evidence.of_postmortem import event_s, of_postmortem
from ncdiag.isolate.evidence.of_stragglers import of_stragglers
from ncdiag.isolate.evidence.of_sweep import of_sweep
from ncdiag.isolate.evidence.times import seconds_of
from ncdiag.isolate.policy import default_policy
from ncdiag.model.bench import (
    BenchCurve,
    BenchFinding,
    BenchFindingKind,
    BenchReport,
    BenchSeverity,
)
from ncdiag.model.burn_in import (
    BurnInReport,
    GateVerdict,
    HostOutcome,
    Outcome,
    Stage,
    StageFinding,
    StageRun,
    StageState,
)
from ncdiag.model.finding import (
    EvidenceLine,
    Finding,
    FindingClass,
    FirstSeen,
    Isolation,
    JobShape,
    Library,
    Network,
    Postmortem,
    PostmortemVerdict,
    Role,
    Severity,
    Suspect,
    SuspectKind,
)
from ncdiag.model.health import (
    HealthFacts,
    HealthFinding,
    HealthReport,
    HostFitness,
    HostHealth,
)
from ncdiag.model.health import Severity as HealthSeverity
from ncdiag.model.isolation import Action, EvidenceKind, EvidencePiece
from ncdiag.model.straggler import SlowRank, StragglerReport, StragglerVerdict, TimeKind
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepPlan,
    SweepReport,
    Verdict,
)
from ncdiag.store.ledger import Ledger

STARTED = "2026-11-20T10:00:00Z"
BEGAN_S = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp()
HOSTS = ("h1", "h2", "h3", "h4")


def a_culprit(kind: CulpritKind, name: str, **more: object) -> Culprit:
    made = Culprit(
        kind=kind,
        name=name,
        direction=Direction.SEND,
        status=LinkStatus.FAULTY,
        confidence=0.97,
        efficiency=0.1,
        explains=3,
        contradicts=0,
        reason="sends at a tenth",
        next="look at it",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def a_sweep(*culprits: Culprit, isolate: tuple[str, ...] = (), **more: object) -> SweepReport:
    """Everything from h1 is slow, all else is fast."""
    bad = isolate or ("h1",)
    diagnosis = Diagnosis(
        verdict=Verdict.FAULTY if culprits else Verdict.HEALTHY,
        links=tuple(
            LinkVerdict(
                source=source,
                target=target,
                rail=0,
                status=LinkStatus.FAULTY if culprits and source in bad else LinkStatus.HEALTHY,
            )
            for source in HOSTS
            for target in HOSTS
            if source != target
        ),
        hosts=tuple(
            HostVerdict(
                name=name,
                status=HostStatus.FAULTY if culprits and name in bad else HostStatus.HEALTHY,
            )
            for name in HOSTS
        ),
        culprits=culprits,
        isolate=isolate,
    )
    return SweepReport(
        started=STARTED,
        seconds=30.0,
        plan=SweepPlan(mode="full", hosts=4, rounds=3, pairs=6, engine="torch", launcher="ssh"),
        diagnosis=replace(diagnosis, **more),  # type: ignore[arg-type]
    )


def against(pieces: tuple[EvidencePiece, ...]) -> list[EvidencePiece]:
    return [one for one in pieces if not one.clears]


def test_a_slow_host_of_a_sweep_is_accused_with_its_partners_and_the_others_are_clean() -> None:
    report = a_sweep(a_culprit(CulpritKind.HOST, "h1"), isolate=("h1",))
    pieces = of_sweep(report, "r1", where="/reports/a")
    (accused,) = against(pieces)
    assert (accused.host, accused.class_, accused.kind.value) == ("h1", "slow_host", "bandwidth")
    assert accused.partners == ("h2", "h3", "h4")
    assert accused.conclusive
    assert (accused.seen_s, accused.report) == (BEGAN_S + 30, "/reports/a")
    assert [one.host for one in pieces if one.clears] == ["h2", "h3", "h4"]


def test_a_nic_of_a_sweep_is_named_and_damaged_data_is_a_class_of_its_own() -> None:
    slow = a_culprit(CulpritKind.NIC, "h1:eth1")
    (nic,) = against(of_sweep(a_sweep(slow, isolate=("h1",)), "r1"))
    assert (nic.host, nic.class_, nic.component) == ("h1", "slow_nic", "eth1")
    broken = a_culprit(CulpritKind.HOST, "h1", damaged=True)
    (data,) = against(of_sweep(a_sweep(broken, isolate=("h1",)), "r1"))
    assert (data.class_, data.kind, data.conclusive) == ("damaged_data", EvidenceKind.DATA, True)


@pytest.mark.parametrize(
    "culprit",
    [
        a_culprit(CulpritKind.LINK, "h1->h2"),
        a_culprit(CulpritKind.SWITCH, "leaf1|leaf2"),
        a_culprit(CulpritKind.RAIL, "0"),
        a_culprit(CulpritKind.FLEET, "fleet"),
    ],
)
def test_links_switches_rails_and_the_fleet_accuse_no_host(culprit: Culprit) -> None:
    report = a_sweep(culprit)
    assert against(of_sweep(report, "r1")) == []


def test_a_culprit_that_the_sweep_does_not_isolate_is_inconclusive() -> None:
    doubtful = a_sweep(a_culprit(CulpritKind.HOST, "h1"))
    degraded = a_sweep(
        a_culprit(CulpritKind.HOST, "h1", status=LinkStatus.DEGRADED), isolate=("h1",)
    )
    for report in (doubtful, degraded):
        assert [one.conclusive for one in against(of_sweep(report, "r1"))] == [False]


def test_what_was_not_measured_is_neither_accused_nor_clean() -> None:
    hosts = (
        HostVerdict(name="h1", status=HostStatus.UNREACHABLE),
        HostVerdict(name="h2", status=HostStatus.INCONCLUSIVE, reason="busy"),
        HostVerdict(name="h3", status=HostStatus.HEALTHY),
    )
    pieces = of_sweep(a_sweep(hosts=hosts, verdict=Verdict.INCONCLUSIVE), "r1")
    assert [(one.host, one.conclusive, one.clears) for one in pieces] == [("h2", False, False)]
    cut = replace(a_sweep(), interrupted=True)
    assert of_sweep(cut, "r1") == ()
    few = a_sweep(links=a_sweep().diagnosis.links[:1])
    assert of_sweep(few, "r1") == ()


def test_devices_inside_a_host_are_no_hosts() -> None:
    report = a_sweep(a_culprit(CulpritKind.HOST, "h1"), isolate=("h1",))
    inside = replace(report, plan=replace(report.plan, endpoint="GPU"))
    assert of_sweep(inside, "r1") == ()


def a_bench(*findings: BenchFinding, verdict: Verdict = Verdict.FAULTY) -> BenchReport:
    return BenchReport(
        started=STARTED,
        seconds=9.0,
        collective="all_reduce",
        engine="nccl-tests",
        launcher="ssh",
        verdict=verdict,
        curves=(BenchCurve(hosts=("h1", "h2"), ranks=2),),
        findings=findings,
    )


def test_a_bench_accuses_the_host_of_a_slow_rank_and_nobody_of_what_names_no_host() -> None:
    slow = BenchFinding(
        kind=BenchFindingKind.SLOW_RANK,
        severity=BenchSeverity.FAULT,
        text="rank 1 takes longer",
        next="look",
        rank=1,
        host="h2",
    )
    wrong = replace(slow, kind=BenchFindingKind.WRONG_DATA, rank=None, host=None)
    below = replace(slow, kind=BenchFindingKind.BELOW_EXPECTATION, rank=None, host="h1")
    pieces = of_bench(a_bench(slow, wrong, below), "r1")
    assert [(one.host, one.class_, one.conclusive) for one in pieces] == [
        ("h2", "slow_rank", True),
        ("h1", "slow_host", False),
    ]
    (named,) = of_bench(a_bench(replace(wrong, host="h1")), "r1")
    assert (named.kind, named.class_, named.conclusive) == (EvidenceKind.DATA, "damaged_data", True)
    healthy = of_bench(a_bench(verdict=Verdict.HEALTHY), "r1")
    assert {(one.host, one.clears) for one in healthy} == {("h1", True), ("h2", True)}
    assert of_bench(a_bench(verdict=Verdict.INCONCLUSIVE), "r1") == ()


def a_finding(severity: HealthSeverity, check: str = "some_check", **more: object) -> HealthFinding:
    made = HealthFinding(check=check, severity=severity, text="it is broken", next="mend it")
    return replace(made, **more)  # type: ignore[arg-type]


def a_health(*findings: HealthFinding, passed: tuple[str, ...] = ()) -> HealthReport:
    host = HostHealth(
        host="h1",
        fitness=HostFitness.FATAL if findings else HostFitness.HEALTHY,
        findings=findings,
        passed=passed,
        facts=HealthFacts(hostname="h1", taken_s=9e9, uptime_s=77.0, answered_s=BEGAN_S + 2),
    )
    silent = HostHealth(host="h2", fitness=HostFitness.UNKNOWN, error="no answer")
    return HealthReport(started=STARTED, seconds=3.0, hosts=(host, silent))


def test_a_fatal_finding_is_conclusive_and_settings_accuse_no_hardware() -> None:
    report = a_health(
        a_finding(HealthSeverity.FATAL, class_="gpu_fell_off_bus", device="gpu3"),
        a_finding(HealthSeverity.FATAL, "manager", configuration=True),
        a_finding(HealthSeverity.FAULT, "soft"),
        a_finding(HealthSeverity.FAULT, "pcie", class_="pcie_error"),
        a_finding(HealthSeverity.FAULT, "hung_mount", class_="storage_error"),
        a_finding(HealthSeverity.FAULT, "hot", class_="thermal_power"),
        a_finding(HealthSeverity.WARNING, "warm"),
    )
    pieces = of_health(report, "r1", CHECKS)
    assert [(one.class_, one.conclusive, one.component) for one in pieces] == [
        ("gpu_fell_off_bus", True, "gpu3"),
        ("soft", False, None),
        ("pcie_error", True, None),
        ("storage_error", False, None),
        ("thermal_power", False, None),
    ]
    assert {one.seen_s for one in pieces} == {BEGAN_S + 2}
    assert {one.uptime_s for one in pieces} == {77.0}
    decided = decide(pieces, default_policy(), BEGAN_S + 5)
    assert [(one.action, one.sticky) for one in decided] == [(Action.ISOLATE, True)]


def test_faults_alone_isolate_nobody_however_often() -> None:
    fault = a_finding(HealthSeverity.FAULT, "pcie", class_="pcie_error")
    pieces = [one for n in range(9) for one in of_health(a_health(fault), f"r{n}", CHECKS)]
    assert {one.action for one in decide(pieces, default_policy(), BEGAN_S + 5)} == {Action.WATCH}


def test_passed_checks_clear_themselves_and_a_class_only_where_all_its_checks_passed() -> None:
    classes: dict[str, set[str]] = {}
    for name, check in CHECKS.items():
        if check.class_ is not None:
            classes.setdefault(check.class_.value, set()).add(name)
    class_, names = max(classes.items(), key=lambda pair: len(pair[1]))
    assert len(names) > 1
    whole = of_health(a_health(passed=tuple(names)), "r1", CHECKS)
    assert [set(one.covers) for one in whole] == [names | {class_}]
    assert all(one.clears for one in whole)
    some = of_health(a_health(passed=tuple(sorted(names)[1:])), "r1", CHECKS)
    assert class_ not in some[0].covers
    assert of_health(a_health(), "r1", CHECKS) == ()


def a_burn_in(*findings: StageFinding, isolate: tuple[str, ...] = ()) -> BurnInReport:
    stage = StageRun(
        stage=Stage.LOCAL, state=StageState.DONE, hosts=2, seconds=5.0, findings=findings
    )
    outcomes = [
        HostOutcome(
            name=name,
            outcome=Outcome.REJECTED if any(one.host == name for one in findings) else Outcome.GOOD,
            confidence=0.9,
        )
        for name in HOSTS
    ]
    return BurnInReport(
        started=STARTED,
        seconds=60.0,
        level="quick",
        need=2,
        spares_wanted=0,
        verdict=GateVerdict.MET,
        confidence=0.9,
        hosts=tuple(outcomes),
        stages=(stage,),
        isolate=isolate,
        sweep=a_sweep(a_culprit(CulpritKind.HOST, "h1"), isolate=("h1",)),
    )


def test_a_burn_in_accuses_only_whom_it_would_isolate_on_what_it_confirmed() -> None:
    sure = StageFinding(
        host="h1",
        stage=Stage.LOCAL,
        outcome=Outcome.REJECTED,
        reason="slow GEMM",
        confidence=0.95,
        confirmed=True,
        isolates=True,
        component="gpu2",
    )
    weak = (
        replace(sure, confirmed=False),
        replace(sure, isolates=False),
        replace(sure, outcome=Outcome.UNDECIDED),
    )
    pieces = of_burn_in(a_burn_in(sure, isolate=("h1",)), "r1", CHECKS)
    (accused,) = against(pieces)
    assert (accused.conclusive, accused.kind, accused.component) == (
        True,
        EvidenceKind.BURN_IN,
        "gpu2",
    )
    clean = {(one.host, one.kind.value) for one in pieces if one.clears}
    assert clean == {(name, kind) for name in HOSTS[1:] for kind in ("burn-in", "bandwidth")}
    assert len({(one.host, one.class_, one.component) for one in pieces}) == len(pieces)
    for finding in weak:
        pieces = of_burn_in(a_burn_in(finding, isolate=("h1",)), "r1", CHECKS)
        assert [one.conclusive for one in against(pieces)] == [False]
    assert not against(of_burn_in(a_burn_in(sure), "r1", CHECKS))[0].conclusive


def test_a_remark_of_a_burn_in_is_no_evidence_and_damaged_data_is_that_of_a_sweep() -> None:
    one = StageFinding(
        host="h1",
        stage=Stage.LOCAL,
        outcome=Outcome.GOOD,
        reason="slow beside others, alone as it should be",
        confidence=0.0,
    )
    assert against(of_burn_in(a_burn_in(one), "r1", CHECKS)) == []
    wrong = replace(one, outcome=Outcome.REJECTED, class_="damaged_data")
    (data,) = against(of_burn_in(a_burn_in(wrong), "r1", CHECKS))
    assert (data.kind, data.class_) == (EvidenceKind.DATA, "damaged_data")


def test_slow_ranks_accuse_the_hosts_that_are_known_less_what_chance_would_find() -> None:
    slow = SlowRank(
        rank=3, ratio=1.4, score=9.0, windows=9, windows_total=10, rules=("robust",), host="h1"
    )
    report = StragglerReport(
        kind=TimeKind.COMPUTE,
        verdict=StragglerVerdict.FOUND,
        ranks=8,
        iterations=100,
        groups=1,
        median_s=0.1,
        slow=(slow, replace(slow, rank=4, host=None)),
        expected_false_alarms=0.2,
    )
    (piece,) = of_stragglers(report, "r1", seen_s=BEGAN_S)
    assert (piece.host, piece.component, piece.seen_s) == ("h1", "rank 3", BEGAN_S)
    assert piece.confidence == pytest.approx(0.9 * 0.9)
    undecided = replace(report, verdict=StragglerVerdict.UNDECIDED)
    assert of_stragglers(undecided, "r1", seen_s=BEGAN_S) == ()


def a_fault(role: Role = Role.ROOT, **more: object) -> Finding:
    made = Finding(
        class_=FindingClass.GPU_FELL_OFF_BUS,
        role=role,
        severity=Severity.FATAL,
        confidence=0.9,
        suspects=(Suspect(kind=SuspectKind.HOST, name="h1"),),
        attributes={"pci": "0000:3b:00"},
        first_seen=FirstSeen(path="a.log", line=3, time="2026-11-02 10:00:00+00:00"),
        evidence=(EvidenceLine(path="a.log", line=3, text="Xid 79"),),
        explanation="Xid 79 means that the GPU fell off the bus.",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def a_postmortem(*findings: Finding, isolate: tuple[Isolation, ...] = ()) -> Postmortem:
    return Postmortem(
        verdict=PostmortemVerdict.FINDINGS,
        inputs=(),
        library=Library(),
        job=JobShape(),
        network=Network(),
        benchmarks=(),
        findings=findings,
        isolate=isolate,
    )


OUT = Isolation(host="h1", confidence=0.9, because="gpu_fell_off_bus on h1, 0000:3b:00")


def test_a_post_mortem_accuses_at_the_time_of_the_event_and_the_same_logs_count_once() -> None:
    report = a_postmortem(a_fault(), isolate=(OUT,))
    (piece,) = of_postmortem(report, {"a.log": BEGAN_S}, BEGAN_S + 9e6)
    assert (piece.host, piece.class_, piece.conclusive) == ("h1", "gpu_fell_off_bus", True)
    assert piece.seen_s == datetime(2026, 11, 2, 10, tzinfo=UTC).timestamp()
    assert (piece.component, piece.report) == ("0000:3b:00", "a.log:3")
    moved = a_fault(first_seen=replace(a_fault().first_seen or FirstSeen("", 0), path="b/a.log"))
    (again,) = of_postmortem(a_postmortem(moved, isolate=(OUT,)), {}, BEGAN_S)
    assert again.run == piece.run
    later = FirstSeen(path="a.log", line=9, time="2026-11-03 10:00:00+00:00")
    (other,) = of_postmortem(a_postmortem(a_fault(first_seen=later), isolate=(OUT,)), {}, BEGAN_S)
    assert other.run != piece.run


def test_a_post_mortem_accuses_a_host_of_every_class_that_alone_would_do() -> None:
    memory = a_fault(class_=FindingClass.GPU_MEMORY_ERROR, confidence=0.95)
    surest = Isolation(
        host="h1", confidence=0.95, because="gpu_memory_error on h1", also=(OUT.because,)
    )
    pieces = of_postmortem(a_postmortem(memory, a_fault(), isolate=(surest,)), {}, BEGAN_S)
    assert [(one.class_, one.confidence, one.conclusive) for one in pieces] == [
        ("gpu_memory_error", 0.95, True),
        ("gpu_fell_off_bus", 0.9, True),
    ]


def test_what_is_less_sure_in_the_same_log_stays_sticky(tmp_path: Path) -> None:
    log, store = tmp_path / "h7.log", tmp_path / "s.sqlite"
    start = "2026-11-02T10:00:0{}+00:00 h7 kernel: "
    fell = "NVRM: Xid (PCI:0000:43:00): 79, pid=501, name=python, GPU has fallen off the bus."
    fault = "NVRM: Xid (PCI:0000:43:00): 62, pid=501, Internal micro-controller halt"
    lines = [start.format(number) + line for number, line in enumerate((fault, fault, fell))]
    log.write_text("\n".join(lines) + "\n")
    assert main.run(["parse-log", str(log), "--record", "--store", str(store)]) == 1
    with Ledger.open(store) as ledger:
        told = {one.class_: one.conclusive for one in ledger.evidence()}
    assert told["gpu_fell_off_bus"]
    assert told["gpu_internal_fault"]


def test_consequences_accuse_nobody_and_roots_that_isolate_nobody_are_inconclusive() -> None:
    echo, warning = a_fault(Role.CONSEQUENCE), a_fault(Role.WARNING)
    setting = a_fault(
        suspects=(
            Suspect(kind=SuspectKind.CONFIG, name="NCCL_IB_HCA"),
            Suspect(kind=SuspectKind.HOST, name="h1"),
        )
    )
    assert of_postmortem(a_postmortem(echo, warning, setting), {}, BEGAN_S) == ()
    (piece,) = of_postmortem(a_postmortem(a_fault()), {}, BEGAN_S)
    assert not piece.conclusive


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-11-02 10:00:00", "2026-11-02T10:00:00"),
        ("2026-11-02T12:00:00+02:00", "2026-11-02T10:00:00"),
        ("Nov  2 10:00:00", "2026-11-02T10:00:00"),
        ("Dec  2 10:00:00", "2025-12-02T10:00:00"),
        ("Nov 20 18:00:00", "2026-11-20T10:00:00"),
        ("2026-11-20 18:00:00", "2026-11-20T10:00:00"),
        ("2026-11-29 18:00:00", "2026-11-29T18:00:00"),
        ("09:30:00", "2026-11-20T09:30:00"),
        ("11:30:00", "2026-11-19T11:30:00"),
        ("nonsense", "2026-11-20T10:00:00"),
    ],
)
def test_what_a_stamp_leaves_out_is_that_of_the_logs_end(text: str, when: str) -> None:
    assert event_s(text, BEGAN_S) == seconds_of(when)


def test_what_is_no_time_is_none() -> None:
    assert seconds_of("yesterday") is None
    assert of_sweep(replace(a_sweep(), started="?"), "r1")[0].seen_s == 0.0


def test_parse_log_records_what_logs_say_with_the_time_they_say_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, store = tmp_path / "h7.log", tmp_path / "s.sqlite"
    log.write_text(
        "2025-03-04T05:06:07+00:00 h7 kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=501, "
        "name=python, GPU has fallen off the bus.\n"
    )
    os.utime(log, (BEGAN_S, BEGAN_S))
    for _ in range(2):
        assert main.run(["parse-log", str(log), "--record", "--store", str(store)]) == 1
        _, err = capfd.readouterr()
        assert (
            f"evidence in {store}: conclusive against 1 host, not conclusive against 0, clears 0"
            in err
        )
    with Ledger.open(store) as ledger:
        (piece,) = ledger.evidence()
        assert piece.seen_s == datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC).timestamp()
        (found,) = decide(ledger.table(), default_policy(), BEGAN_S)
    assert (found.host, found.action, found.sticky) == ("h7", Action.ISOLATE, True)
    assert main.run(["parse-log", str(log), "--store", str(store)]) == 2
    assert "give --record" in capfd.readouterr().err


def test_a_sweep_that_is_recorded_again_replaces_what_it_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "s.sqlite"
    report = a_sweep(a_culprit(CulpritKind.HOST, "h1"), isolate=("h1",))
    assert keeping.keep(report, store, directory=tmp_path)
    assert keeping.keep(replace(a_sweep(verdict=Verdict.INCONCLUSIVE)), store, directory=tmp_path)
    with Ledger.open(store) as ledger:
        assert ledger.evidence() == []
    _, err = capfd.readouterr()
    assert (
        f"evidence in {store}: conclusive against 1 host, not conclusive against 0, clears 3" in err
    )
