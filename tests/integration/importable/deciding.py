"""Sweeps that have to come to a verdict, on a machine that others use as well.

A figure that was taken beside a full CPU is inconclusive, and that is right: where nothing else
kept a sweep from its verdict, it is made again once the processors have time.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.health.cpu import read_cpu_times

TRIES = 4
_ENOUGH_IDLE = 0.6
_LOOK_S = 1.0
_PATIENCE_S = 40.0

Ended = TypeVar("Ended")


def decided(sweep: Callable[[Path], Ended], folder: Path) -> tuple[Ended, Path]:
    """Run ``sweep`` into a directory below ``folder`` until the CPU let it measure; see there.

    Returns what it returned at last, and its directory.
    """
    for number in range(TRIES):
        directory = folder / f"report{number}"
        ended = sweep(directory)
        if not only_the_cpu_kept_it(directory):
            break
        wait_for_idle_processors()
    return ended, directory


def only_the_cpu_kept_it(directory: Path) -> bool:
    """Whether something is undecided, and every link without a verdict was beside a full CPU."""
    file = directory / "report.json"
    if not file.exists():
        return False  # it failed, which its test will say
    report: Any = json.loads(file.read_text())
    # What is slow of a host that is named tells nothing new.
    named = set(report["isolate"])
    open_ = [
        link
        for link in report["links"]
        if link["status"] == "inconclusive" and named.isdisjoint((link["source"], link["target"]))
    ]
    undecided = {report["verdict"], *(host["status"] for host in report["hosts"])}
    return (
        len(open_) > 0
        and ("inconclusive" in undecided or any(map(looks_faulty, open_)))
        and all(link["idle"] < Thresholds().busy_below_idle for link in open_)
    )


def looks_faulty(link: Any) -> bool:
    """Whether its figure would make it faulty beside an idle CPU."""
    share = link["fleet_ratio"] if link["efficiency"] is None else link["efficiency"]
    return share is not None and share < Thresholds().faulty_below


def wait_for_idle_processors() -> None:
    """Return once the processors have time, or it is no use to wait longer for that."""
    end = time.monotonic() + _PATIENCE_S
    idle: float | None = None
    while (idle is None or idle < _ENOUGH_IDLE) and time.monotonic() < end:
        before = read_cpu_times()
        time.sleep(_LOOK_S)  # a share of idle time is one of some time
        idle = read_cpu_times().idle_share_since(before)
