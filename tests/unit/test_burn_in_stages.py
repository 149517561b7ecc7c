"""What each stage of a burn-in says of hosts, over a fleet that exists only in numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from burn_in_bed import NAMES, FakeBed, plan

from ncdiag.isolate.words import KNOWN_CLASSES, health_checks
from ncdiag.measure.burn_in import loopback
from ncdiag.measure.burn_in.loopback import LoopbackAnswer, LoopbackTask
from ncdiag.measure.burn_in.messages import LocalFigure
from ncdiag.measure.burn_in.plan import Level
from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.stages import pairs
from ncdiag.measure.burn_in.stages.collective import collective
from ncdiag.measure.burn_in.stages.health import Health
from ncdiag.measure.burn_in.stages.load import load
from ncdiag.measure.burn_in.stages.local import local
from ncdiag.measure.burn_in.stages.pairs import choose_mode
from ncdiag.measure.burn_in.stages.reach import reach
from ncdiag.measure.engines.perftest.programs import UnusableError
from ncdiag.model.burn_in import Outcome, Stage, StageState
from ncdiag.model.gpu_parts import GpuProcess
from ncdiag.model.health import (
    GpuHealth,
    HealthFacts,
    HealthFinding,
    HostFitness,
    HostHealth,
    Severity,
    Source,
    SourceReading,
    SourceState,
)
from ncdiag.model.host import Nic, NicKind
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    Verdict,
)


def outcomes(found: StageOutcome) -> dict[str, Outcome]:
    return {one.host: one.outcome for one in found.findings}


def run_local(bed: FakeBed, seconds: float = 60.0) -> StageOutcome:
    return local(bed, bed.clock.deadline(seconds), 1)


def run_collective(bed: FakeBed, seconds: float = 200.0) -> StageOutcome:
    return collective(bed, bed.clock.deadline(seconds), 1)


def run_load(bed: FakeBed, seconds: float = 60.0) -> StageOutcome:
    return load(bed, bed.clock.deadline(seconds), 1)


# --- local ---


def test_hosts_alike_pass_and_their_figures_are_kept() -> None:
    found = run_local(FakeBed())
    assert (found.state, found.findings) == (StageState.DONE, [])
    assert found.passed == tuple(NAMES)
    assert {(one.name, one.median) for one in found.figures} == {("gemm_tflop_per_s", 100.0)}
    assert found.notes == ["loopback RDMA: no active RDMA port: h[1-8]"]


def test_a_host_that_is_slow_alone_as_well_is_rejected_and_to_blame() -> None:
    bed = FakeBed(gemm=lambda host, _: 60.0 if host == "h3" else 100.0)
    found = run_local(bed)
    [one] = found.findings
    assert (one.host, one.outcome, one.confirmed, one.isolates) == (
        "h3",
        Outcome.REJECTED,
        True,
        True,
    )
    assert "60 %" in one.reason
    assert bed.rejected == {"h3"}
    assert "h3" not in found.passed


def test_a_host_that_is_slow_only_beside_others_is_remarked_and_passes() -> None:
    slow = FakeBed(gemm=lambda host, together: 60.0 if host == "h3" and together > 1 else 100.0)
    found = run_local(slow)
    assert outcomes(found) == {"h3": Outcome.GOOD}
    assert found.passed == tuple(NAMES)
    assert slow.rejected == set()


def test_alone_it_is_compared_with_others_that_were_alone() -> None:
    def gemm(host: str, together: int) -> float:
        return (100.0 if together > 1 else 800.0) * (0.3 if host == "h3" else 1.0)

    assert outcomes(run_local(FakeBed(gemm=gemm, on_gpus=False))) == {"h3": Outcome.REJECTED}


def test_a_suspect_that_there_is_no_time_to_repeat_is_undecided() -> None:
    bed = FakeBed(gemm=lambda host, _: 60.0 if host == "h3" else 100.0, cost_s=10.0)
    assert outcomes(run_local(bed, 10.5)) == {"h3": Outcome.UNDECIDED}
    assert bed.rejected == set()


def test_a_test_that_fails_twice_is_undecided_and_spoils_nothing_later() -> None:
    bed = FakeBed(gemm=lambda host, _: "it was killed" if host == "h3" else 100.0)
    found = run_local(bed)
    assert outcomes(found) == {"h3": Outcome.UNDECIDED}
    assert found.doubtful == {"h3"}
    once = FakeBed(gemm=lambda host, n: "it was killed" if host == "h3" and n > 1 else 100.0)
    assert outcomes(run_local(once)) == {"h3": Outcome.GOOD}


def test_wrong_numbers_count_when_they_are_repeated() -> None:
    twice = run_local(FakeBed(wrong=lambda host, _: int(host == "h2")))
    assert outcomes(twice) == {"h2": Outcome.REJECTED}
    once = run_local(FakeBed(wrong=lambda host, together: int(host == "h2" and together > 1)))
    assert outcomes(once) == {"h2": Outcome.UNDECIDED}


def test_hosts_of_another_model_are_compared_with_their_like() -> None:
    """Four old hosts and four new ones, of which one of each kind is slow."""
    old = NAMES[:4]
    gemm = {name: 30.0 if name in old else 100.0 for name in NAMES} | {"h1": 12.0, "h5": 40.0}
    bed = FakeBed(
        gemm=lambda host, _: gemm[host],
        device=lambda host: "A100" if host in old else "H100",
        compute_s=lambda host, _: 0.03 if host in old else 0.01,
    )
    found = run_local(bed)
    assert outcomes(found) == {"h1": Outcome.REJECTED, "h5": Outcome.REJECTED}
    assert all("40 % of what others reach" in one.reason for one in found.findings)
    assert run_load(bed).findings == []


def test_where_too_few_are_alike_to_tell_a_slow_one_that_is_said() -> None:
    bed = FakeBed(
        gemm=lambda host, _: 10.0 if host == "h1" else 100.0,
        device=lambda host: "A100" if host in NAMES[:3] else "H100",
    )
    found = run_local(bed)
    assert found.findings == []
    assert found.notes[1:] == ["local: h[1-3]: too few are alike to tell a slow one (A100)"]


def test_a_slow_cpu_is_out_and_not_to_blame_for_what_else_runs_there() -> None:
    bed = FakeBed(
        gemm=lambda host, _: 30.0 if host == "h3" else 100.0,
        compute_s=lambda host, _: 0.03 if host == "h4" else 0.01,
        on_gpus=False,
    )
    found = [*run_local(bed).findings, *run_load(bed).findings]
    assert [(one.host, one.outcome, one.isolates) for one in found] == [
        ("h3", Outcome.REJECTED, False),
        ("h4", Outcome.REJECTED, False),
    ]
    wrong = run_local(FakeBed(wrong=lambda host, _: int(host == "h2"), on_gpus=False))
    assert [one.isolates for one in wrong.findings] == [True]


def ports(rate: float, slow: float = 100.0) -> LoopbackAnswer:
    return LoopbackAnswer(
        figures=(
            LocalFigure("loopback_gbit_per_s", slow, "mlx5_0"),
            LocalFigure("loopback_gbit_per_s", rate, "mlx5_1"),
        )
    )


def test_a_slow_rdma_port_is_named_and_one_slow_by_design_hides_it_not() -> None:
    found = run_local(
        FakeBed(ports={name: ports(150.0 if name == "h5" else 388.0) for name in NAMES})
    )
    [one] = found.findings
    assert (one.host, one.outcome, one.component) == ("h5", Outcome.REJECTED, "mlx5_1")
    assert one.isolates
    assert "loopback (Gbit/s) mlx5_1 150" in one.reason


def test_a_port_that_only_one_host_has_is_no_fault() -> None:
    extra = LocalFigure("loopback_gbit_per_s", 25.0, "mlx5_bond_0")
    answers = {name: ports(388.0) for name in NAMES}
    answers["h5"] = LoopbackAnswer(figures=(*answers["h5"].figures, extra))
    assert run_local(FakeBed(ports=answers)).findings == []


MLX5 = Nic(name="mlx5_0", kind=NicKind.INFINIBAND, hca="mlx5_0", hca_port=1)


@pytest.mark.parametrize(
    ("nics", "why"),
    [((), "no active RDMA port"), ((MLX5,), "ib_write_bw is not in PATH")],
)
def test_loopback_says_why_it_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, nics: tuple[Nic, ...], why: str
) -> None:
    def missing(*_: object) -> None:
        raise UnusableError("ib_write_bw is not in PATH")

    monkeypatch.setattr(loopback, "find_nics", lambda *_: (nics, {}))
    monkeypatch.setattr(loopback, "find_build", missing)
    answer = msgspec.json.decode(
        loopback.measure(msgspec.json.encode(LoopbackTask())), type=LoopbackAnswer
    )
    assert answer == LoopbackAnswer(skipped=why)


@pytest.mark.parametrize(
    ("named", "measured"), [((), ["mlx5_0", "mlx5_1"]), (("mlx5_1",), ["mlx5_1"])]
)
def test_loopback_measures_the_ports_that_are_named(
    monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...], measured: list[str]
) -> None:
    both = (MLX5, replace(MLX5, name="mlx5_1", hca="mlx5_1"))
    plain = (Nic(name="eth0", kind=NicKind.ETHERNET),)

    def find(names: tuple[str, ...], _hint: object) -> tuple[tuple[Nic, ...], dict[str, str]]:
        found = [nic for nic in (*both, *plain) if not names or nic.name in names]
        return tuple(found), {}

    monkeypatch.setattr(loopback, "find_nics", find)
    monkeypatch.setattr(loopback, "find_build", lambda *_: None)
    monkeypatch.setattr(loopback, "_port", lambda *_: 100.0)
    for names in (named, (*named, "eth0")):
        task = msgspec.json.encode(LoopbackTask(nics=names))
        answer = msgspec.json.decode(loopback.measure(task), type=LoopbackAnswer)
        assert [one.component for one in answer.figures] == measured


def test_a_port_that_there_is_no_time_for_takes_nothing_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = [replace(MLX5, name=f"mlx5_{number}") for number in range(4)]
    now_s = iter([0.0, 0.5, 4.5, 8.5, 12.5])
    monkeypatch.setattr(loopback, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    monkeypatch.setattr(loopback, "find_nics", lambda *_: (ports, {}))
    monkeypatch.setattr(loopback, "find_build", lambda *_: None)
    monkeypatch.setattr(loopback, "_port", lambda *_: 100.0)
    task = msgspec.json.encode(LoopbackTask(limit_s=9.0))
    answer = msgspec.json.decode(loopback.measure(task), type=LoopbackAnswer)
    assert [one.component for one in answer.figures] == ["mlx5_0", "mlx5_1"]
    assert answer.problems == ("no time was left for mlx5_2, mlx5_3",)


# --- collective ---


def test_a_collective_that_works_passes_everybody() -> None:
    bed = FakeBed()
    found = run_collective(bed)
    assert found.passed == tuple(NAMES)
    assert found.notes == [
        "collective: all_reduce of 4 MiB over 8 ranks: busbw 1.5 GB/s, all data right"
    ]
    assert len(bed.trials) == 1


def test_who_makes_it_fail_is_found_with_two_partners() -> None:
    bed = FakeBed(works=lambda hosts: "h6" not in hosts)
    found = run_collective(bed)
    [one] = found.findings
    assert (one.host, one.outcome, one.isolates) == ("h6", Outcome.REJECTED, True)
    assert len(set(one.partners)) == 2
    assert bed.rejected == {"h6"}
    assert set(found.passed) == set(NAMES) - {"h6"}


def test_a_failure_that_does_not_come_back_is_a_note() -> None:
    bed = FakeBed()
    bed.works = lambda _: len(bed.trials) > 1
    found = run_collective(bed)
    assert found.findings == []
    assert found.passed == tuple(NAMES)
    assert any("it worked when it was repeated" in note for note in found.notes)


def test_without_time_to_look_nobody_is_blamed_and_all_are_undecided() -> None:
    bed = FakeBed(works=lambda hosts: "h6" not in hosts, cost_s=9.0)
    found = run_collective(bed, 10.0)
    assert set(outcomes(found).values()) == {Outcome.UNDECIDED}
    assert len(found.findings) == len(NAMES)
    assert found.state is StageState.FAILED
    assert bed.rejected == set()


def test_looking_for_the_culprit_may_take_the_time_of_what_would_follow() -> None:
    bed = FakeBed(works=lambda hosts: "h6" not in hosts, cost_s=9.0)
    bed.end = bed.clock.deadline(150.0)
    found = run_collective(bed, 30.0)
    assert outcomes(found) == {"h6": Outcome.REJECTED}
    assert bed.clock.now_s <= bed.end.end_s


def test_who_is_lost_while_the_culprit_is_looked_for_is_not_to_blame() -> None:
    bed = FakeBed()

    def works(hosts: Sequence[str]) -> bool:
        if len(bed.trials) == 3:  # the whole, the whole again, and a half of it
            bed.fleet.up = tuple(name for name in NAMES if name != "h6")
        return "h6" not in hosts

    bed.works = works
    found = run_collective(bed)
    [one] = found.findings
    assert (one.host, one.outcome, one.isolates) == ("h6", Outcome.UNDECIDED, False)
    assert set(found.passed) == set(NAMES) - {"h6"}
    assert "h6" not in bed.rejected


def test_a_failure_of_all_together_blames_nobody() -> None:
    found = run_collective(FakeBed(works=lambda hosts: not {"h1", "h8"} <= set(hosts)))
    assert set(outcomes(found).values()) == {Outcome.UNDECIDED}
    assert any("fail together, and work in halves" in note for note in found.notes)


def test_of_one_host_there_is_no_collective() -> None:
    bed = FakeBed(rejected=set(NAMES[1:]))
    found = run_collective(bed)
    assert (found.state, found.hosts) == (StageState.SKIPPED, 0)
    assert run_load(bed).state is StageState.SKIPPED


# --- load ---


def test_a_load_that_is_even_passes_everybody() -> None:
    found = run_load(FakeBed())
    assert found.findings == []
    assert found.passed == tuple(NAMES)
    assert {one.name for one in found.figures} == {"load_compute_s"}
    assert not any(one.lower_is_worse for one in found.figures)


def test_a_host_that_computes_slowly_under_load_and_alone_is_rejected() -> None:
    bed = FakeBed(compute_s=lambda host, _: 0.013 if host == "h7" else 0.01)
    [one] = run_load(bed).findings
    assert (one.host, one.outcome, one.class_) == ("h7", Outcome.REJECTED, "slow_rank")
    assert one.component == "gpu0"
    assert bed.rejected == {"h7"}


@pytest.mark.parametrize(("slower", "isolates"), [(1.15, False), (1.3, True)])
def test_only_a_gpu_that_is_far_too_slow_is_to_blame(slower: float, isolates: bool) -> None:  # noqa: FBT001
    bed = FakeBed(compute_s=lambda host, _: 0.01 * (slower if host == "h7" else 1.0))
    [one] = run_load(bed).findings
    assert (one.outcome, one.isolates) == (Outcome.REJECTED, isolates)


def slow_under_load(**more: bool) -> FakeBed:
    return FakeBed(compute_s=lambda host, n: 0.03 if host == "h7" and n > 1 else 0.01, **more)


def test_a_gpu_that_is_slow_in_all_of_the_load_is_out_though_it_is_fast_alone() -> None:
    [one] = run_load(slow_under_load()).findings
    assert (one.host, one.outcome, one.isolates) == ("h7", Outcome.REJECTED, False)
    assert "in all of the load; alone 10 ms" in one.reason


def test_a_cpu_that_is_slow_only_beside_others_is_remarked() -> None:
    assert outcomes(run_load(slow_under_load(on_gpus=False))) == {"h7": Outcome.GOOD}


def test_a_rank_that_dies_every_time_fails_the_stage_and_blames_nobody() -> None:
    bed = FakeBed(compute_s=lambda host, _: "was killed by signal 9" if host == "h2" else 0.01)
    found = run_load(bed)
    assert found.state is StageState.FAILED
    assert "h2: was killed by signal 9" in str(found.reason)
    assert found.findings == []
    assert bed.bench.renewed == 2, "the others wait for the one that is gone"


def test_a_host_lost_under_load_is_undecided_and_the_others_go_on() -> None:
    bed = FakeBed()

    def compute_s(host: str, _: int) -> float | str:
        if host == "h2":
            bed.fleet.up = tuple(name for name in NAMES if name != "h2")
            return "lost: its connection ended"
        return 0.01

    bed.compute_s = compute_s
    found = run_load(bed)
    assert outcomes(found) == {"h2": Outcome.UNDECIDED}
    assert set(found.passed) == set(NAMES) - {"h2"}


# --- reach, health, pairs ---


@pytest.mark.parametrize(
    ("gpus", "by_design", "out"),
    [
        ({"h2": 7}, {}, {"h2"}),
        ({"h2": 4}, {"h2": 4}, set()),
        ({"h2": 3}, {"h2": 4}, {"h2"}),
        (dict.fromkeys(NAMES[:4], 4), {}, set()),
        (dict.fromkeys(NAMES, 4), dict.fromkeys(NAMES, 8), set()),
    ],
    ids=["one lost", "smaller by design", "smaller and lost", "two kinds", "a profile hides some"],
)
def test_a_host_with_fewer_gpus_than_most_is_out(
    gpus: dict[str, int], by_design: dict[str, int], out: set[str]
) -> None:
    bed = FakeBed(gpus=dict.fromkeys(NAMES, 8) | gpus)
    bed.start = lambda: None
    hosts = [replace(host, gpus=by_design.get(host.name)) for host in bed.plan.hosts]
    bed.plan = replace(bed.plan, hosts=tuple(hosts))
    found = reach(bed, bed.clock.deadline(), 1)
    assert {one.host for one in found.findings} == out == bed.rejected
    assert not any(one.isolates for one in found.findings)
    assert set(found.passed) == set(NAMES) - out


def test_a_host_that_came_up_and_cannot_be_measured_is_not_called_unreachable() -> None:
    bed = FakeBed()
    bed.start = lambda: None
    bed.unreachable = {"h1": "torch is not installed there", "h9": "no route to host"}
    found = reach(bed, bed.clock.deadline(), 1)
    assert {(one.host, one.stage) for one in found.findings} == {
        ("h1", Stage.LOCAL),
        ("h9", Stage.REACH),
    }
    assert found.passed == tuple(NAMES[1:])


def finding(severity: Severity, **more: object) -> HealthFinding:
    return HealthFinding(check="x", severity=severity, text=f"{severity}", next="do", **more)


def judged(*hosts: HostHealth) -> Health:
    def ask(*_: object) -> tuple[dict[str, HealthFacts], dict[str, str]]:
        return {}, {}

    return Health(ask=ask, judge=lambda *_: (hosts, ()))


def test_only_faults_and_worse_reject_and_only_broken_hardware_isolates() -> None:
    health = judged(
        HostHealth(host="h1", fitness=HostFitness.HEALTHY),
        HostHealth(host="h2", fitness=HostFitness.WARNING, findings=(finding(Severity.WARNING),)),
        HostHealth(host="h3", fitness=HostFitness.FAULTY, findings=(finding(Severity.FAULT),)),
        HostHealth(
            host="h4",
            fitness=HostFitness.FATAL,
            findings=(finding(Severity.FATAL, class_="gpu_lost"), finding(Severity.FATAL)),
        ),
        HostHealth(
            host="h5",
            fitness=HostFitness.FATAL,
            findings=(finding(Severity.FATAL, configuration=True),),
        ),
        HostHealth(host="h6", fitness=HostFitness.UNKNOWN, error="it did not answer"),
    )
    bed = FakeBed()
    found = health(bed, bed.clock.deadline(), 1)
    assert outcomes(found) == {
        "h3": Outcome.REJECTED,
        "h4": Outcome.REJECTED,
        "h5": Outcome.REJECTED,
        "h6": Outcome.UNDECIDED,
    }
    assert [one.host for one in found.findings if one.isolates] == ["h4"]
    [four] = [one for one in found.findings if one.host == "h4"]
    assert (four.class_, four.reason) == ("gpu_lost", "fatal (and 1 more like it)")
    assert found.passed == ("h1", "h2")
    assert bed.rejected == {"h3", "h4", "h5"}


def test_what_measures_holds_memory_and_is_no_fault_of_the_host() -> None:
    free = GpuHealth(index=0, memory_free_bytes=79 << 30, memory_total_bytes=80 << 30)
    held = replace(free, memory_free_bytes=2 << 30, processes=(GpuProcess(pid=7, name="python"),))
    readings = [{"h1": free, "h2": held}, {"h1": held, "h2": held}]

    def ask(*_: object) -> tuple[dict[str, HealthFacts], dict[str, str]]:
        read = (SourceReading(source=Source.NVML, state=SourceState.READ, seconds=0.1),)
        gpus = readings.pop(0)
        return {
            name: HealthFacts(hostname=name, taken_s=1.0, gpus=(gpu,), sources=read)
            for name, gpu in gpus.items()
        }, {}

    health, bed = Health(ask=ask), FakeBed()
    before = health(bed, bed.clock.deadline(), 1)
    assert outcomes(before) == {"h2": Outcome.REJECTED}
    assert "of memory free" in before.findings[0].reason
    assert health(bed, bed.clock.deadline(), 1).findings == []


@pytest.mark.parametrize("pass_number", [1, 2])
def test_pairs_whose_journal_cannot_be_written_have_failed(
    tmp_path: Path, pass_number: int
) -> None:
    (tmp_path / "file").write_text("")
    stage, bed = pairs.Pairs(tmp_path / "file"), FakeBed(plan=plan(launcher="ssh"))
    found = stage(bed, bed.clock.deadline(), pass_number)  # type: ignore[arg-type] - stands for one
    assert (found.state, found.passed) == (StageState.FAILED, ())
    assert found.reason is not None
    assert "Not a directory" in found.reason
    assert stage.report is not None


def test_of_a_host_that_pairs_cannot_judge_the_next_step_is_told() -> None:
    def verdict(name: str, status: HostStatus) -> HostVerdict:
        return HostVerdict(name=name, status=status, reason="lost: its connection was closed")

    statuses = {"h1": HostStatus.UNREACHABLE, "h2": HostStatus.INCONCLUSIVE}
    hosts = tuple(verdict(name, status) for name, status in statuses.items())
    found = list(pairs._findings(Diagnosis(verdict=Verdict.INCONCLUSIVE, links=(), hosts=hosts), 1))
    assert [one.host for one in found if "power, network" in one.next] == ["h1"]
    assert [one.host for one in found if "measure again" in one.next] == ["h2"]
    assert {one.outcome for one in found} == {Outcome.UNDECIDED}


@pytest.mark.parametrize(
    ("level", "hosts", "left_s", "mode"),
    [
        (Level.QUICK, 12, 66.0, "full"),
        (Level.QUICK, 1000, 66.0, "quick"),
        (Level.NORMAL, 100, 250.0, "full"),
        (Level.NORMAL, 1000, 250.0, "quick"),
    ],
)
def test_every_pair_is_measured_where_time_allows(
    level: Level, hosts: int, left_s: float, mode: str
) -> None:
    assert choose_mode(level, hosts, 1, 1.0, left_s) == mode


@pytest.mark.parametrize(
    ("efficiency", "faulty_below", "reason"),
    [
        (0.2, 0.8, "sends slowly; links of this host reach 20 % of what they should (below 80 %)"),
        (0.85, 0.9, "sends slowly; links of this host reach 85 % of what they should (below 90 %)"),
        (0.95, 0.8, "sends slowly"),
        (None, 0.8, "sends slowly"),
    ],
)
def test_the_check_of_pair_bandwidth_is_among_the_reasons(
    efficiency: float | None, faulty_below: float, reason: str
) -> None:
    host = HostVerdict(
        name="h1", status=HostStatus.FAULTY, reason="sends slowly", efficiency=efficiency
    )
    diagnosis = Diagnosis(verdict=Verdict.FAULTY, links=(), hosts=(host,))
    assert [one.reason for one in pairs._findings(diagnosis, 1, faulty_below)] == [reason]


def culprit(kind: CulpritKind, name: str, *, damaged: bool = False) -> Culprit:
    return Culprit(
        kind=kind,
        name=name,
        direction=Direction.SEND,
        status=LinkStatus.FAULTY,
        efficiency=0.2,
        explains=3,
        contradicts=0,
        confidence=0.9,
        reason="slow",
        next="look",
        damaged=damaged,
    )


@pytest.mark.parametrize(
    ("one", "class_"),
    [
        (culprit(CulpritKind.HOST, "h1"), "slow_host"),
        (culprit(CulpritKind.NIC, "h1:eth0"), "slow_nic"),
        (culprit(CulpritKind.HOST, "h1", damaged=True), "damaged_data"),
        (culprit(CulpritKind.NIC, "h1:eth0", damaged=True), "damaged_data"),
    ],
)
def test_what_pairs_blame_is_called_as_a_sweep_calls_it(one: Culprit, class_: str) -> None:
    host = HostVerdict(name="h1", status=HostStatus.FAULTY, reason="slow")
    diagnosis = Diagnosis(verdict=Verdict.FAULTY, links=(), hosts=(host,), culprits=(one,))
    assert [found.class_ for found in pairs._findings(diagnosis, 1)] == [class_]


SLOW = {"gemm": lambda host, _: 60.0 if host == "h3" else 100.0}
FAILS = {"gemm": lambda host, _: "it was killed" if host == "h3" else 100.0}
LATE = {"compute_s": lambda host, _: 0.03 if host == "h7" else 0.01}
BAD = {"works": lambda hosts: "h4" not in hosts}
PORTS = {
    name: LoopbackAnswer(
        figures=(LocalFigure("loopback_gbit_per_s", 20.0 if name == "h3" else 100.0, "mlx5_0"),)
    )
    for name in NAMES
}


@pytest.mark.parametrize(
    ("run", "bed", "classes"),
    [
        (run_local, FakeBed(**SLOW), {"slow_rank"}),
        (run_local, FakeBed(**FAILS), {"burn_in"}),
        (run_local, FakeBed(ports=PORTS), {"slow_nic"}),
        (run_local, FakeBed(wrong=lambda host, _: int(host == "h2")), {"damaged_data"}),
        (run_local, FakeBed(wrong=lambda _, together: int(together > 1)), {"damaged_data"}),
        (run_collective, FakeBed(**BAD), {"burn_in"}),
        (run_collective, FakeBed(**BAD, damages=True), {"damaged_data"}),
        (run_load, FakeBed(**LATE), {"slow_rank"}),
    ],
)
def test_every_finding_has_a_word_that_a_policy_knows(
    run: Callable[[FakeBed], StageOutcome], bed: FakeBed, classes: set[str]
) -> None:
    found = {one.class_ for one in run(bed).findings}
    assert found == classes
    assert found <= {*KNOWN_CLASSES, *health_checks()}
