"""A sweep that learns the leaves of its hosts from the fabric, not from the hosts file."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

LAB = """
rate = "200mbit"
hosts_file = ["nic", "rate"]

[leaves]
leaf1 = ["h[1-2]"]
leaf2 = ["h[3-4]"]
leaf3 = ["h[5-6]"]

[[faults]]
leaf = "leaf2"
uplink = "40mbit"
"""

TOPOLOGY_CONF = """# What the lab is like.
SwitchName=spine Switches=rack[1-3]
switchname=rack1 nodes=h[1-2]
SwitchName=rack2 \\
    Nodes=h[3,4]
SwitchName=rack3 Nodes=h[5-6]
"""


def test_a_slow_uplink_is_blamed_on_the_leaf_that_the_fabric_names(
    lab: Callable[[str], Any], tmp_path: Path
) -> None:
    up = lab(LAB)
    assert "leaf" not in up.hosts_file.read_text()
    fabric = tmp_path / "topology.conf"
    fabric.write_text(TOPOLOGY_CONF)
    directory = tmp_path / "report"

    done = subprocess.run(
        [
            *(sys.executable, "-m", "ncdiag", "sweep", *up.sweep_options),
            *("--fabric", str(fabric), "--output", str(directory)),
        ],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=200,
    )

    assert done.returncode == 1, done.stderr
    report = json.loads((directory / "report.json").read_text())
    assert [(one["kind"], one["name"]) for one in report["culprits"]] == [("switch", "rack2")]
    assert report["isolate"] == []
