"""Lines that an operator should read beside the verdict."""

import numpy as np

from ncdiag.diagnose.cases import Charges
from ncdiag.diagnose.investigate import Findings, pair_count
from ncdiag.diagnose.thresholds import MAX_LISTED_LINK_CULPRITS, Thresholds
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.units import format_rate, format_share

# Damaged pairs without a host to blame, from which on something is behind all of them.
_SPREAD = 3
# Links that a line names.
_MOST_NAMED = 5


def notes(
    evidence: SweepEvidence, found: Findings, charges: Charges, thresholds: Thresholds
) -> tuple[str, ...]:
    """Say which yardstick was used, what could not be decided, and what was left out."""
    judged, typical = found.judged, found.judged.sticks.typical
    unproven = found.waiting & ~charges.accused & ~found.excused
    degraded = judged.degraded & judged.confirmed & ~charges.accused
    single = int(charges.single.sum())
    damaged = pair_count(judged.table.fabric, np.flatnonzero(charges.single & judged.damaged))
    told = (
        (_is_blind(found).any(), _yardstick(found)),
        (
            typical < thresholds.reached and not found.fleet.any(),
            f"the fleet as a whole reaches {format_share(typical)} of its expectation",
        ),
        (
            damaged >= _SPREAD,
            (
                f"data arrived wrong between {damaged} pairs that no one host explains: look for"
                " what they share, such as driver, NIC firmware, NCCL_PROTO or a switch"
            ),
        ),
        (
            unproven.any(),
            (
                f"slow with their round, not measured again in quiet: {unproven.sum()} links;"
                " nobody is accused for them"
            ),
        ),
        (charges.unclear.any(), _unclear(found, charges)),
        (
            degraded.any(),
            f"degraded with nothing to blame: {degraded.sum()} links; no culprits",
        ),
        (
            found.excused.any(),
            (
                f"slow with their round only: {found.excused.sum()} links, judged by a sample of"
                " their group that was fast alone"
            ),
        ),
        (
            single > MAX_LISTED_LINK_CULPRITS,
            (
                f"slow without a component to blame: {single} links, of which the slowest"
                f" {MAX_LISTED_LINK_CULPRITS} are named"
            ),
        ),
        (
            single > 0 and len(evidence.hosts) - len(evidence.unreachable) == 2,
            (
                "with two hosts a slow link cannot be told from a slow host, so nobody is isolated:"
                " add a third host"
            ),
        ),
    )
    return tuple(line for wanted, line in told if wanted)


def _unclear(found: Findings, charges: Charges) -> str:
    rows = np.flatnonzero(charges.unclear)
    if not len(rows):
        return ""
    slowest = rows[np.argsort(found.judged.sticks.share[rows], kind="stable")]
    fabric = found.judged.table.fabric
    names = ", ".join(fabric.link_name(row) for row in slowest[:_MOST_NAMED].tolist())
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return (
        f"slow also in quiet: {names}{more}; too little else of these hosts could be measured to"
        " tell whether a host or a path is slow, so nobody is accused for it"
    )


def _is_blind(found: Findings) -> np.ndarray:
    """Links with a figure and without an expectation."""
    return np.isnan(found.judged.table.expected) & ~np.isnan(found.judged.table.judged)


def _yardstick(found: Findings) -> str:
    blind, known = _is_blind(found), ~np.isnan(found.judged.table.judged)
    if not blind.any():
        return ""
    rate = format_rate(float(np.median(found.judged.sticks.fleet_gbit_per_s[blind])))
    whom = "no link has" if blind.sum() == known.sum() else f"{blind.sum()} links have no"
    whom += " an expectation" if whom == "no link has" else " expectation"
    return f"{whom}: judged against the fleet's median of {rate}"
