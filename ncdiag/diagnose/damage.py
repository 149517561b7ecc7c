"""Damaged data in words: who is blamed for it, on what evidence, and what to do next.

Who receives sees the damage, and who sent it may as well have done it: a single link names no host.
"""

import numpy as np

from ncdiag.diagnose.cases import Case
from ncdiag.diagnose.investigate import Findings
from ncdiag.diagnose.table import Ints, Mask
from ncdiag.model.nodes import fold
from ncdiag.model.verdict import Direction

_LOOK = "nvidia-smi -q -d ECC, dmesg (memory, PCIe)"
_CHECK = "check cable and NIC firmware, and that NCCL_PROTO forces no LL128"
_WHERE = {
    Direction.SEND: "what it sends arrives wrong at",
    Direction.RECEIVE: "what it receives arrives wrong from",
    Direction.BOTH: "data arrived wrong between it and",
}


def damaged_share(found: Findings, share: np.ndarray) -> np.ndarray:
    """Return ``share`` with nothing where data arrived wrong."""
    return np.where(found.judged.damaged, 0.0, share)


def host_reason(found: Findings, case: Case) -> str:
    """Return the part of a case's reason that tells of damage."""
    table = found.judged.table
    rows = case.links & found.judged.damaged
    ends = np.concatenate((table.fabric.source[rows], table.fabric.target[rows]))
    names = [table.fabric.hosts[end] for end in np.unique(ends).tolist() if end != case.host]
    partners = f"{len(names)} partner{'s' if len(names) > 1 else ''} ({fold(names)})"
    return f"{_WHERE[case.direction]} {partners}, {_times(found, rows)}: {_error(found, rows)}"


def link_reason(found: Findings, row: int, where: str) -> str:
    """Return why one link is blamed that data arrived wrong on."""
    rows = np.arange(found.judged.table.fabric.links) == row
    return (
        f"data arrived wrong{where}, {_times(found, rows)}: {_error(found, rows)}; either end or"
        " the path between them may be the cause"
    )


def host_next(name: str, counters: str, again: str) -> str:
    """Return what to do about a host that damages data; ``again`` is the command that proves it."""
    return f"on {name}: {_LOOK}, {counters}; {_CHECK}; then {again}"


def link_next(found: Findings, row: int) -> str:
    """Return what to do about a link that damages data: with a third host the end can be told."""
    source, target, _ = found.judged.table.keys[row]
    third = _sound_host(found, row)
    nodes = ",".join((source, target, *third))
    why = " tells which end" if third else ""
    return f"use neither end until ncdiag sweep --nodes {nodes}{why}; on both: {_LOOK}; {_CHECK}"


def is_of_the_pair(found: Findings, row: int) -> bool:
    """Whether this link and its opposite were told of as one, so that nobody knows which it is."""
    other = _opposite(found, row)
    return other is not None and _shown(found, other) == _shown(found, row)


def told_once(found: Findings, rows: Ints) -> Ints:
    """Return ``rows`` with one link of each damaged pair that was told of as one."""
    kept = set(rows.tolist())
    for row in rows.tolist():
        other = _opposite(found, row) if found.judged.damaged[row] else None
        if other is not None and other < row and other in kept and is_of_the_pair(found, row):
            kept.discard(row)
    return np.array([row for row in rows.tolist() if row in kept], dtype=np.int64)


def _opposite(found: Findings, row: int) -> int | None:
    fabric = found.judged.table.fabric
    source, target, rail = fabric.source[row], fabric.target[row], fabric.rail[row]
    rows = (fabric.source == target) & (fabric.target == source) & (fabric.rail == rail)
    rows &= found.judged.damaged
    return int(np.argmax(rows)) if rows.any() else None


def _shown(found: Findings, row: int) -> str | None:
    return found.judged.table.shown[row].error


def end_doubt(found: Findings, host: int, rows: Ints) -> str:
    """Return why a host is in doubt: ``rows`` are damaged links of it without a culprit."""
    fabric = found.judged.table.fabric
    ends = np.unique(np.concatenate((fabric.source[rows], fabric.target[rows]))).tolist()
    partners = fold([fabric.hosts[end] for end in ends if end != host])
    return f"data arrived wrong between it and {partners}, and either may be the cause"


def _sound_host(found: Findings, row: int) -> list[str]:
    """Return a host other than the two, one without damage that was reached."""
    fabric = found.judged.table.fabric
    taken = found.judged.damaged | ~found.usable
    taken[row] = True
    bad = np.union1d(fabric.source[taken], fabric.target[taken])
    sound = np.setdiff1d(np.union1d(fabric.source, fabric.target), bad)
    return [fabric.hosts[int(sound[0])]] if len(sound) else []


def _times(found: Findings, rows: Mask) -> str:
    table = found.judged.table
    return f"in {int(table.wrong[rows].sum())} of {int(table.tests[rows].sum())} measurements"


def _error(found: Findings, rows: Mask) -> str:
    """Return what the first of the links was told of."""
    return found.judged.table.shown[int(np.argmax(rows))].error or "no more is known"
