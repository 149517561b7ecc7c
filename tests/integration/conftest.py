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

from netlab import system
from netlab.testing import Lab, netlab

CHROMIUM = Path("/usr/bin/chromium")


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
