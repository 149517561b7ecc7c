"""Waiting for conditions and looking at processes, for the tests of the fleet."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 60.0


def wait_until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Return once the condition holds; fail where it never does."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether the process is there and more than a zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children(pid: int) -> set[int]:
    """The process's descendants."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found |= {child} | children(child)
    return found
