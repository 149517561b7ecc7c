"""Ranks that Hydra kills after another one crashed."""

from pathlib import Path
from typing import Any

import pytest

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.finding import Postmortem

EDGE = "=" * 83


def block(rank: int, how: str) -> str:
    return (
        f"{EDGE}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
        f"=   RANK {rank} PID {4000 + rank} RUNNING AT n{rank}\n=   {how}\n{EDGE}\n\n"
    )


def told(folder: Path, *parts: str) -> Postmortem:
    (folder / "job.log").write_text("".join(parts))
    return diagnose(read_logs([str(folder / "job.log")], jobs=1))


CRASH = block(6, "KILLED BY SIGNAL: 11 (Segmentation fault)")


@pytest.mark.parametrize(
    "how", ["KILLED BY SIGNAL: 9 (Killed)", "EXIT CODE: 9", "KILLED BY SIGNAL: 15 (Terminated)"]
)
def test_what_is_killed_after_a_crash_is_stopped_by_the_launcher(
    tmp_path: Path, names: Any, how: str
) -> None:
    answer = told(tmp_path, CRASH, *(block(rank, how) for rank in range(4)))
    assert names.roots(answer) == ["process_crash"]
    stopped = names.of(answer, "terminated_by_launcher")
    assert (stopped.role, stopped.ranks, stopped.count) == ("consequence", (0, 1, 2, 3), 4)


@pytest.mark.parametrize("later", [CRASH, block(5, "KILLED BY SIGNAL: 9 (Killed)"), ""])
def test_a_kill_in_the_first_block_stays_a_death(tmp_path: Path, names: Any, later: str) -> None:
    answer = told(tmp_path, block(0, "KILLED BY SIGNAL: 9 (Killed)"), later)
    assert "process_died" in names.roots(answer)
    assert "terminated_by_launcher" not in names.classes(answer)


def test_a_kill_far_below_a_crash_is_of_another_run(tmp_path: Path, names: Any) -> None:
    steps = "".join(f"step {number}\n" for number in range(60))
    answer = told(tmp_path, CRASH, steps, block(0, "KILLED BY SIGNAL: 9 (Killed)"))
    assert names.roots(answer) == ["process_crash", "process_died"]
