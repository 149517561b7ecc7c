"""Sweeps while something breaks: what fails is lost, the rest is not, and nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

BringUp = Callable[[str], Any]
LAB = """
rate = "200mbit"

[leaves]
leaf1 = ["h[1-3]"]
leaf2 = ["h[4-5]"]
"""
WORKER, MEASURING = "ncdiag.cluster.fleet.worker", "ncdiag.measure.engines.torch"
HOSTS = [f"h{number}" for number in range(1, 6)]


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Poll until ``condition`` holds; fails the test after ``seconds``."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"still waiting for {what}"
        Event().wait(0.05)
    return found


class Sweeping:
    """A sweep that runs while the test breaks things."""

    def __init__(self, lab: Any, directory: Path, *options: str) -> None:
        self.lab = lab
        self.directory = directory
        argv = [sys.executable, "-m", "ncdiag", "sweep", *lab.sweep_options, *options]
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def directions(self) -> list[Any]:
        journal = self.directory / "journal.jsonl"
        if not journal.exists():
            return []
        lines = journal.read_bytes().splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [line for line in found if line["kind"] == "direction"]

    def wait_for_directions(self, count: int) -> None:
        wait_for(
            lambda: len(self.directions()) >= count or self.process.poll() is not None,
            f"{count} measured directions",
        )
        assert self.process.poll() is None, self.process.communicate()[0]

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
    def failed(self) -> set[frozenset[str]]:
        return {
            frozenset((one["source"], one["target"])) for one in self.directions() if one["error"]
        }


@contextmanager
def sweeping(lab: Any, directory: Path, *options: str) -> Iterator[Sweeping]:
    run = Sweeping(lab, directory, "--output", str(directory), *options)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()
        if run.process.stdout:
            run.process.stdout.close()


def pids(lab: Any, host: str, module: str) -> list[int]:
    """The processes on ``host`` that run ``module``."""
    found = []
    for pid in lab.processes(host):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(module.encode()) for word in words):
            found.append(pid)
    return found


def is_quiet(lab: Any) -> bool:
    """Whether nothing of ncdiag runs on any host."""
    return not any(pids(lab, host, "ncdiag") for host in HOSTS)


def check_only_h2_suffered(run: Sweeping, said: str) -> None:
    assert all("h2" in pair for pair in run.failed), said
    assert "h2" not in run.report["isolate"]
    others = set(HOSTS) - {"h2"}
    assert others <= set(run.report["good"])
    assert run.report["culprits"] == []
    wait_for(lambda: is_quiet(run.lab), "the last process to end")


def test_a_link_that_goes_down_costs_only_its_own_host(lab: BringUp, tmp_path: Path) -> None:
    with sweeping(lab(LAB), tmp_path / "report") as run:
        run.wait_for_directions(4)
        run.lab.break_("h2")
        said = run.end()

        assert run.failed, said
        assert run.process.returncode == 3
        assert run.hosts["h2"] in {"unreachable", "inconclusive"}
        check_only_h2_suffered(run, said)


def test_a_killed_worker_costs_only_its_own_host(lab: BringUp, tmp_path: Path) -> None:
    with sweeping(lab(LAB), tmp_path / "report") as run:
        run.wait_for_directions(4)
        for pid in pids(run.lab, "h2", WORKER):
            os.kill(pid, signal.SIGKILL)
        said = run.end()

        assert run.process.returncode == 3
        assert run.hosts["h2"] == "unreachable"
        assert "h2" not in run.report["good"]
        check_only_h2_suffered(run, said)


def test_measuring_processes_that_die_or_stop_are_replaced(lab: BringUp, tmp_path: Path) -> None:
    with sweeping(lab(LAB), tmp_path / "report") as run:
        for number in (signal.SIGKILL, signal.SIGSTOP):
            failed = len(run.failed)
            run.wait_for_directions(4 + len(run.directions()))
            for pid in pids(run.lab, "h2", MEASURING):
                os.kill(pid, number)
            wait_for(
                lambda before=failed: len(run.failed) > before, f"{number.name} to cost a pair"
            )
        said = run.end()

        again = {
            frozenset((one["source"], one["target"]))
            for one in run.directions()
            if not one["error"]
        }
        assert run.failed <= again, f"what failed was not measured again: {said}"
        assert run.hosts["h2"] == "healthy"
        check_only_h2_suffered(run, said)


def test_a_host_that_was_away_for_a_moment_is_measured_again(lab: BringUp, tmp_path: Path) -> None:
    with sweeping(lab(LAB), tmp_path / "report") as run:
        run.wait_for_directions(4)
        run.lab.break_("h2")
        wait_for(lambda: run.failed, "the first pair to fail")
        run.lab.heal("h2")
        said = run.end()

        check_only_h2_suffered(run, said)


def test_an_interrupt_leaves_a_report_and_no_process(lab: BringUp, tmp_path: Path) -> None:
    with sweeping(lab(LAB), tmp_path / "report") as run:
        run.wait_for_directions(4)
        run.process.send_signal(signal.SIGINT)
        said = run.end()

        assert run.process.returncode == 130, said
        assert run.report["interrupted"] is True
        assert run.report["links"]
        assert run.report["isolate"] == []
        wait_for(lambda: is_quiet(run.lab), "the last process to end")


def test_a_killed_driver_leaves_no_process_and_can_be_resumed(lab: BringUp, tmp_path: Path) -> None:
    directory = tmp_path / "report"
    with sweeping(lab(LAB), directory) as run:
        run.wait_for_directions(4)
        run.lab.break_("h5")
        run.process.kill()
        run.process.wait()
        wait_for(lambda: is_quiet(run.lab), "the last process to end", seconds=15)
        run.lab.heal("h5")

        again = Sweeping(run.lab, directory, "--resume", str(directory))
        said = again.end()

        assert again.process.returncode == 0, said
        counts = Counter(
            (one["source"], one["target"])
            for one in again.directions()
            if one["purpose"] == "round"
        )
        assert set(counts.values()) == {1}
        assert len(counts) == 20
        wait_for(lambda: is_quiet(run.lab), "the last process to end")
