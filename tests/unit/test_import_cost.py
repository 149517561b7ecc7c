import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "pandas", "matplotlib", "distributed", "numpy", "hyperscan", "mpi4py", "dask"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["doctor", "--help"],
        ["expect", "hardware"],
        ["parse-log", "--help"],
        ["env", "lint", "quiet"],
        ["env", "export", "ring-only"],
        ["topo", "show", "--help"],
        ["topo", "show", "examples/topology/gpu01.xml"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from ncdiag.cli.main import run\n"
        f"code = run({arguments!r})\n"
        f"loaded = sorted({HEAVY!r} & set(sys.modules))\n"
        "print('loaded:', *loaded)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_the_check_would_see_a_heavy_import() -> None:
    code = f"import sys, pandas; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert {"pandas", "numpy"} <= set(done.stdout.split())
