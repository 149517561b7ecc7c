"""The nccl-tests engine over two hosts of this machine, with programs that play theirs."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from nccl_tests_programs import install, install_mpiexec

from ncdiag.cluster.launchers import Launch, choose
from ncdiag.measure.engines.base import Endpoint, EngineOptions, EngineSettings, PairOrder, Timing
from ncdiag.measure.engines.nccl_tests.engine import NcclTestsEngine
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.measurement import Measurement, Purpose

HOSTS = [Host(name=f"h{n}", address=f"127.0.0.{n}", nics=("lo",)) for n in (1, 2)]
# Little, since the programs really let it cross the loopback interface.
TIMING = Timing(max_bytes=1 << 20)


def faults(**settings: str) -> Mapping[str, str]:
    return {f"FAKE_NCCL_TESTS_{name}": value for name, value in settings.items()}


def engine_for(
    folder: Path, pair_test: str = "sendrecv", start_s: float = 60.0, **variables: str
) -> NcclTestsEngine:
    settings = EngineSettings(pair_test=pair_test, nccl_tests_dir=str(folder))
    options = EngineOptions(timing=TIMING, settings=settings, variables=variables)
    return NcclTestsEngine(HOSTS, choose("local", HOSTS), options, start_s=start_s)


def order_of(facts: Mapping[str, HostFacts]) -> PairOrder:
    first, second = (Endpoint(name, facts[name].nics[0]) for name in ("h1", "h2"))
    return PairOrder(first=first, second=second, rail=0, round=3, purpose=Purpose.QUIET)


class Bench:
    """An engine that was started, and its one pair."""

    def __init__(self, engine: NcclTestsEngine) -> None:
        self.engine = engine
        self.order = order_of(engine.start(lambda *_: None))

    def measure(self) -> list[Measurement]:
        return list(self.engine.measure([self.order]))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("FAKE_NCCL_TESTS", "NCCL_", "PMI", "SLURM", "OMPI")):
                patch.delenv(name)
        folder = install_mpiexec(tmp_path_factory.mktemp("mpi"))
        patch.setenv("PATH", str(folder), prepend=os.pathsep)
        patch.setenv("FAKE_NCCL_TESTS_TRAFFIC", "lo")
        yield patch


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("nccl-tests"))


@pytest.fixture(scope="module")
def bench(programs: Path, environment: pytest.MonkeyPatch) -> Iterator[Bench]:
    del environment
    engine = engine_for(programs)
    yield Bench(engine)
    engine.close()


def measure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, **settings: str
) -> tuple[Measurement, Measurement]:
    for name, value in faults(**settings).items():
        monkeypatch.setenv(name, value)
    first, second = bench.measure()
    return first, second


def why(bench: Bench, monkeypatch: pytest.MonkeyPatch, **settings: str) -> str:
    """The one error of both directions."""
    first, second = measure(bench, monkeypatch, **settings)
    assert first.measured_gbit_per_s is second.measured_gbit_per_s is None
    assert first.error == second.error
    assert first.error is not None
    assert "\n" not in first.error
    return first.error


def test_both_directions_have_the_figure_of_the_pair(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = measure(bench, monkeypatch, PLATEAU="10", LATENCY_US="0")
    assert (first.source, first.target) == (second.target, second.source) == ("h1", "h2")
    for one in (first, second):
        assert one.error is None
        assert one.measured_gbit_per_s == pytest.approx(80, rel=0.01)
        assert one.min_gbit_per_s == pytest.approx(80, rel=0.01)
        assert 0 < one.bytes <= 2 << 20
        assert one.idle is not None
        assert (one.rail, one.round, one.purpose) == (0, 3, Purpose.QUIET)


def test_the_slowest_iteration_is_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = measure(bench, monkeypatch, PLATEAU="10", LATENCY_US="0", NOISE="0.5")
    assert one.min_gbit_per_s is not None
    assert one.measured_gbit_per_s is not None
    assert one.min_gbit_per_s < 0.8 * one.measured_gbit_per_s


def test_log_lines_of_nccl_stay_out_of_the_table(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = measure(bench, monkeypatch, LOG="1")
    assert one.error is None


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"WRONG": "64K:5"}, "wrong data between h1 and h2: 5 wrong elements in messages of 65536"),
        ({"WRONG_HOSTS": "h2"}, "wrong data between h1 and h2"),
        ({"NO_MPI": "1"}, "h2: the program was built without MPI, so that each rank ran by itself"),
        ({"CRASH": "cuda:1"}, "h1: CUDA failed: an illegal memory access was encountered"),
        ({"CRASH": "nccl:0"}, "h1: NCCL failed: unhandled system error"),
        ({"GPUS": "0"}, "h1: it has too few GPUs: 1 asked for, 0 found"),
        ({"NO_LIBRARY": "libcudart.so.12"}, "h1: it was built for another CUDA, NCCL or MPI"),
        ({"HANG": "1"}, "h1: timed out: nothing came of it"),
        ({"HANG": "1!"}, "h1: timed out: killed after"),
        ({"DIE": "1"}, "h1: it was killed by signal 9"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_each_fault_is_told_in_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], told: str
) -> None:
    if "HANG" in settings:
        monkeypatch.setattr(bench.engine, "_start_s", 1.0)
        monkeypatch.setattr("ncdiag.measure.engines.nccl_tests.engine.SLOWEST", 1)
        monkeypatch.setattr("ncdiag.measure.engines.nccl_tests.engine._OWN_S", 1.0)
    assert told in why(bench, monkeypatch, **settings)


def test_a_launcher_that_fails_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncdiag.cluster.mpi.hydra._variables", lambda _program: ["-no-such-option"])
    error = why(bench, monkeypatch)
    assert error == "not started: mpiexec: unknown option -no-such-option"
    assert bench.engine.unreachable == {}, "both hosts answer by themselves"


def test_a_host_that_was_lost_is_left_out_from_then_on(
    programs: Path, environment: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    del environment
    engine = engine_for(programs)
    try:
        bench = Bench(engine)
        launches = engine._launcher.launches
        gone = (
            "sh",
            "-c",
            "echo 'ssh: connect to host h2 port 22: No route to host' >&2; exit 255",
        )
        monkeypatch.setattr(
            engine._launcher,
            "launches",
            lambda hosts, job: [
                replace(one, argv=gone) if one.hosts == ("h2",) else one
                for one in launches(hosts, job)
            ],
        )
        monkeypatch.setattr(
            "ncdiag.cluster.mpi.hydra._variables", lambda _program: ["-no-such-option"]
        )
        assert all(one.error for one in bench.measure())
    finally:
        engine.close()
    assert engine.unreachable == {"h2": "lost: no route: it is down, or its link is"}


@pytest.mark.parametrize("refusal", [UsageError, UndecidedError])
def test_a_launcher_that_fails_later_on_ends_no_sweep_and_loses_no_host(
    programs: Path,
    environment: pytest.MonkeyPatch,
    monkeypatch: pytest.MonkeyPatch,
    refusal: type[Exception],
) -> None:
    """As kubectl does where the cluster does not answer for a moment."""
    del environment

    def fail(*_: object) -> list[Launch]:
        raise refusal("kubectl gave no answer within 60 s")

    engine = engine_for(programs)
    try:
        bench = Bench(engine)
        monkeypatch.setattr(engine._launcher, "launches", fail)
        monkeypatch.setattr(
            "ncdiag.cluster.mpi.hydra._variables", lambda _program: ["-no-such-option"]
        )
        assert [one.error for one in bench.measure()] == [
            "not started: mpiexec: unknown option -no-such-option"
        ] * 2
    finally:
        engine.close()
    assert engine.unreachable == {}


def test_an_mpiexec_that_is_gone_meanwhile_costs_the_pairs_and_not_the_sweep(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    error = why(bench, monkeypatch)
    assert error.startswith("cannot start the program: no mpiexec of Hydra: no mpiexec.hydra")
    assert bench.engine.unreachable == {}


@pytest.mark.parametrize("version", ["2.11.0", "2.16.7", "2.17.3", "2.18.2", "rccl-2024-09"])
def test_older_programs_are_told_only_what_they_know(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("FAKE_NCCL_TESTS_VERSION", version)
    newest = bench.engine._letters
    bench.engine._look(HOSTS)
    try:
        one, _ = measure(bench, monkeypatch, PLATEAU="10", LATENCY_US="0")
    finally:
        bench.engine._letters = newest
    if version == "2.11.0":
        assert one.error == "h1: the program did not check what arrived"
    else:
        assert one.error is None
        assert one.measured_gbit_per_s == pytest.approx(80, rel=0.01)


@pytest.mark.parametrize("pair_test", ["all_reduce", "alltoall"])
def test_each_program_measures_what_crosses_the_network(
    programs: Path,
    environment: pytest.MonkeyPatch,
    monkeypatch: pytest.MonkeyPatch,
    pair_test: str,
) -> None:
    del environment
    for name, value in faults(PLATEAU="10", LATENCY_US="0").items():
        monkeypatch.setenv(name, value)
    engine = engine_for(programs, pair_test)
    try:
        one, _ = Bench(engine).measure()
    finally:
        engine.close()
    assert one.error is None
    assert one.measured_gbit_per_s == pytest.approx(80, rel=0.01)


def test_hosts_without_the_program_are_told_apart(
    tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    del environment
    engine = engine_for(tmp_path / "none")
    try:
        assert engine.start(lambda *_: None) == {}
    finally:
        engine.close()
    looked = f"{tmp_path}/none and {tmp_path}/none/build"
    reason = f"sendrecv_perf is not there: looked in {looked}"
    assert engine.unreachable == {"h1": reason, "h2": reason}


def test_a_profile_reaches_the_program_and_the_environment_of_a_job_does_not(
    tmp_path: Path, environment: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    del environment
    folder = install(tmp_path / "real", ["sendrecv_perf"])
    script = tmp_path / "sendrecv_perf"
    script.write_text(
        f'#!/bin/sh\nenv | grep ^NCCL_ >"{tmp_path}/environment.$PMI_RANK"\n'
        f'exec {folder}/sendrecv_perf "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    engine = engine_for(tmp_path, NCCL_IB_TIMEOUT="22", NCCL_NET="Other")
    try:
        one, _ = Bench(engine).measure()
    finally:
        engine.close()
    assert one.error is None
    for rank in "01":
        found = (tmp_path / f"environment.{rank}").read_text().splitlines()
        assert "NCCL_IB_TIMEOUT=22" in found
        assert "NCCL_NET=Socket" in found
        assert "NCCL_SOCKET_IFNAME==lo" in found
        assert "NCCL_DEBUG=WARN" in found
        assert not [line for line in found if line.startswith("NCCL_ALGO")]
