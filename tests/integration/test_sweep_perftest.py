"""Sweeps with the engine perftest over a lab whose hosts see RDMA ports; the programs are stand-ins
that move real bytes over the lab's links, and nothing of ncdiag knows of it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.root, pytest.mark.timeout(280)]

BringUp = Callable[[str], Any]
DATA = Path(__file__).resolve().parents[1] / "data/perftest"
LAB = """
rate = "200mbit"

[leaves]
leaf1 = ["h[1-3]"]
"""
BUDGET = "20s"


class Outcome:
    """What a sweep ended with."""

    def __init__(self, done: "subprocess.CompletedProcess[str]", directory: Path) -> None:
        self.code, self.said = done.returncode, done.stdout + done.stderr
        self.report = json.loads((directory / "report.json").read_text())
        assert "Traceback" not in self.said, self.said

    @property
    def links(self) -> dict[tuple[str, str], Any]:
        return {(one["source"], one["target"]): one for one in self.report["links"]}

    @property
    def tried(self) -> dict[tuple[str, str], Any]:
        """The links that there was time for, some of ``h2`` among them."""
        found = {pair: link for pair, link in self.links.items() if link["status"] != "untested"}
        assert any("h2" in pair for pair in found), self.said
        return found


def sweep(lab: Any, folder: Path, *options: str, path: Path = DATA / "bin") -> Outcome:
    """Sweep a lab; what goes wrong where stands in ``faults.json``."""
    setup = folder / "setup.sh"
    variables = {
        "PATH": f"{path}:{os.environ['PATH']}",
        "FAKE_RDMA_PYTHON": sys.executable,
        "FAKE_PERFTEST_FAULTS": str(folder / "faults.json"),
    }
    setup.write_text("".join(f"export {name}='{value}'\n" for name, value in variables.items()))
    python = DATA / "python_with_rdma"
    argv = [sys.executable, "-m", "ncdiag", "sweep", *lab.sweep_options, "--engine", "perftest"]
    argv += ["--remote-setup", str(setup), "--remote-python", str(python)]
    argv += ["--output", str(folder / "report"), *options]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=250
    )
    return Outcome(done, folder / "report")


def is_quiet(lab: Any, hosts: Sequence[str] = ("h1", "h2", "h3")) -> bool:
    """Whether no program of perftest, and nothing of ncdiag, runs on any host."""
    for host in hosts:
        for pid in lab.processes(host):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"ib_" in words or b"ncdiag" in words:
                return False
    return True


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw"])
def test_a_slow_sender_is_slow_in_its_own_direction(
    lab: BringUp, tmp_path: Path, program: str
) -> None:
    hosts = lab(LAB)
    hosts.slow("h2", "--send", "40mbit")
    run = sweep(hosts, tmp_path, "--perftest", program)
    assert run.report["plan"]["engine"] == "perftest"
    assert len(run.links) == 6
    for (source, _), link in run.links.items():
        assert link["error"] is None, run.said
        # A link never carries more than its shape lets through; a busy machine may make it less.
        most = 0.05 if source == "h2" else 0.21
        assert 0 < link["measured_gbit_per_s"] <= most, run.said
        assert link["bytes"] > 0
    assert is_quiet(hosts)


def test_what_fails_is_told_in_the_programs_own_words(lab: BringUp, tmp_path: Path) -> None:
    hosts = lab(LAB)
    faults = {hosts.address("h2"): "completion-error"}
    (tmp_path / "faults.json").write_text(json.dumps(faults))
    # What failed is tried again as long as there is time.
    run = sweep(hosts, tmp_path, "--budget", BUDGET)
    assert run.code == 3, run.said
    assert run.report["isolate"] == []
    for pair, link in run.tried.items():
        told = "h2: ib_write_bw ended with 1: Completion with error" in (link["error"] or "")
        assert told is ("h2" in pair), run.said
    assert is_quiet(hosts)


def test_a_program_that_hangs_is_killed(lab: BringUp, tmp_path: Path) -> None:
    hosts = lab(LAB.replace("[1-3]", "[1-2]"))
    (tmp_path / "faults.json").write_text(json.dumps({hosts.address("h2"): "hang"}))
    run = sweep(hosts, tmp_path, "--budget", "50s")
    assert run.code == 3, run.said
    assert run.report["isolate"] == []
    assert len(run.links) == 2
    for link in run.links.values():
        assert "ib_write_bw was killed after" in (link["error"] or ""), run.said
    assert is_quiet(hosts, ("h1", "h2"))


def test_payload_that_takes_another_way_is_no_figure(lab: BringUp, tmp_path: Path) -> None:
    hosts = lab(LAB)
    (tmp_path / "faults.json").write_text(json.dumps({hosts.address("h2"): "other-way"}))
    run = sweep(hosts, tmp_path, "--budget", BUDGET)
    for pair, link in run.tried.items():
        assert ("did not cross" in (link["error"] or "")) is ("h2" in pair), run.said


def test_without_the_program_every_host_says_where_it_was_looked_for(
    lab: BringUp, tmp_path: Path
) -> None:
    run = sweep(lab(LAB), tmp_path, path=tmp_path)
    assert run.code == 3, run.said
    reasons = {host["reason"] for host in run.report["hosts"]}
    assert len(reasons) == 1
    assert "ib_write_bw is not in PATH" in reasons.pop()
