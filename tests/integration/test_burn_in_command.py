"""A burn-in as an operator runs it, over hosts that are addresses of this machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ncdiag.cli import main

# The second entry of 127.0.0.3 is the same host. Any machine carries 100 Mbit/s to itself.
HOSTS = """
127.0.0.[2-3] leaf=a rate=100mbit
127.0.0.4 leaf=b rate=100mbit
127.0.0.3 leaf=a rate=100mbit
"""
STAGES = ["reach", "health", "local", "pairs", "collective", "load", "health"]


@pytest.mark.timeout(120)
def test_healthy_hosts_go_through_all_stages_and_nobody_is_isolated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, output = tmp_path / "hosts.txt", tmp_path / "report"
    nodes.write_text(HOSTS)
    options = [
        *("--nodes", str(nodes), "--launcher", "local", "--need", "2", "--spares", "1"),
        *("--level", "quick", "--budget", "40s", "--output", str(output), "--format", "json"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "ncdiag", "burn-in", *options],
        capture_output=True,
        check=False,
        timeout=110,
    )
    report = json.loads(done.stdout)
    assert done.stdout == (output / "report.json").read_bytes()
    assert [run["stage"] for run in report["stages"]] == STAGES
    assert report["verdict"] == "met", report["hosts"]
    assert done.returncode == 0
    assert (report["chosen"], report["spares"]) == (["127.0.0.2", "127.0.0.3"], ["127.0.0.4"])
    assert report["isolate"] == []
    for run in report["stages"]:
        assert (run["state"], len(run["passed"])) == ("done", 3), run
    assert [host["name"] for host in report["hosts"]] == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    figures = {(one["host"], one["name"]) for run in report["stages"] for one in run["figures"]}
    for host in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
        wanted = ("gemm_tflop_per_s", "send_gbit_per_s", "load_compute_s")
        assert {(host, name) for name in wanted} <= figures
    good = (output / "hosts.good.txt").read_text().split()
    assert good == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    # What was written is enough to write it again, without the hosts.
    (output / "report.html").unlink()
    assert main.run(["report", str(output)]) == 0
    assert capsys.readouterr().out.startswith("MET: 2 of 2 good hosts and 1 spare\n")
    assert "2 of 2 good hosts and 1 spare" in (output / "report.html").read_text()
    assert json.loads((output / "report.json").read_bytes()) == report
