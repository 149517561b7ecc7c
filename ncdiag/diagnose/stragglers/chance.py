"""How far out a healthy rank may lie by chance: the threshold that a robust score is held against.

Scores are in robust standard deviations: the distance from the group's median over 1.4826 times
the median absolute deviation (MAD). Of few ranks the MAD itself is uncertain, so a score means
less: its tail is the normal one averaged over what the MAD of so many normal values can be.
"""

import math
from functools import cache, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Makes the MAD of normal values their standard deviation: 1 / NormalDist().inv_cdf(0.75).
MAD_TO_SIGMA: Final = 1.482602218505602
# Above so many ranks the MAD is as good as normal around the true value, with this deviation times
# 1 / sqrt(ranks) (Rousseeuw and Croux 1993, efficiency 36.7 %).
_MANY: Final = 400
_MAD_DEVIATION: Final = 1.1664
_DRAWS: Final = 4000
_SEED: Final = 20
_STEPS: Final = 60
_FARTHEST: Final = 1e6

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@lru_cache(maxsize=256)
def threshold(ranks: int, false_alarms: float) -> float:
    """The score that ``false_alarms`` of ``ranks`` healthy ranks exceed on average."""
    share = min(0.5, false_alarms / ranks)
    low, high = 0.0, _FARTHEST
    for _ in range(_STEPS):
        # Scores of few ranks span decades.
        middle = math.sqrt(max(low, 1e-3) * high)
        if tail(ranks, middle) > share:
            low = middle
        else:
            high = middle
    return high


def tail(ranks: int, score: float) -> float:
    """The chance that one healthy rank of ``ranks`` scores above ``score``."""
    scales, centre = _scales(ranks)
    return float(np.mean(0.5 * _erfc(score * scales / (math.sqrt(2.0) * centre))))


@cache
def _scales(ranks: int) -> tuple[Floats, float]:
    """Equally likely values of the MAD over the true deviation; and that of ``value - median``."""
    if ranks > _MANY:
        # Quantiles of a normal distribution around 1, by its own inverse.
        from statistics import NormalDist

        spread = NormalDist(1.0, _MAD_DEVIATION / math.sqrt(ranks))
        points = (np.arange(200) + 0.5) / 200
        return np.array([spread.inv_cdf(float(point)) for point in points]), 1.0
    values = np.random.default_rng(_SEED).standard_normal((_DRAWS, ranks))
    values -= np.median(values, axis=1, keepdims=True)
    deviation = np.median(np.abs(values), axis=1) * MAD_TO_SIGMA
    return deviation, float(np.sqrt(np.mean(values**2)))
