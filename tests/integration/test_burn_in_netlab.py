"""Burn-ins over real hosts: who is good, who is out, and why."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from ncdiag.diagnose.burn_in import conclude
from ncdiag.measure.journal import read_journal
from ncdiag.model.burn_in import GateVerdict
from ncdiag.model.host import Host
from ncdiag.model.measurement import Measurement
from ncdiag.report.burn_in import json_report

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

PERFTEST = Path(__file__).resolve().parents[1] / "data/perftest"
NCDIAG = (sys.executable, "-m", "ncdiag")
BringUp = Callable[[str], Any]

TWELVE = """
rate = "300mbit"

[leaves]
leaf1 = ["h[1-6]"]
leaf2 = ["h[7-12]"]

[[faults]]
host = "h4"
send = "60mbit"

[[faults]]
host = "h9"
sshd = false
"""
FOUR = """
rate = "100mbit"

[leaves]
leaf1 = ["h[1-2]"]
leaf2 = ["h[3-4]"]
"""
FALLEN_OFF = (
    "[   12.000000] pci 0000:3b:00.0: enabling device\n"
    "[  912.345678] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
)
SICK, SLOW, DOWN, TWICE = "h6", "h4", "h9", "h2"


def options_of(lab: Any, nodes: Path | None = None) -> list[str]:
    options: list[str] = lab.sweep_options
    if nodes is not None:
        options[options.index("--nodes") + 1] = str(nodes)
    return options


def burn_in(lab: Any, directory: Path, *options: str, nodes: Path | None = None) -> Any:
    argv = [*NCDIAG, "burn-in", *options_of(lab, nodes), "--output", str(directory), *options]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=220
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def report_in(directory: Path) -> Any:
    return json.loads((directory / "report.json").read_text())


def lines(directory: Path, name: str) -> list[str]:
    return (directory / name).read_text().splitlines()


def idle_words(directory: Path) -> str:
    """How idle the CPUs were: beside other load pairs are unclear, and rightly accuse nobody."""
    found = [line for line in read_journal(directory) if isinstance(line, Measurement)]
    idle = [one.idle for one in found if one.idle is not None]
    return f"CPUs were {median(idle):.0%} idle: run this test alone" if idle else "nothing measured"


def no_process_is_left(lab: Any, hosts: int) -> bool:
    """Whether nothing but its sshd runs on any host."""
    return all(len(lab.processes(f"h{number}")) <= 1 for number in range(1, hosts + 1))


def hosts_file_with_faults(lab: Any, folder: Path) -> Path:
    """The lab's hosts file, with a recorded sick host, and a clean host that stands there twice."""
    tree = folder / "sick"
    (tree / "recorded").mkdir(parents=True)
    (tree / "recorded" / "dmesg.txt").write_text(FALLEN_OFF)
    given = lab.hosts_file.read_text().splitlines()
    marked = [f"{line} root={tree}" if line.split()[:1] == [SICK] else line for line in given]
    twice = [line for line in marked if line.split()[:1] == [TWICE]]
    assert len(twice) == 1
    path = folder / "hosts.txt"
    path.write_text("\n".join(marked + twice) + "\n")
    return path


def test_nine_of_twelve_are_good_and_three_are_out_for_their_own_reasons(
    lab: BringUp, tmp_path: Path
) -> None:
    cluster = lab(TWELVE)
    nodes = hosts_file_with_faults(cluster, tmp_path)
    directory = tmp_path / "report"

    done = burn_in(
        cluster,
        directory,
        *("--need", "8", "--spares", "1", "--level", "quick", "--budget", "3m"),
        nodes=nodes,
    )

    report = report_in(directory)
    told = f"{done.stdout}{done.stderr}\n{idle_words(directory)}"
    assert done.returncode == 0, told
    assert report["seconds"] < 180
    names = [f"h{number}" for number in range(1, 13)]
    assert [host["name"] for host in report["hosts"]] == names, "h2 counts once"
    outcomes = {host["name"]: host["outcome"] for host in report["hosts"]}
    good = [name for name in names if name not in {SICK, SLOW, DOWN}]
    assert [name for name in names if outcomes[name] == "good"] == good, told
    assert {outcomes[name] for name in (SICK, SLOW, DOWN)} == {"rejected"}, told
    reasons = {host["name"]: " ".join(host["reasons"]) for host in report["hosts"]}
    assert "79" in reasons[SICK]
    assert reasons[SICK].startswith("health:")
    assert reasons[SLOW].startswith("pairs: sends at ")
    assert "links of this host reach" in reasons[SLOW], "the check of pair bandwidth was made"
    assert "refused" in reasons[DOWN]
    assert len(report["chosen"]) == 8
    assert len(report["spares"]) == 1
    assert sorted(report["isolate"]) == sorted([SLOW, SICK]), "nobody is isolated for being down"
    assert sorted(lines(directory, "hosts.good.txt")) == sorted(good)
    assert sorted(lines(directory, "hosts.isolate.txt")) == sorted([SLOW, SICK])
    assert read_journal(directory), "what was measured of pairs is on disk"
    assert no_process_is_left(cluster, 12)

    ten = concluded_again(directory, need=10)
    assert ten.exit_code == 1, "nine good hosts and nobody undecided are short of ten"


def concluded_again(directory: Path, *, need: int) -> GateVerdict:
    """The verdict of the same measurements for another need."""
    path = directory / "report.json"
    report = json_report.read(path.read_bytes(), str(path))
    hosts = [Host(name=one.name, address=one.name, leaf=one.leaf) for one in report.hosts]
    diagnosis = report.sweep.diagnosis if report.sweep else None
    return conclude(hosts, report.stages, diagnosis, need=need, spares=1).verdict


def with_rdma_ports(folder: Path) -> list[str]:
    """What makes hosts see RDMA ports, and programs of perftest that are stand-ins."""
    (folder / "faults.json").write_text("{}")
    setup = folder / "setup.sh"
    setup.write_text(
        f"export PATH='{PERFTEST}/bin:{os.environ['PATH']}'\n"
        f"export FAKE_RDMA_PYTHON='{sys.executable}'\n"
        f"export FAKE_PERFTEST_FAULTS='{folder}/faults.json'\n"
    )
    return ["--remote-setup", str(setup), "--remote-python", str(PERFTEST / "python_with_rdma")]


def test_a_host_that_dies_and_an_interrupt_end_in_what_is_known(
    lab: BringUp, tmp_path: Path
) -> None:
    cluster = lab(FOUR)
    directory = tmp_path / "report"
    argv = [*NCDIAG, "burn-in", *options_of(cluster), "--output", str(directory)]
    argv += ["--level", "quick", "--budget", "3m", *with_rdma_ports(tmp_path)]
    running = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    try:
        for line in running.stderr:
            if line.startswith("local"):
                cluster.kill("h3")
            elif line.startswith("collective"):
                break
        os.kill(running.pid, signal.SIGINT)
        running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()

    assert running.returncode == 130
    report = report_in(directory)
    assert report["interrupted"]
    assert report["isolate"] == []
    assert {host["outcome"] for host in report["hosts"]} <= {"good", "undecided"}
    [lost] = [host for host in report["hosts"] if host["name"] == "h3"]
    assert lost["outcome"] == "undecided"
    assert "lost" in " ".join(lost["reasons"])
    assert report["stages"][-1]["reason"] == "it was interrupted"
    figures = [one for run in report["stages"] for one in run["figures"]]
    ports = [one for one in figures if one["name"] == "loopback_gbit_per_s"]
    assert {"h1", "h2", "h4"} <= {one["host"] for one in ports}
    assert all(one["value"] > 0 and one["component"] == "mlx5_0" for one in ports)
    assert no_process_is_left(cluster, 4)
