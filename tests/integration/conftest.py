"""The real parts that integration tests stand on."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# netlab stands beside ncdiag and is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

sys.path.insert(0, str(Path(__file__).parent / "importable"))

from slurm_lab import SlurmLab, missing

from netlab import system
from netlab.testing import Lab, netlab

CHROMIUM = Path("/usr/bin/chromium")
# All tests of these judge what they measure, so that nothing else may run at the same time; others
# carry the marker themselves.
ALONE = frozenset(
    {
        "test_burn_in_command.py",
        "test_burn_in_netlab.py",
        "test_flight_recorder.py",
        "test_gpu.py",
        "test_sweep_fabric.py",
        "test_sweep_failures.py",
        "test_sweep_netlab.py",
        # It waits for traffic on the loopback interface, which others use as well.
        "test_torch_child.py",
    }
)
# Begun first, so that of files run side by side none is left over at the end.
LONG = ("test_sweep_perftest.py", "test_sweep_nccl_tests.py", "test_bench.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole files that may not run beside others, and begin with long ones."""
    for item in items:
        if item.path.name in ALONE:
            item.add_marker(pytest.mark.alone)
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session")
def lab_names() -> Iterator[str]:
    """Names for labs of this session; skips, saying why, where no lab can be run."""
    system.add_sbin_to_path()
    if reason := system.unavailable():
        pytest.skip(f"netlab: {reason}")
    return (f"t{os.getpid()}x{number}" for number in itertools.count(1))


@pytest.fixture
def lab(lab_names: Iterator[str], tmp_path: Path) -> Iterator[Callable[[str], Lab]]:
    """Bring labs up from TOML (without ``name``), and tear each down again whatever happens."""
    labs: list[str] = []

    def bring_up(toml: str) -> Lab:
        labs.append(next(lab_names))
        file = tmp_path / f"{labs[-1]}.toml"
        file.write_text(toml)
        netlab("up", str(file))
        return Lab(labs[-1])

    yield bring_up
    if labs:
        netlab("down", *labs)


@pytest.fixture(scope="module")
def slurm_lab(
    lab_names: Iterator[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SlurmLab]:
    """Slurm over four hosts h1 to h4 of 200 Mbit/s, one cluster for all tests of a module."""
    if reason := missing():
        pytest.skip(f"Slurm: {reason}")
    name = next(lab_names)
    file = tmp_path_factory.mktemp("slurm") / f"{name}.toml"
    file.write_text('rate = "200mbit"\n[leaves]\nleaf1 = ["h[1-4]"]\n')
    netlab("up", str(file))
    try:
        with SlurmLab(Lab(name), ("h1", "h2", "h3", "h4")) as cluster:
            yield cluster
    finally:
        netlab("down", name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; skips, saying what is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing (package chromium)")
    quiet = ("background-networking", "component-update", "sync")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", *(f"--disable-{what}" for what in quiet)],
        )
        yield browser
        browser.close()
