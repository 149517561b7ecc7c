"""Benchmarks of collectives: real MPI launches of a program that plays nccl-tests, and torch."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nccl_tests_programs import install

sys.path.insert(0, str(Path(__file__).parent / "importable"))
from processes import wait_until
from slurm_lab import SlurmLab

NCDIAG = (sys.executable, "-m", "ncdiag")
BringUp = Callable[[str], Any]
LOOPBACK = ("--nodes", "127.0.0.[2-5]", "--gpus-per-node", "2")
FOUR_HOSTS = """
rate = "500mbit"

[leaves]
leaf1 = ["h[1-4]"]
"""


def bench(
    *arguments: str, collective: str = "all_reduce", timeout_s: float = 200, **options: Any
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [*NCDIAG, "bench", collective, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        **options,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "internal error" not in done.stderr, done.stderr
    return done


def report_of(directory: Path) -> Any:
    return json.loads((directory / "bench.json").read_text())


def running(words: str) -> bool:
    """Whether a process has ``words`` in its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if words in file.read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                return True
    return False


def kinds(report: Any) -> list[str]:
    return [one["kind"] for one in report["findings"]]


Play = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def mpich() -> None:
    """Skips where no mpiexec of MPICH is."""
    if not Path(sys.prefix, "bin", "mpiexec.hydra").exists():
        pytest.skip("mpiexec.hydra is missing: pip install mpich")


@pytest.fixture
def play(mpich: None, tmp_path: Path) -> Play:  # noqa: ARG001 - what it needs
    """Runs a benchmark on four loopback hosts with programs that play what is asked for."""

    def run(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        programs = install(tmp_path / "programs", **settings)
        where = ("--nccl-tests-dir", str(programs), "--output", str(tmp_path / "report"))
        nodes = () if "--nodes" in arguments else LOOPBACK
        return bench(*nodes, *where, "--force", *arguments)

    return run


def test_a_healthy_fleet_is_healthy(play: Play, tmp_path: Path) -> None:
    done = play("--repeat", "2", "--machine", "h100-8x400g", PLATEAU="96", NOISE="0.02")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("HEALTHY: 9")
    report = report_of(tmp_path / "report")
    curve = report["curves"][0]
    assert (curve["hosts"], curve["ranks"]) == ([f"127.0.0.{n}" for n in range(2, 6)], 8)
    assert [point["size_bytes"] for point in curve["points"]] == [2**n for n in range(3, 34)]
    assert curve["points"][0]["repeats"] == 2
    assert 0.9 < curve["efficiency"] < 1.05
    assert "bound by NIC" in curve["expected_from"][0]
    assert report["findings"] == []


def test_a_planted_cliff_and_a_slow_rank_are_found(play: Play, tmp_path: Path) -> None:
    done = play(CLIFF="64M:0.4", SLOW_RANK="5:0.8", NOISE="0.02")
    assert done.returncode == 1, done.stdout + done.stderr
    cliff, slow = report_of(tmp_path / "report")["findings"]
    assert (cliff["kind"], cliff["size_bytes"]) == ("cliff", 64 << 20)
    assert (slow["kind"], slow["rank"], slow["host"]) == ("slow_rank", 5, "127.0.0.4")


@pytest.mark.parametrize("version", ["2.0", "2.13.4", "2.17.3", "2.19.2", "2.19.6"])
def test_every_version_is_run_with_the_options_that_it_knows(
    version: str, play: Play, tmp_path: Path
) -> None:
    done = play("--sizes", "1M:1G:2", VERSION=version, CLIFF="64M:0.4")
    assert done.returncode == 1, done.stdout + done.stderr
    assert kinds(report_of(tmp_path / "report")) == ["cliff"]


def test_wrong_data_is_a_fault_whatever_the_speed(play: Play, tmp_path: Path) -> None:
    done = play("--sizes", "1M:1G:2", WRONG="4M:3")
    assert done.returncode == 1, done.stdout + done.stderr
    assert kinds(report_of(tmp_path / "report"))[0] == "wrong_data"


def test_lines_of_the_library_in_the_table_do_no_harm(play: Play) -> None:
    done = play("--sizes", "1M:1G:2", LOG="1", VERSION="2.13.4")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_number_of_hosts_at_which_bandwidth_breaks_is_found(play: Play, tmp_path: Path) -> None:
    hosts = ",".join(f"127.0.0.{host}" for host in (2, 3, 4, 5) for _ in range(2))
    done = play(
        *("--sizes", "1M:8G:2", "--scaling", "1,2,4", "--machine", "h100-8x400g"),
        *("--faulty-below", "0.1"),
        PLATEAU="96",
        SLOW_HOSTS="127.0.0.5=0.4",
        HOSTS=hosts,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    report = report_of(tmp_path / "report")
    assert [len(curve["hosts"]) for curve in report["curves"]] == [1, 2, 4]
    broken = next(one for one in report["findings"] if one["kind"] == "scaling_break")
    assert "at 4 hosts" in broken["text"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"NO_MPI": "1"}, "built without MPI"),
        ({"NO_LIBRARY": "libcudart.so.12"}, "libcudart.so.12 cannot be loaded"),
        ({"CRASH": "nccl:0"}, "NCCL failed"),
        ({"HANG": "0!"}, "did not end within 6 s"),
    ],
)
def test_a_run_that_could_not_be_decides_nothing(
    settings: dict[str, str], reason: str, play: Play, tmp_path: Path
) -> None:
    done = play("--sizes", "1M:1G:2", "--timeout", "6s", **settings)
    assert done.returncode == 3, done.stdout + done.stderr
    assert reason in done.stdout
    report = report_of(tmp_path / "report")
    assert report["verdict"] == "inconclusive"
    assert kinds(report) == ["incomplete"]


def test_a_program_that_is_not_there_is_told_with_where_it_was_looked_for(
    play: Play, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    done = play("--nccl-tests-dir", str(tmp_path / "empty"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"looked in {tmp_path / 'empty'}" in done.stdout


def test_what_was_measured_before_a_crash_is_kept(play: Play, tmp_path: Path) -> None:
    done = play("--sizes", "1M:1G:2", CRASH="nccl:5")
    assert done.returncode == 3, done.stdout + done.stderr
    assert len(report_of(tmp_path / "report")["curves"][0]["points"]) == 5


def test_hosts_without_gpus_need_to_be_told_how_many_ranks(play: Play) -> None:
    done = play("--nodes", "127.0.0.[2-3]")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "--gpus-per-node" in done.stdout


def test_json_is_all_that_goes_to_standard_output(play: Play) -> None:
    done = play("--sizes", "1M:1G:2", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == "ncdiag/bench/1"


def test_earlier_benchmarks_of_the_same_hosts_are_a_yardstick(play: Play, tmp_path: Path) -> None:
    kept = ("--sizes", "1M:1G:2", "--record", "--store", str(tmp_path / "store.sqlite"))
    for _ in range(3):
        assert play(*kept, NOISE="0.01").returncode == 0
    done = play(*kept, PLATEAU="30")
    assert done.returncode == 1, done.stdout + done.stderr
    report = report_of(tmp_path / "report")
    assert kinds(report) == ["below_history"]
    assert report["curves"][0]["history_runs"] == 3


@pytest.mark.usefixtures("mpich")
def test_ctrl_c_leaves_nothing_and_reports_what_is_known(tmp_path: Path) -> None:
    programs = install(tmp_path / "programs", HANG="6!")
    out = tmp_path / "report"
    arguments = ("--nccl-tests-dir", str(programs), "--sizes", "1M:1G:2", "--output", str(out))
    process = subprocess.Popen(
        [*NCDIAG, "bench", "all_reduce", *LOOPBACK, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_until(lambda: running(f"{programs}/all_reduce_perf -b"))
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, output
    assert report_of(out)["interrupted"] is True
    wait_until(lambda: not running(f"{programs}/all_reduce_perf"))


def test_torch_measures_where_no_program_is(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")
    out = tmp_path / "report"
    done = bench(
        *("--engine", "torch", "--nodes", "127.0.0.[2-4]", "--sizes", "64K:16M:4"),
        *("--iterations", "5", "--output", str(out)),
    )
    assert done.returncode in {0, 1, 3}, done.stderr  # what it reaches is for the machine to say
    report = report_of(out)
    points = report["curves"][0]["points"]
    assert [point["size_bytes"] for point in points] == [2**n for n in (16, 18, 20, 22, 24)]
    assert all(point["busbw_gb_per_s"] > 0 and point["wrong"] == 0 for point in points)
    assert "torch" in report["versions"]
    assert not {"wrong_data", "incomplete", "slow_rank"} & set(kinds(report))


@pytest.mark.root
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("mpich")
def test_hosts_that_cannot_be_reached_are_left_out_and_told(lab: BringUp, tmp_path: Path) -> None:
    up = lab(FOUR_HOSTS)
    up.break_("h4")
    programs = install(tmp_path / "programs")
    done = bench(
        *up.sweep_options,
        *("--nccl-tests-dir", str(programs), "--gpus-per-node", "2", "--sizes", "1M:1G:2"),
        *("--output", str(tmp_path / "report")),
    )
    assert done.returncode == 3, done.stdout + done.stderr
    report = report_of(tmp_path / "report")
    assert report["curves"][0]["hosts"] == ["h1", "h2", "h3"]
    assert report["curves"][0]["plateau_busbw_gb_per_s"] > 0
    assert list(report["unreachable"]) == ["h4"]
    assert "unreachable" in done.stdout


@pytest.mark.root
@pytest.mark.timeout(240)
def test_srun_starts_the_ranks_in_an_allocation(slurm_lab: SlurmLab, tmp_path: Path) -> None:
    programs = install(tmp_path / "programs", CLIFF="64M:0.4")
    done = slurm_lab.run(
        *("salloc", "--no-kill", "--nodes=4", "--quiet", *NCDIAG, "bench", "all_reduce"),
        "--srun-arg=--mpi=pmi2",
        *("--nccl-tests-dir", str(programs), "--gpus-per-node", "2", "--sizes", "1M:1G:2"),
        *("--output", str(tmp_path / "report")),
        timeout_s=120,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    report = report_of(tmp_path / "report")
    assert report["launcher"] == "slurm"
    assert report["curves"][0]["hosts"] == ["h1", "h2", "h3", "h4"]
    assert report["curves"][0]["ranks"] == 8
    assert kinds(report) == ["cliff"]


@pytest.mark.root
@pytest.mark.timeout(240)
def test_slurm_is_asked_for_an_allocation_where_none_is(
    slurm_lab: SlurmLab, tmp_path: Path
) -> None:
    programs = install(tmp_path / "programs")
    done = slurm_lab.run(
        *(*NCDIAG, "bench", "all_reduce", "--launcher", "slurm", "--nodes", "h[1-4]"),
        "--srun-arg=--mpi=pmi2",
        *("--nccl-tests-dir", str(programs), "--gpus-per-node", "1", "--sizes", "1M:1G:2"),
        *("--output", str(tmp_path / "report")),
        timeout_s=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert report_of(tmp_path / "report")["curves"][0]["ranks"] == 4
    assert slurm_lab.jobs() == []
