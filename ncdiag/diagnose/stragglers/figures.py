"""One figure a rank from its times, and how far out it is in noise of whatever shape.

Everything is in logarithms, in which twice as slow is as far out as twice as fast.
"""

from statistics import NormalDist
from typing import Final

import numpy as np

from ncdiag.diagnose.stragglers.chance import MAD_TO_SIGMA, Floats

# Clocks are read in steps; ranks that agree within this are alike.
_LEAST_DEVIATION: Final = 1e-4
# The shape of noise is read off these of its quantiles; beyond them it goes on as a straight line.
_SHARES: Final = np.arange(0.01, 0.995, 0.01)
_NORMAL: Final = np.array([NormalDist().inv_cdf(float(share)) for share in _SHARES])
_LEAST_SHAPE: Final = 200
# Beyond so many deviations of the noise, and at least this much slower, an iteration is a slow one.
_FAR_STEP: Final = 3.0
_SLOW_STEP: Final = 0.1
# A rank slow in this share of its iterations, but not in most, is told of.
_OFTEN: Final = 0.15
_LEAST_OFTEN: Final = 5
_SELDOM: Final = 0.02


def relative_logs(seconds: Floats) -> Floats:
    """How much longer than like ranks each took in each iteration; NaN where not known.

    Each iteration is held against the mean of its middle half: against the median, the rank in the
    middle would be held against itself, and ranks look more alike than they are.
    """
    logs = np.full(seconds.shape, np.nan)
    np.log(seconds, out=logs, where=np.isfinite(seconds) & (seconds > 0))
    return logs - _middles(logs)[:, None]


def scores(relative: Floats, figures: Floats) -> Floats:
    """How many robust deviations each of ``figures``, the medians of ranks, is above the others.

    Medians of skewed or long-tailed noise are skewed or long-tailed too. So a figure counts by the
    share of noise below it, as if the noise were normal.
    """
    shaped = _shaped(_known(relative - _middles(relative.T)), figures)
    away = shaped - np.median(shaped)
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(away)))
    return np.asarray(away / max(deviation, _LEAST_DEVIATION))


def now_and_then(relative: Floats, figures: Floats) -> Floats:
    """The share of its iterations in which each rank is slow, where that is often; else zero."""
    noise = _known(relative - figures)
    if noise.size < _LEAST_SHAPE:
        return np.zeros(len(figures))
    far = max(_FAR_STEP * MAD_TO_SIGMA * float(np.median(np.abs(noise))), np.log1p(_SLOW_STEP))
    count = np.sum(relative > far, axis=0)
    share = count / np.maximum(np.isfinite(relative).sum(axis=0), 1)
    if np.median(share) > _SELDOM:
        return np.zeros(len(figures))
    often = (share >= _OFTEN) & (share > share.mean() * _FAR_STEP) & (count >= _LEAST_OFTEN)
    return np.where(often, share, 0.0)


def _middles(values: Floats) -> Floats:
    """The mean of the middle half of each row."""
    order = np.sort(values, axis=1)
    known = np.isfinite(order)
    count = known.sum(axis=1)
    low = count // 4
    high = count - low
    sums = np.zeros((len(order), order.shape[1] + 1))
    np.cumsum(np.where(known, order, 0.0), axis=1, out=sums[:, 1:])
    row = np.arange(len(order))
    return np.asarray((sums[row, high] - sums[row, low]) / np.maximum(high - low, 1))


def _shaped(noise: Floats, figures: Floats) -> Floats:
    """Figures as they would be in normal noise of the same width."""
    if noise.size < _LEAST_SHAPE:
        return figures
    points = np.quantile(noise, _SHARES) - np.median(noise)
    width = float(points[83] - points[15]) / 2
    if width < _LEAST_DEVIATION or np.any(np.diff(points) <= 0):
        return figures
    inside = np.interp(figures, points, _NORMAL * width)
    below, above = figures - points[0], figures - points[-1]
    return np.asarray(inside + np.minimum(below, 0.0) + np.maximum(above, 0.0))


def _known(values: Floats) -> Floats:
    return values[np.isfinite(values)]
