"""The wrapper of one rank: it ends with whoever listens to it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from ncdiag.measure.nccl_tests_rank import MODULE

PATIENCE_S = 60.0


def rank(program: Path) -> "subprocess.Popen[bytes]":
    """Rank 0 of a job that is given far more time than any test has."""
    end = {
        "host": "h1",
        "program": str(program),
        "nic": {"name": "lo", "kind": "ethernet", "interface": "lo"},
        "variables": {},
    }
    job = {
        "ends": [end, end],
        "arguments": [],
        "variables": {},
        "expected_bytes": 0,
        "deadline_s": 3600.0,
    }
    return subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE, "RANK", json.dumps(job)],
        env={**os.environ, "RANK": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def test_with_nobody_left_to_listen_the_program_ends_though_the_parent_lives(
    tmp_path: Path,
) -> None:
    """As where the launcher was killed while Python started: that is never told by a signal."""
    pid = tmp_path / "pid"
    program = tmp_path / "sendrecv_perf"
    program.write_text(f"#!/bin/sh\necho $$ >{pid}\necho up\nexec sleep 3600\n")
    program.chmod(0o755)
    process = rank(program)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ncdiag-rank 0 out: up\n"

    process.stdout.close()

    process.wait(PATIENCE_S)
    end = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid.read_text().strip()}").exists():
        assert time.monotonic() < end, "the program still runs"
        time.sleep(0.01)


def test_with_nobody_to_listen_from_the_start_nothing_is_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = tmp_path / "sendrecv_perf"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    process = rank(program)
    assert process.stdout is not None
    process.stdout.close()
    process.wait(PATIENCE_S)
    assert not started.exists()
