"""``ncdiag topo capture --nodes`` on a local fleet, and ``topo diff`` of the folder it leaves."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from ncdiag.cli import main

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
# All hosts are this machine; one is given another answer, by what its worker was started with.
NVIDIA_SMI = """#!/bin/sh
[ "$*" = "topo -m" ] || { echo "bad option: $*" >&2; exit 64; }
links=NV4
tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q -- '--host 127.0.0.4 ' && links=NV2
printf '\\tGPU0\\tGPU1\\nGPU0\\t X \\t%s\\nGPU1\\t%s\\t X \\n' $links $links
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "hosts.txt").write_text("".join(f"{host}\n" for host in HOSTS))
    return tmp_path


def test_a_fleet_is_captured_and_its_odd_host_named(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["topo", "capture", "--nodes", "hosts.txt", "--launcher", "local"]
    code = main.run([*arguments, "--output", "dumps", "--format", "json"])
    found = json.loads(capfd.readouterr().out)
    assert [host["name"] for host in found["hosts"]] == list(HOSTS)
    assert [host["error"] for host in found["hosts"]] == [None] * len(HOSTS)
    assert code in {0, 1, 3}  # this machine may have links that are slow, or tools that fail
    dumps = {path.name for path in (folder / "dumps").iterdir()}
    assert {f"{host}.nvidia.txt" for host in HOSTS} <= dumps
    assert "capture.json" in dumps
    assert main.run(["topo", "diff", "dumps", "--format", "json"]) == 1
    compared = json.loads(capfd.readouterr().out)
    assert compared["hosts"] == len(HOSTS)
    odd = [one for one in compared["findings"] if one["class"].startswith("nvlink")]
    assert {one["where"] for one in odd} == {"127.0.0.4"}
