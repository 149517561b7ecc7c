"""Waiting for processes to end, for tests of what starts and kills them."""

import contextlib
import time
from pathlib import Path

PATIENCE_S = 60.0


def runs(pid: int) -> bool:
    """Whether the process is there and more than a zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until_gone(pid: int) -> None:
    """Return once the process has ended; one that was killed may still be on its way."""
    end = time.monotonic() + PATIENCE_S
    while runs(pid):
        assert time.monotonic() < end, "it still runs"
        time.sleep(0.01)
