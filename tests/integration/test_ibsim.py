"""The real ibnetdiscover and iblinkinfo on a simulated InfiniBand fabric, asked by ncdiag."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NCDIAG = (sys.executable, "-m", "ncdiag")
TOOLS = ("ibnetdiscover", "iblinkinfo")
SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

# Two leaves with two hosts each, two cables from each leaf to the spine. ibsim's width codes: 1 is
# one lane, 2 is four.
NET = """
Switch 8 "leaf1"
[1] "gpu1 mlx5_0"[1]
[2] "gpu2 mlx5_0"[1]
[7] "spine1"[1]
[8] "spine1"[2]

Switch 8 "leaf2"
[1] "gpu3 mlx5_0"[1]
[2] "gpu4 mlx5_0"[1]{width}
[7] "spine1"[3]
[8] "spine1"[4]

Switch 8 "spine1"
[1] "leaf1"[7]
[2] "leaf1"[8]
[3] "leaf2"[7]
[4] "leaf2"[8]

Hca 1 "gpu1 mlx5_0"
[1] "leaf1"[1]

Hca 1 "gpu2 mlx5_0"
[1] "leaf1"[2]

Hca 1 "gpu3 mlx5_0"
[1] "leaf2"[1]

Hca 1 "gpu4 mlx5_0"
[1] "leaf2"[2]{width}
"""


@dataclass(frozen=True)
class Fabric:
    """A simulated fabric that answers on a socket of its own."""

    environment: dict[str, str]

    def ncdiag(self, *arguments: str, code: int) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*NCDIAG, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def ask(self, command: str, tool: str, *, code: int) -> Any:
        done = self.ncdiag("topo", command, "--live", tool, "--format", "json", code=code)
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def preload() -> str:
    """The library that takes the place of the device; skips, saying what is missing."""
    for program, package in (
        ("ibsim", "ibsim-utils"),
        *((one, "infiniband-diags") for one in TOOLS),
    ):
        if shutil.which(program, path=SBIN) is None:
            pytest.skip(f"{program} is missing (package {package})")
    library = next(Path("/usr/lib").glob("**/umad2sim/libumad2sim.so"), None)
    if library is None:
        pytest.skip("libumad2sim.so is missing (package libumad2sim0)")
    return str(library)


@pytest.fixture
def simulate(preload: str, tmp_path: Path) -> Iterator[Callable[[str], Fabric]]:
    """Start simulators; every one of them ends with the test."""
    running: list[subprocess.Popen[bytes]] = []
    numbers = itertools.count()

    def start(net: str) -> Fabric:
        number = next(numbers)
        file = tmp_path / f"net{number}.txt"
        file.write_text(net)
        socket = {"IBSIM_SOCKNAME": f"ncdiag-test-{os.getpid()}-{number}"}
        simulator = subprocess.Popen(
            # It would spin for ever at the end of its input, should the test be killed.
            ["setpriv", "--pdeathsig", "KILL", "ibsim", "-s", str(file)],
            env=os.environ | socket,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        running.append(simulator)
        wait_for(simulator, b"Network simulator ready")
        attached = {"LD_PRELOAD": preload, "SIM_HOST": "gpu1 mlx5_0"}
        return Fabric(os.environ | socket | attached)

    yield start
    for simulator in running:
        simulator.kill()
        simulator.communicate(timeout=10)


def wait_for(simulator: subprocess.Popen[bytes], words: bytes) -> None:
    assert simulator.stdout is not None
    said = b""
    while words not in said:
        line = simulator.stdout.readline()
        assert line, f"ibsim ended: {said.decode()}"
        said += line


@pytest.mark.parametrize("tool", TOOLS)
def test_a_healthy_fabric_is_shown_and_nothing_is_wrong_with_it(
    simulate: Callable[[str], Fabric], tool: str
) -> None:
    fabric = simulate(NET.format(width=""))

    shown = fabric.ask("show", tool, code=0)
    checked = fabric.ask("check", tool, code=0)

    assert shown["kind"] == "ib-fabric"
    assert (shown["switches"], shown["cas"], shown["links"]) == (3, 4, 8)
    assert sum(shown["links_by_rate"].values()) == 8
    assert [one for one in checked["findings"] if one["severity"] != "info"] == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_link_that_lost_lanes_is_found(simulate: Callable[[str], Fabric], tool: str) -> None:
    fabric = simulate(NET.format(width=" w=1"))

    checked = fabric.ask("check", tool, code=1)

    bad = [one for one in checked["findings"] if one["severity"] != "info"]
    assert [(one["class"], one["where"]) for one in bad] == [
        ("ib_link_width_mismatch", "gpu4 mlx5_0")
    ]


def test_what_the_tools_print_gives_a_sweep_its_leaves(
    simulate: Callable[[str], Fabric], tmp_path: Path
) -> None:
    fabric = simulate(NET.format(width=""))
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("gpu[1-4]\n")

    for tool, options in (("ibnetdiscover", ()), ("ibnetdiscover", ("-p",)), ("iblinkinfo", ())):
        said = subprocess.run(
            [str(shutil.which(tool, path=SBIN)), *options],
            env=fabric.environment,
            capture_output=True,
            check=True,
            timeout=60,
        )
        dump = tmp_path / "fabric.txt"
        dump.write_bytes(said.stdout)
        plan = fabric.ncdiag(
            *("sweep", "--nodes", str(hosts), "--fabric", str(dump), "--dry-run"),
            *("--launcher", "ssh"),
            code=0,
        )
        assert "leaves    2: leaf1 (2), leaf2 (2)" in plan.stdout
