"""Which imported figures compare: what was measured with less can be slow without any fault."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from ncdiag.model.imported import PairFigure
from ncdiag.model.text import visible
from ncdiag.model.units import format_bytes


def comparable(pairs: Sequence[PairFigure], faulty_below: float) -> list[PairFigure]:
    """``pairs`` without the figures that are low, and that nothing measured alike stands against.

    A bandwidth at small messages, or by another test, is no more than a lower bound: enough to call
    a link healthy, never to call it slow. So a figure below ``faulty_below`` of what the largest
    messages reach stays only where the same kind of test with messages no larger was fast
    elsewhere. The others have a reason in place of a figure.
    """
    told = [pair for pair in pairs if pair.gbit_per_s is not None]
    largest = max((pair.largest_bytes or 0 for pair in told), default=0)
    usual = [pair.gbit_per_s or 0.0 for pair in told if (pair.largest_bytes or 0) == largest]
    if not usual:
        return list(pairs)
    line = faulty_below * median(usual)
    enough: dict[str, int] = {}
    for pair in told:
        if (pair.gbit_per_s or 0.0) >= line:
            size = pair.largest_bytes or 0
            enough[pair.kind] = min(size, enough.get(pair.kind, size))
    return [_compared(pair, line, enough) for pair in pairs]


def _compared(pair: PairFigure, line: float, enough: dict[str, int]) -> PairFigure:
    if pair.gbit_per_s is None or pair.gbit_per_s >= line:
        return pair
    why = None
    if pair.kind not in enough:
        why = f"slow by {visible(pair.kind) or 'another test'}, by which no other pair was fast"
    elif pair.largest_bytes is not None and pair.largest_bytes < enough[pair.kind]:
        size = format_bytes(pair.largest_bytes)
        why = f"slow with messages of at most {size}, by which no other pair was fast"
    if why is None:
        return pair
    return replace(pair, gbit_per_s=None, min_gbit_per_s=None, error=f"{why}: does not compare")
