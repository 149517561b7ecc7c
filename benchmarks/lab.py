"""Brings up a netlab for a benchmark, runs sweeps in it, and takes it down again."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NETLAB = ROOT / "bin" / "netlab"
NCDIAG = [sys.executable, "-m", "ncdiag"]


@contextmanager
def lab(text: str) -> Iterator[Path]:
    """The directory of a lab brought up from ``text``, which is its TOML."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lab.toml")
        file.write_text(text)
        name = text.split('name = "', 1)[1].split('"', 1)[0]
        subprocess.run([NETLAB, "up", file], check=True, stdout=subprocess.DEVNULL)
        try:
            yield Path("/run/netlab", name)
        finally:
            subprocess.run([NETLAB, "down", name], check=True)


def sweep(directory: Path, *options: str) -> tuple[int, dict]:
    """Run a sweep of the lab in ``directory``; its exit code and its ``report.json``."""
    with tempfile.TemporaryDirectory() as output:
        command = [
            *NCDIAG,
            "sweep",
            *("--nodes", str(directory / "hosts.txt")),
            *("--ssh-option", f"-F {directory / 'ssh_config'}"),
            *("--output", output, "--quiet", *options),
        ]
        code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
        return code, json.loads(Path(output, "report.json").read_text())
