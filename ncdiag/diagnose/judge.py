"""Each link by itself: healthy, degraded, faulty, inconclusive or error."""

from dataclasses import dataclass

import numpy as np

from ncdiag.diagnose.table import LinkTable, Mask
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.diagnose.yardstick import Yardsticks, yardsticks


@dataclass(frozen=True, slots=True)
class Judgement:
    """The figures of all links, and one mask a status; every link stands in exactly one.

    ``clear`` links are healthy beyond doubt: they speak for everything they pass through.
    ``confirmed`` ones were measured with the fabric quiet, or are ``damaged``: data arrived wrong,
    which is faulty, needs no figure, and is never the others' doing.
    """

    table: LinkTable
    sticks: Yardsticks
    healthy: Mask
    degraded: Mask
    faulty: Mask
    inconclusive: Mask
    error: Mask
    clear: Mask
    confirmed: Mask

    @property
    def damaged(self) -> Mask:
        """Links on which data arrived wrong."""
        return self.table.damaged


def judge(table: LinkTable, thresholds: Thresholds) -> Judgement:
    """Judge every link by the contract's two lines."""
    sticks = yardsticks(table)
    line = thresholds.faulty_below
    damaged = table.damaged
    error = np.isnan(table.judged) & ~damaged
    # Without an expectation, the fleet's median is what a link can reach.
    reached = sticks.share >= thresholds.reached
    inconclusive = ~error & ~damaged & ((table.busy & ~reached) | np.isnan(sticks.share))
    open_ = ~error & ~inconclusive
    faulty = open_ & ((sticks.share < line) | damaged)
    outlier = sticks.ratio < outlier_line(sticks, thresholds)
    degraded = open_ & ~faulty & ~reached & outlier
    return Judgement(
        table=table,
        sticks=sticks,
        healthy=open_ & ~faulty & ~degraded,
        degraded=degraded,
        faulty=faulty,
        inconclusive=inconclusive,
        error=error,
        clear=sticks.share >= thresholds.halfway(line, sticks.typical),
        confirmed=~np.isnan(table.alone) | damaged,
    )


def outlier_line(sticks: Yardsticks, thresholds: Thresholds) -> float:
    """Return the share of the fleet's median under which a link is an outlier."""
    return 1.0 - max(thresholds.outlier_by, thresholds.outlier_sigmas * sticks.sigma)
