"""Sweeps with programs that play nccl-tests: over real links, and with many pairs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nccl_tests_programs import install, install_mpiexec

sys.path.insert(0, str(Path(__file__).parent / "importable"))
from deciding import decided
from processes import children, runs, wait_until

NCDIAG = (sys.executable, "-m", "ncdiag")
BringUp = Callable[[str], Any]
SLOW_SENDER = """
rate = "200mbit"
hosts_file = ["leaf", "nic", "rate"]

[leaves]
leaf1 = ["h[1-4]"]

[[faults]]
host = "h3"
send = "80mbit"
"""
TWO_RAILS = """
rate = "200mbit"
nics = 2
hosts_file = ["leaf", "nic", "rate"]

[leaves]
leaf1 = ["h[1-3]"]
"""
# A slow link would take minutes for what it takes a fast one a second to carry.
SHORT = ("--max-bytes", "16M")
# 66 pairs in rounds of 6: a quarter of a minute of two cores. Thousands are run by
# benchmarks/nccl_tests_pairs.py.
HOSTS = 12
SLOW, WRONG = "n007", "n011"
AT_A_TIME = 6


def sweep(*arguments: str, timeout_s: float = 200) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [*NCDIAG, "sweep", "--engine", "nccl-tests", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def report_of(directory: Path) -> Any:
    return json.loads((directory / "report.json").read_text())


@pytest.fixture
def talking(tmp_path: Path) -> Path:
    """Programs that really send one another what they say they did."""
    if not Path(sys.prefix, "bin", "mpiexec.hydra").exists():
        pytest.skip("mpiexec.hydra is missing: pip install mpich")
    return install(tmp_path / "nccl-tests", TRAFFIC="peer")


@pytest.mark.root
@pytest.mark.timeout(600)
def test_a_slow_host_is_named_over_real_links(lab: BringUp, talking: Path, tmp_path: Path) -> None:
    options = lab(SLOW_SENDER).sweep_options

    done, out = decided(
        lambda out: sweep(*options, *SHORT, "--nccl-tests-dir", str(talking), "--output", str(out)),
        tmp_path,
    )

    assert done.returncode == 1, done.stderr
    report = report_of(out)
    assert [(one["kind"], one["name"]) for one in report["culprits"]] == [("host", "h3")]
    for link in report["links"]:
        assert link["error"] is None
        slow = "h3" in {link["source"], link["target"]}
        assert link["measured_gbit_per_s"] == pytest.approx(0.0765 if slow else 0.191, rel=0.1)
    assert (out / "hosts.isolate.txt").read_text().split() == ["h3"]


@pytest.mark.root
@pytest.mark.timeout(600)
def test_rails_are_measured_together(lab: BringUp, talking: Path, tmp_path: Path) -> None:
    options = lab(TWO_RAILS).sweep_options
    together = (*SHORT, "--nccl-tests-dir", str(talking), "--rails", "together")

    done, out = decided(lambda out: sweep(*options, *together, "--output", str(out)), tmp_path)

    assert done.returncode == 0, done.stderr
    report = report_of(out)
    assert (report["plan"]["rounds"], report["plan"]["pairs"]) == (3, 6)
    assert Counter(link["rail"] for link in report["links"]) == {0: 6, 1: 6}
    for link in report["links"]:
        assert link["measured_gbit_per_s"] == pytest.approx(0.19, rel=0.1)


class Running:
    """A sweep of many hosts of this machine, that can be killed."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [*NCDIAG, "sweep", "--quiet", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def directions(self) -> list[Any]:
        journal = self.directory / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [line for line in found if line["kind"] == "direction"]

    def launches(self) -> int:
        """The commands that it runs at the moment."""
        return sum("mpiexec" in command for command in map(command_of, direct_children(self)))

    def memory_bytes(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) * 1024


def direct_children(running: Running) -> list[int]:
    found = []
    for task in Path(f"/proc/{running.process.pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options of a sweep of many hosts, one of which is slow, and one damages data."""
    folder = install(
        tmp_path / "nccl-tests",
        TRAFFIC="lo",
        PLATEAU="10",
        LATENCY_US="0",
        SLOW_HOSTS=f"{SLOW}=0.25",
        WRONG_HOSTS=WRONG,
    )
    monkeypatch.setenv("PATH", str(install_mpiexec(tmp_path / "mpi")), prepend=os.pathsep)
    hosts = tmp_path / "hosts.txt"
    lines = [f"n{n:03d} address=127.0.1.{n} nic=lo rate=80gbit\n" for n in range(1, HOSTS + 1)]
    hosts.write_text("".join(lines))
    return [
        *("--nodes", str(hosts), "--engine", "nccl-tests", "--nccl-tests-dir", str(folder)),
        *("--max-bytes", "64K", "--at-a-time", str(AT_A_TIME), "--output", str(tmp_path / "out")),
    ]


@pytest.mark.timeout(900)
def test_many_pairs_survive_the_death_of_their_driver(many: list[str], tmp_path: Path) -> None:
    pairs = HOSTS * (HOSTS - 1) // 2
    out = tmp_path / "out"
    first = Running(out, *many)
    try:
        wait_until(lambda: len(first.directions()) > pairs, patience_s=400)
        assert first.process.poll() is None
        started = children(first.process.pid)
    finally:
        first.process.send_signal(signal.SIGKILL)
        first.process.communicate()
    wait_until(lambda: not any(map(runs, started)))
    kept = [key(line) for line in first.directions()]
    assert len(kept) == len(set(kept))

    second = Running(out, "--resume", str(out), "--at-a-time", str(AT_A_TIME), "--budget", "1h")
    most, memory = 0, []
    while second.process.poll() is None and not report_is_there(out):
        most = max(most, second.launches())
        memory.append(second.memory_bytes())
        time.sleep(0.1)  # between looks, not for anything to happen
    _, said = second.process.communicate(timeout=300)
    assert "Traceback" not in said, said
    assert second.process.returncode == 1, said

    assert 1 < most <= AT_A_TIME
    assert max(memory) < min(memory[len(memory) // 4 :]) + (64 << 20)
    in_rounds = [line for line in second.directions() if line["purpose"] == "round"]
    assert Counter(map(key, in_rounds)) == dict.fromkeys(map(key, in_rounds), 1)
    assert len(in_rounds) == 2 * pairs, "every direction of every pair, once"
    for line in in_rounds:
        ends = {line["source"], line["target"]}
        if WRONG in ends:
            assert line["error"].startswith("wrong data between")
        else:
            rate = 20 if SLOW in ends else 80
            assert line["measured_gbit_per_s"] == pytest.approx(rate, rel=0.02), line
    report = report_of(out)
    # With all processors taken, what is slow is told from what is faulty only now and then; but
    # data that arrives wrong is told always.
    assert all({SLOW, WRONG} & set(one["name"].split("->")) for one in report["culprits"])
    assert WRONG in report["isolate"]
    assert set(report["isolate"]) <= {SLOW, WRONG}
    assert not {SLOW, WRONG} & set(report["good"])


def report_is_there(out: Path) -> bool:
    """Whether it only writes its report, for which it loads what takes memory of its own."""
    return (out / "report.json").exists()


def key(line: Any) -> tuple[str, str]:
    return line["source"], line["target"]
