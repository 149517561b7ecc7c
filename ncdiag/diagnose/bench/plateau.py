"""Where a curve has levelled off, and what it reaches there."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile
from statistics import median

from ncdiag.diagnose.bench.points import rated
from ncdiag.diagnose.bench.thresholds import BEST_SIZES, LEAST_LEVEL_SIZES, LEVEL_SHARE
from ncdiag.model.bench import BenchPoint


@dataclass(frozen=True, slots=True)
class Plateau:
    """The level of a curve: its median over all sizes from ``from_bytes`` on."""

    busbw_gb_per_s: float
    from_bytes: int
    sizes_bytes: tuple[int, ...]


def find_plateau(curve: Sequence[BenchPoint]) -> Plateau | None:
    """The level of the largest sizes; ``None`` where the curve ends before it has reached one.

    It takes some sizes that reach alike; it begins with the first that comes so far, and all larger
    ones belong to it: a cliff among them does not move their median.
    """
    known = list(rated(curve))
    best = sorted((rate for _, rate in known), reverse=True)[:BEST_SIZES]
    if len(best) < BEST_SIZES or median(best) <= 0:
        return None
    typical = median(best)
    alike = [rate for _, rate in known if LEVEL_SHARE <= rate / typical <= 1 / LEVEL_SHARE]
    if len(alike) < LEAST_LEVEL_SIZES:
        return None
    on_it = list(dropwhile(lambda one: one[1] < LEVEL_SHARE * typical, known))
    return Plateau(
        median(rate for _, rate in on_it),
        on_it[0][0].size_bytes,
        tuple(point.size_bytes for point, _ in on_it),
    )
