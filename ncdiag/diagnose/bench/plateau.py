"""Where a curve has levelled off, and what it reaches there."""

from collections.abc import Sequence
from dataclasses import dataclass
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

    It begins with the first size that reaches :data:`LEVEL_SHARE` of what the best sizes do, and
    all larger ones belong to it: a cliff among them does not move their median.
    """
    known = list(rated(curve))
    best = sorted((rate for _, rate in known), reverse=True)[:BEST_SIZES]
    if len(best) < BEST_SIZES or median(best) <= 0:
        return None
    level = LEVEL_SHARE * median(best)
    first = next(number for number, (_, rate) in enumerate(known) if rate >= level)
    on_it = known[first:]
    if len(on_it) < LEAST_LEVEL_SIZES:
        return None
    return Plateau(
        median(rate for _, rate in on_it),
        on_it[0][0].size_bytes,
        tuple(point.size_bytes for point, _ in on_it),
    )
