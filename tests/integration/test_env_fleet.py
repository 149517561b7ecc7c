"""``env lint --nodes`` over a fleet of loopback hosts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def lint(folder: Path, nodes: str, *more: str) -> tuple[int, dict[str, Any], str]:
    script = folder / "job.sh"
    script.write_text("export NCCL_SOCKET_IFNAME==nothing7\n")
    arguments = ("lint", str(script), "--nodes", nodes, "--format", "json", *more)
    done = subprocess.run(
        (sys.executable, "-m", "ncdiag", "env", *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, json.loads(done.stdout), done.stderr


def test_hosts_without_a_name_are_told_folded(tmp_path: Path) -> None:
    code, document, err = lint(tmp_path, "127.0.0.[2-4]")
    (finding,) = document["findings"]
    assert (code, err) == (1, "")
    assert finding["variable"] == "NCCL_SOCKET_IFNAME"
    assert "nothing7" in finding["message"]
    assert "127.0.0.[2-4]" in finding["message"]
    assert document["unreachable"] == {}


def test_hosts_that_cannot_be_asked_leave_it_undecided(tmp_path: Path) -> None:
    nothing = ("--remote-python", str(tmp_path / "no-python"))
    code, document, err = lint(tmp_path, "127.0.0.[2-3]", *nothing)
    assert code == 3
    assert document["findings"] == []
    assert set(document["unreachable"]) == {"127.0.0.2", "127.0.0.3"}
    assert "127.0.0.[2-3] cannot be asked: " in err
