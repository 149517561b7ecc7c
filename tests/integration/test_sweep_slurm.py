"""Sweeps through Slurm: slurmctld, munge, and a slurmd inside each of four hosts of a lab."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "importable"))

from deciding import decided
from slurm_lab import SlurmLab, wait_for

from ncdiag.cluster.launchers import LauncherOptions
from ncdiag.cluster.mpi import MpiProgram
from ncdiag.cluster.mpi.slurm import SlurmStarter
from ncdiag.model.host import Host

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]

NCDIAG = (sys.executable, "-m", "ncdiag")
SWEEP = (*NCDIAG, "sweep", "--launcher", "slurm")
SALLOC = ("salloc", "--no-kill", "--nodes=4", "--quiet")
HOSTS = ("h1", "h2", "h3", "h4")


@pytest.fixture
def cluster(slurm_lab: SlurmLab) -> SlurmLab:
    """The cluster as it was brought up: healed, every node idle and no job on it."""
    for job in slurm_lab.jobs():
        slurm_lab.run("scancel", job)
    slurm_lab.lab.heal()
    slurm_lab.wait_until_idle()
    return slurm_lab


def is_quiet(cluster: SlurmLab) -> bool:
    """Whether nothing but slurmd and sshd runs on any host."""
    return all(left_on(cluster, host) == [] for host in HOSTS)


def left_on(cluster: SlurmLab, host: str) -> list[str]:
    found = []
    for pid in cluster.lab.processes(host):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if any(word.startswith("ncdiag.") for word in words) or "slurmstepd" in words[0]:
            found.append(" ".join(words))
    return found


def check_nothing_is_left(cluster: SlurmLab) -> None:
    wait_for(lambda: is_quiet(cluster), "the last process on the hosts to end", 40)
    wait_for(lambda: cluster.jobs() == [], "the last job to end", 40)


def report_of(directory: Path) -> Any:
    return json.loads((directory / "report.json").read_text())


def directions(directory: Path) -> list[Any]:
    journal = directory / "journal.jsonl"
    if not journal.exists():
        return []
    lines = journal.read_bytes().splitlines(keepends=True)
    found = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [line for line in found if line["kind"] == "direction"]


@contextmanager
def sweeping(cluster: SlurmLab, directory: Path, *argv: str) -> Iterator["subprocess.Popen[str]"]:
    """A sweep that runs while the test breaks things, four directions of it measured."""
    run = subprocess.Popen(
        [*argv, "--output", str(directory), "--measure-time", "1s"],
        env=cluster.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(
            lambda: len(directions(directory)) >= 4 or run.poll() is not None,
            "the first measured directions",
        )
        assert run.poll() is None, run.communicate()[0]
        yield run
    finally:
        run.kill()
        run.communicate()


def end_of(run: "subprocess.Popen[str]") -> str:
    said, _ = run.communicate(timeout=120)
    assert "Traceback" not in said, said
    return said


@pytest.mark.alone
def test_a_sweep_takes_its_hosts_from_the_allocation_and_names_the_slow_one(
    cluster: SlurmLab, tmp_path: Path
) -> None:
    cluster.lab.slow("h3", "--send", "40mbit")

    done, directory = decided(
        lambda out: cluster.run(*SALLOC, *SWEEP, "--output", str(out), timeout_s=120), tmp_path
    )

    report = report_of(directory)
    culprits = [(one["kind"], one["name"], one["direction"]) for one in report["culprits"]]
    assert (done.returncode, culprits) == (1, [("host", "h3", "send")]), done.stdout
    assert (directory / "hosts.isolate.txt").read_text() == "h3\n"
    assert (directory / "hosts.good.txt").read_text() == "h1\nh2\nh4\n"
    assert report["plan"]["launcher"] == "slurm"
    assert "--no-kill" not in done.stderr, "this allocation was made with it"
    check_nothing_is_left(cluster)


@pytest.mark.alone
def test_outside_an_allocation_one_is_asked_for_without_the_nodes_that_are_down(
    cluster: SlurmLab, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("h[1-4] rate=200mbit\n")
    cluster.lab.slow("h1", "--send", "40mbit")
    drain = ("scontrol", "update", "nodename=h4", "state=drain", "reason=its fan is loud")
    cluster.run(*drain)
    try:
        done, directory = decided(
            lambda out: cluster.run(
                *(*SWEEP, "--nodes", str(hosts), "--partition", "gpu", "--time", "5"),
                *("--output", str(out)),
                timeout_s=120,
            ),
            tmp_path,
        )
    finally:
        cluster.run("scontrol", "update", "nodename=h4", "state=resume")

    report = report_of(directory)
    h4 = next(host for host in report["hosts"] if host["name"] == "h4")
    assert [one["name"] for one in report["culprits"]] == ["h1"], done.stdout
    assert (done.returncode, h4["status"]) == (1, "unreachable")
    assert "its fan is loud" in h4["reason"]
    assert "h4 is left out" in done.stderr
    check_nothing_is_left(cluster)


@pytest.mark.alone
def test_a_node_that_dies_in_mid_run_costs_only_itself(cluster: SlurmLab, tmp_path: Path) -> None:
    directory = tmp_path / "report"
    with sweeping(cluster, directory, *SALLOC, *SWEEP) as run:
        cluster.stop_node("h2")
        said = end_of(run)
    cluster.start_node("h2")

    report = report_of(directory)
    failed = [one for one in directions(directory) if one["error"]]
    assert failed, said
    assert all("h2" in (one["source"], one["target"]) for one in failed), said
    assert run.returncode == 3
    assert {"h1", "h3", "h4"} == set(report["good"])
    assert (report["isolate"], report["culprits"]) == ([], [])
    check_nothing_is_left(cluster)


@pytest.mark.alone
def test_a_node_that_has_died_unnoticed_costs_only_itself(
    cluster: SlurmLab, tmp_path: Path
) -> None:
    cluster.stop_node("h2")

    done = cluster.run(*SALLOC, *SWEEP, "--output", str(tmp_path / "report"), timeout_s=120)
    cluster.start_node("h2")

    report = report_of(tmp_path / "report")
    status = {host["name"]: host["status"] for host in report["hosts"]}
    reason = next(host["reason"] for host in report["hosts"] if host["name"] == "h2")
    assert status["h2"] == "unreachable", done.stderr
    assert "slurmd" in reason or "Slurm" in reason
    assert {"h1", "h3", "h4"} == set(report["good"]), done.stdout
    check_nothing_is_left(cluster)


def cancel_the_job(cluster: SlurmLab, _run: "subprocess.Popen[str]") -> None:
    cluster.run("scancel", *cluster.jobs())


def interrupt(_cluster: SlurmLab, run: "subprocess.Popen[str]") -> None:
    run.send_signal(signal.SIGINT)


def kill(_cluster: SlurmLab, run: "subprocess.Popen[str]") -> None:
    run.kill()


@pytest.mark.parametrize("stop", [cancel_the_job, interrupt, kill], ids=lambda stop: stop.__name__)
def test_nothing_is_left_on_any_host(
    cluster: SlurmLab, tmp_path: Path, stop: Callable[..., None]
) -> None:
    with sweeping(cluster, tmp_path / "report", *SWEEP, "--nodes", "h[1-4]") as run:
        assert not is_quiet(cluster)
        stop(cluster, run)
        end_of(run)
        check_nothing_is_left(cluster)

    assert run.returncode == (-signal.SIGKILL if stop is kill else 130)
    assert stop is kill or (tmp_path / "report/report.json").exists()


def test_ranks_of_an_mpi_program_go_host_by_host_in_the_order_given(cluster: SlurmLab) -> None:
    hosts = [Host(name=name, address=name) for name in ("h4", "h1", "h3")]
    says = 'read line; echo "$SLURM_PROCID $SLURMD_NODENAME $LISTED $line"'
    program = MpiProgram(
        argv=("sh", "-c", says),
        ranks_per_host=2,
        variables={"LISTED": "eth0,eth1"},
        stdin=b"job\n",
    )
    launch = SlurmStarter(LauncherOptions(python="python")).launch(hosts, program)

    done = subprocess.run(
        ["salloc", "--nodes=4", "--quiet", *launch.argv],
        input=launch.stdin.decode(),
        env={**cluster.environment, **launch.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert sorted(done.stdout.splitlines()) == [
        "0 h4 eth0,eth1 job",
        *("1 h4 eth0,eth1 ", "2 h1 eth0,eth1 ", "3 h1 eth0,eth1 "),
        *("4 h3 eth0,eth1 ", "5 h3 eth0,eth1 "),
    ], done.stderr


def test_a_rank_that_fails_ends_its_mpi_program(cluster: SlurmLab, tmp_path: Path) -> None:
    hosts = [Host(name=name, address=name) for name in HOSTS]
    # It fails once the others run: a signal to a task that is being launched may be lost.
    rank = """
        cd "$1" && touch "rank$SLURM_PROCID"
        [ "$SLURM_PROCID" = 2 ] || exec sleep 600
        until [ -e rank0 ] && [ -e rank1 ] && [ -e rank3 ]; do sleep 0.1; done
        exit 7
    """
    program = MpiProgram(argv=("sh", "-c", rank, "rank", str(tmp_path)))
    launch = SlurmStarter(LauncherOptions(python="python")).launch(hosts, program)

    done = cluster.run("salloc", "--nodes=4", "--quiet", *launch.argv)

    assert done.returncode != 0
    assert "h3: task 2: Exited with exit code 7" in done.stderr
    check_nothing_is_left(cluster)


def test_a_wait_in_the_queue_can_be_given_up(cluster: SlurmLab, tmp_path: Path) -> None:
    hold = ("--srun-arg=--begin=now+1hour",)
    run = subprocess.Popen(
        [*SWEEP, "--nodes", "h[1-4]", *hold, "--output", str(tmp_path / "report")],
        env=cluster.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(cluster.jobs, "a job that waits")
        run.send_signal(signal.SIGINT)
        said = end_of(run)
    finally:
        run.kill()
    assert run.returncode == 130, said
    assert "expects to start it at" in said
    assert not (tmp_path / "report").exists()
    check_nothing_is_left(cluster)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--nodes", "h[1-4]", "--partition", "nope"), "Invalid partition name"),
        (("--nodes", "h[1-4]", "--srun-arg=--gres=gpu:8"), "Invalid generic resource"),
        (("--nodes", "h[1-9]"), "Invalid node name"),
        (("--nodes", "-"), "--nodes - cannot be read again"),
    ],
)
def test_what_slurm_refuses_is_one_line(
    cluster: SlurmLab, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    done = subprocess.run(
        [*SWEEP, *options, "--output", str(tmp_path / "report")],
        env=cluster.environment,
        input="h[1-4]\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert told in done.stderr


def test_hosts_outside_the_allocation_are_named(cluster: SlurmLab, tmp_path: Path) -> None:
    done = cluster.run(
        *("salloc", "--quiet", "--nodelist=h[1-3]", "--nodes=3"),
        *(*SWEEP, "--nodes", "h[1-4]", "--output", str(tmp_path / "report")),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "h[1-3]): h4; make one that has them" in done.stderr
    assert not (tmp_path / "report").exists()
