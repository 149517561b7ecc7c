"""The two yardsticks of a link: what theory expects, and what the fleet typically reaches."""

from dataclasses import dataclass

import numpy as np

from ncdiag.diagnose.table import Fabric, Floats, LinkTable, Mask

# Scales the median absolute deviation to the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826
_UPPER_QUARTILE = 0.75


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """Each link against both yardsticks; ``nan`` where a link has no figure.

    ``efficiency`` is judged over expected (``nan`` without expectation), ``ratio`` judged over
    ``fleet_gbit_per_s``, ``share`` the one of both that a fault is judged by. ``typical`` is
    the fleet's typical efficiency (``nan`` without expectations), ``sigma`` the robust spread of
    ``ratio``.
    """

    efficiency: Floats
    ratio: Floats
    share: Floats
    fleet_gbit_per_s: Floats
    typical: float
    sigma: float

    def of_together(self, table: LinkTable) -> Floats:
        """Return ``share`` for the figures of the rounds."""
        yard = np.where(np.isnan(table.expected), self.fleet_gbit_per_s, table.expected)
        return _over(table.together, yard)


def yardsticks(table: LinkTable) -> Yardsticks:
    """Compare every judged figure with its expectation and with the fleet.

    Where links have expectations the fleet is compared by efficiency, so that hosts of different
    rates can be told apart from slow ones.
    """
    efficiency = _over(table.judged, table.expected)
    known = ~np.isnan(table.expected)
    typical = fleet_median(table.fabric, efficiency, table.busy)
    rate = fleet_median(table.fabric, np.where(known, np.nan, table.judged), table.busy)
    fleet = np.where(known, table.expected * typical, rate)
    ratio = _over(table.judged, fleet)
    return Yardsticks(
        efficiency=efficiency,
        ratio=ratio,
        share=np.where(known, efficiency, ratio),
        fleet_gbit_per_s=fleet,
        typical=typical,
        sigma=_robust_sigma(ratio),
    )


def fleet_median(fabric: Fabric, figures: Floats, busy: Mask) -> float:
    """Return what a typical host reaches on the better part of its links; ``nan`` for no figures.

    The median over hosts of each host's upper quartile: one slow host of three, or a slow uplink
    that most pairs cross, leaves it as it was. Of several rails the best one counts, as rails
    are built alike. Figures from busy hosts count only where there are no others.
    """
    usable = ~np.isnan(figures)
    if (usable & ~busy).any():
        usable &= ~busy
    best = np.nan
    for rail in range(fabric.rails):
        rows = usable & (fabric.rail == rail)
        hosts = np.concatenate((fabric.source[rows], fabric.target[rows]))
        values = np.concatenate((figures[rows], figures[rows]))
        if len(hosts):
            best = np.fmax(best, np.median(upper_quantile(hosts, values)))
    return float(best)


def upper_quantile(groups: np.ndarray, values: Floats, share: float = _UPPER_QUARTILE) -> Floats:
    """Return the quantile of each group's values, groups in ascending order.

    Taken upwards to a value that was measured: of two values, the larger.
    """
    order = np.lexsort((values, groups))
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    chosen = starts + np.ceil(share * (counts - 1)).astype(np.int64)
    found: Floats = values[order][chosen]
    return found


def _over(figures: Floats, yard: Floats) -> Floats:
    """Divide; a yardstick of zero tells nothing."""
    return figures / np.where(yard > 0, yard, np.nan)


def _robust_sigma(ratio: Floats) -> float:
    known = ratio[~np.isnan(ratio)]
    if not len(known):
        return 0.0
    return float(_MAD_TO_SIGMA * np.median(np.abs(known - np.median(known))))
