"""Sweeps by one MPI job over real hosts, through Hydra's ssh: figures, faults, and every end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "importable"))
from deciding import decided

pytestmark = pytest.mark.timeout(600)
root = pytest.mark.root
pytest.importorskip("mpi4py", reason="mpi4py is missing: pip install mpi4py")
if not Path(sys.prefix, "bin", "mpiexec.hydra").exists():
    pytest.skip("mpiexec.hydra is missing: pip install mpich", allow_module_level=True)

BringUp = Callable[[str], Any]
RANK = "ncdiag.measure.engines.mpi.rank"
FAULTS = """
rate = "200mbit"

[leaves]
leaf1 = ["h[1-4]"]
leaf2 = ["h[5-8]"]

[[faults]]
host = "h3"
send = "40mbit"

[[faults]]
host = "h5"
to = "h6"
send = "20mbit"

[[faults]]
host = "h8"
down = true
"""
FIVE = """
rate = "200mbit"

[leaves]
leaf1 = ["h[1-5]"]
"""
LOOPBACK = SimpleNamespace(sweep_options=["--nodes", "127.0.0.[2-4]"])
HOSTS = [f"h{number}" for number in range(1, 6)]


def shared_files() -> set[Path]:
    """What MPICH leaves where a rank is killed."""
    return set(Path("/dev/shm").glob("mpich_shm_*"))  # noqa: S108 - it is MPICH's place


# Other programs' ranks may have been killed earlier.
BEFORE = shared_files()


class Sweeping:
    """A sweep that runs while the test breaks things."""

    def __init__(self, lab: Any, directory: Path, *options: str, engine: str = "mpi") -> None:
        self.lab, self.directory = lab, directory
        argv = [sys.executable, "-m", "ncdiag", "sweep", *lab.sweep_options]
        self.process = subprocess.Popen(
            [*argv, "--engine", engine, "--output", str(directory), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_for_directions(self, count: int) -> None:
        wait_for(
            lambda: len(self.directions()) >= count or self.process.poll() is not None,
            f"{count} measured directions",
        )
        assert self.process.poll() is None, self.process.communicate()[0]

    def directions(self) -> list[Any]:
        journal = self.directory / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [line for line in found if line["kind"] == "direction"]

    def end(self) -> str:
        said, _ = self.process.communicate(timeout=150)
        assert "Traceback" not in said, said
        return str(said)

    @property
    def report(self) -> Any:
        return json.loads((self.directory / "report.json").read_text())

    @property
    def hosts(self) -> dict[str, str]:
        return {host["name"]: host["status"] for host in self.report["hosts"]}

    @property
    def reasons(self) -> dict[str, str]:
        return {
            host["name"]: host["reason"]
            for host in self.report["hosts"]
            if host["status"] == "unreachable"
        }

    @property
    def culprits(self) -> list[tuple[str, str, str]]:
        return sorted(
            (one["kind"], one["name"], one["direction"]) for one in self.report["culprits"]
        )

    @property
    def figures(self) -> dict[tuple[str, str], float]:
        return {
            (one["source"], one["target"]): one["measured_gbit_per_s"]
            for one in self.report["links"]
            if one["measured_gbit_per_s"]
        }


def decided_sweep(lab: Any, folder: Path, engine: str = "mpi") -> tuple[Sweeping, str]:
    """A sweep that came to its end, and what it said; made again where the CPU was full."""

    def sweep(directory: Path) -> tuple[Sweeping, str]:
        run = Sweeping(lab, directory, "--quiet", engine=engine)
        return run, run.end()

    ended, _ = decided(sweep, folder)
    return ended


@contextmanager
def sweeping(lab: Any, directory: Path, *options: str) -> Iterator[Sweeping]:
    run = Sweeping(lab, directory, *options)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()
        if run.process.stdout:
            run.process.stdout.close()


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Poll until ``condition`` holds; fails the test after ``seconds``."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"still waiting for {what}"
        Event().wait(0.05)
    return found


def ranks(lab: Any, host: str) -> list[int]:
    """The ranks on a host; all hosts share one table of processes."""
    found = []
    for pid in lab.processes(host):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if RANK.encode() in words:
            found.append(pid)
    return found


def wait_until_quiet(lab: Any, hosts: list[str], seconds: float = 15) -> None:
    wait_for(lambda: not any(ranks(lab, host) for host in hosts), "the last rank to end", seconds)
    assert shared_files() <= BEFORE


@pytest.mark.alone
@root
def test_it_agrees_with_torch_link_by_link_and_names_the_same_culprits(
    lab: BringUp, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    eight = lab(FAULTS)
    mpi, said = decided_sweep(eight, tmp_path / "mpi")
    torch, told = decided_sweep(eight, tmp_path / "torch", engine="torch")

    assert mpi.process.returncode == 1, said
    assert torch.process.returncode == 1, told
    assert mpi.culprits == torch.culprits
    assert mpi.culprits[0] == ("host", "h3", "send")
    assert [name for _, name, _ in mpi.culprits] == ["h3", "h5->h6"]
    assert mpi.hosts["h8"] == torch.hosts["h8"] == "unreachable"
    assert mpi.report["isolate"] == ["h3"]
    assert len(mpi.figures) == 42
    assert mpi.figures == pytest.approx(torch.figures, rel=0.1)
    wait_until_quiet(eight, [f"h{number}" for number in range(1, 9)])


@pytest.mark.alone
@root
def test_of_two_rails_the_slow_one_is_named(lab: BringUp, tmp_path: Path) -> None:
    two = 'rate = "200mbit"\nnics = 2\n[leaves]\nleaf1 = ["h[1-4]"]\n'
    slow = '[[faults]]\nhost = "h2"\nrail = 1\nsend = "40mbit"\nreceive = "40mbit"\n'
    run, said = decided_sweep(lab(two + slow), tmp_path)

    assert run.culprits == [("nic", "h2:eth1", "both")], said
    assert {link["rail"] for link in run.report["links"]} == {0, 1}


def test_this_machines_loopback_addresses_are_measured_over_tcp(tmp_path: Path) -> None:
    run = Sweeping(LOOPBACK, tmp_path / "report", "--quiet")

    said = run.end()

    assert run.reasons == {}, said
    assert run.report["isolate"] == []
    assert {one["error"] for one in run.directions()} == {None}
    assert len(run.figures) == 6


@root
def test_a_killed_rank_ends_in_a_partial_report_that_can_be_resumed(
    lab: BringUp, tmp_path: Path
) -> None:
    directory = tmp_path / "report"
    with sweeping(lab(FIVE), directory) as run:
        run.wait_for_directions(4)
        # Its partner's process may crash in MPI, and be heard of before it.
        for pid in (pid for host in HOSTS if host != "h3" for pid in ranks(run.lab, host)):
            os.kill(pid, signal.SIGSTOP)
        for pid in ranks(run.lab, "h3"):
            os.kill(pid, signal.SIGKILL)
        said = run.end()

        assert run.process.returncode == 3, said
        assert run.report["culprits"] == []
        assert run.report["isolate"] == []
        assert "its process died" in run.reasons["h3"]
        assert "the process of h3 died" in run.reasons["h1"]
        assert all("--resume" in why for why in run.reasons.values())
        assert len(run.figures) >= 4
        wait_until_quiet(run.lab, HOSTS)

        again = Sweeping(run.lab, directory, "--resume", str(directory))
        said = again.end()
        assert again.reasons == {}, said
        assert len(again.figures) == 20


@root
def test_a_stopped_rank_costs_only_its_own_host(lab: BringUp, tmp_path: Path) -> None:
    with sweeping(lab(FIVE), tmp_path / "report") as run:
        run.wait_for_directions(4)
        for pid in ranks(run.lab, "h3"):
            os.kill(pid, signal.SIGSTOP)
        said = run.end()

        assert run.process.returncode == 3, said
        assert run.report["culprits"] == []
        assert "did not answer within" in run.reasons["h3"]
        assert list(run.reasons) == ["h3"]
        failed = [one for one in run.directions() if one["error"]]
        assert all("h3" in (one["source"], one["target"]) for one in failed)
        assert len(run.figures) >= 12
        wait_until_quiet(run.lab, HOSTS)


@root
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_however_the_driver_ends(
    lab: BringUp, tmp_path: Path, number: signal.Signals
) -> None:
    with sweeping(lab(FIVE), tmp_path / "report") as run:
        run.wait_for_directions(4)
        if number is signal.SIGKILL:
            # Behind a dead link only the missing beat tells of the driver's end.
            run.lab.break_("h5")
        run.process.send_signal(number)
        said = run.end()

        assert run.process.returncode == (-9 if number is signal.SIGKILL else 130), said
        wait_until_quiet(run.lab, HOSTS)
