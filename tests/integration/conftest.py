"""The real parts that integration tests stand on."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# netlab stands beside ncdiag and is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from netlab import system
from netlab.testing import Lab, netlab


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
