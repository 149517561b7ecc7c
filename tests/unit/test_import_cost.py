import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "pandas", "matplotlib", "distributed", "numpy", "hyperscan", "mpi4py", "dask"}


def modules_of(arguments: list[str]) -> set[str]:
    """The modules that are loaded at the end of a command."""
    code = (
        "import sys\n"
        "from ncdiag.cli.main import run\n"
        f"code = run({arguments!r})\n"
        "print('loaded:', *sys.modules)\n"
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
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["doctor", "--help"],
        ["expect", "hardware"],
        ["parse-log", "--help"],
        ["isolate", "--help"],
        ["burn-in", "--help"],
        ["health", "--help"],
        ["stragglers", "--help"],
        ["env", "lint", "quiet"],
        ["env", "export", "ring-only"],
        ["topo", "show", "--help"],
        ["topo", "show", "examples/topology/gpu01.xml"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not modules_of(arguments) & HEAVY


READERS = {
    f"ncdiag.read.topology.{path.stem}"
    for path in (ROOT / "ncdiag/read/topology").glob("*.py")
    if "\ndef read(" in path.read_text()
}


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_showing_xml_loads_no_other_reader(output_format: str) -> None:
    dump = "examples/topology/gpu01.xml"
    loaded = modules_of(["topo", "show", "--format", output_format, dump])
    assert loaded & READERS == {"ncdiag.read.topology.nccl_xml"}
    assert not loaded & {"yaml", "matplotlib", "ncdiag.model.verdict", "ncdiag.model.log"}
    assert ("rich.console" in loaded) is (output_format == "text")


def test_linting_a_profile_loads_no_yaml() -> None:
    assert "yaml" not in modules_of(["env", "lint", "quiet"])


def test_reading_yaml_loads_it(tmp_path: Path) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text("env: {NCCL_DEBUG: INFO}\n")
    assert "yaml" in modules_of(["env", "lint", str(manifest)])


def test_the_check_would_see_a_heavy_import() -> None:
    code = f"import sys, pandas; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert {"pandas", "numpy"} <= set(done.stdout.split())
