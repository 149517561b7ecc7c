"""Trends over recorded runs: whether a host or a link gets slower, or comes and goes.

Every number that this hangs on stands here, with the reason for it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from statistics import median
from typing import Final

# Of fewer figures no order of them is surprising enough: six that all fall come about by chance
# once in 720 times.
MIN_RUNS: Final = 6
# Mann-Kendall: an order of the figures this far from chance comes about once in a hundred links
# that are steady, in either direction. Whoever looks at a whole fleet looks at the change too.
SIGMAS: Final = 2.58
# Paths of one fabric, and one path from day to day, differ by some per cent.
MIN_CHANGE: Final = 0.05
# A step of late is too short for an order of all: four figures below all of six earlier ones come
# about by chance once in 210 times.
STEP_RUNS: Final = 4
# A fault and its repair are two changes; a third one is a pattern.
MIN_FLAPS: Final = 3
# A figure at a line crosses it again and again without anything having happened to the link.
FLAP_CHANGE: Final = 0.10
# Windows last a tenth of a second, in which others' traffic can halve a link once; a link that is
# cut for some of that time in half of all runs is worth a line, and no accusation.
UNSTEADY_WINDOW: Final = 0.5
UNSTEADY_SHARE: Final = 0.5
UNSTEADY_RUNS: Final = 3

# The work grows with the square of this; what was half a year ago says nothing of a trend.
MAX_RUNS: Final = 200

_WELL: Final = {"healthy"}
_SLOW: Final = {"faulty", "degraded"}
_AWAY: Final = {"unreachable", "error"}


class Standing(StrEnum):
    """What a history ends with; the first that holds.

    ``changed`` is for the better, or with the whole fleet: no fault of this one.
    """

    FAULTY = "faulty"
    DEGRADED = "degraded"
    FLAPPING = "flapping"
    DRIFTING = "drifting"
    UNDECIDED = "undecided"
    TOO_FEW = "too_few"
    CHANGED = "changed"
    STEADY = "steady"

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong with what was looked at."""
        return self in {Standing.FAULTY, Standing.DEGRADED, Standing.FLAPPING, Standing.DRIFTING}

    @property
    def is_open(self) -> bool:
        """Whether nobody can tell."""
        return self in {Standing.UNDECIDED, Standing.TOO_FEW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run's word on a host, link or collective; the oldest run comes first.

    ``figure`` is what was measured, in any unit, ``fleet_ratio`` that over the fleet's median, and
    ``worst_window`` the worst window over the figure. ``status`` is a link's or a host's.
    """

    started: str
    engine: str
    status: str
    figure: float | None
    fleet_ratio: float | None = None
    worst_window: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A change over ``runs`` figures, from about ``before`` to about ``after``.

    ``change`` is a share of ``before``, below zero where it fell. ``stepped`` is when the first run
    after a sudden change started; ``None`` where it went bit by bit. ``fleet_alike`` says that the
    whole fleet changed in the same way, so that this one is not to blame.
    """

    before: float
    after: float
    change: float
    runs: int
    since: str
    stepped: str | None = None
    fleet_alike: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """What a history says. ``runs`` have a figure of the engine that the newest run has.

    ``flaps`` counts changes of status; ``unsteady_runs`` are those with a bad window; ``others``
    is the number of runs by other engines, which do not compare.
    """

    standing: Standing
    now: str
    runs: int
    drift: Drift | None = None
    flaps: int = 0
    unsteady_runs: int = 0
    others: int = 0


def over_time(samples: Sequence[Sample]) -> OverTime:
    """Judge the newest MAX_RUNS runs of ``samples``, of which there is at least one."""
    samples = samples[-MAX_RUNS:]
    newest = samples[-1]
    alike = [one for one in samples if one.engine == newest.engine]
    told = [one for one in alike if one.status in _WELL | _SLOW and one.figure is not None]
    drift = find_drift(told)
    flaps = count_flaps(alike)
    unsteady = sum(
        one.worst_window is not None and one.worst_window < UNSTEADY_WINDOW for one in told
    )
    if unsteady < max(UNSTEADY_RUNS, UNSTEADY_SHARE * len(told)):
        unsteady = 0
    return OverTime(
        standing=_standing(newest.status, len(told), drift, flaps),
        now=newest.status,
        runs=len(told),
        drift=drift,
        flaps=flaps,
        unsteady_runs=unsteady,
        others=len(samples) - len(alike),
    )


def _standing(now: str, runs: int, drift: Drift | None, flaps: int) -> Standing:
    if now in _SLOW:
        return Standing.FAULTY if now == "faulty" else Standing.DEGRADED
    if flaps >= MIN_FLAPS:
        return Standing.FLAPPING
    if now not in _WELL:
        return Standing.UNDECIDED
    if drift is not None and drift.change < 0 and not drift.fleet_alike:
        return Standing.DRIFTING
    if runs < MIN_RUNS:
        return Standing.TOO_FEW
    return Standing.STEADY if drift is None else Standing.CHANGED


def count_flaps(samples: Sequence[Sample]) -> int:
    """How often it went from well to slow to away or back; what could not be told is passed over.

    A change without one of the figure is none: a figure at a line crosses it for nothing.
    """
    settled: list[tuple[str, float | None]] = []
    for one in samples:
        state = _state(one)
        if state is None:
            continue
        if settled and (settled[-1][0] == state or not _is_change(settled[-1][1], one.figure)):
            continue
        settled.append((state, one.figure))
    return max(len(settled) - 1, 0)


def _state(sample: Sample) -> str | None:
    if sample.status in _WELL:
        return "well"
    if sample.status in _SLOW:
        return "slow"
    return "away" if sample.status in _AWAY else None


def _is_change(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return True
    return abs(after - before) > FLAP_CHANGE * max(before, after)


def find_drift(samples: Sequence[Sample]) -> Drift | None:
    """The change over ``samples``, which all have a figure; ``None`` where there is none to trust.

    The line through them is Theil and Sen's: its slope is the median of the slopes between any
    two. An order of the figures that chance explains, or a small change, is none.
    """
    figures = [one.figure for one in samples if one.figure is not None]
    if len(figures) < MIN_RUNS:
        return None
    fit = _fit(figures)
    step = _step_at(figures)
    late = len(figures) - STEP_RUNS
    if abs(_mann_kendall(figures)) < SIGMAS:
        if late < MIN_RUNS or not _is_apart(figures[:late], figures[late:]):
            return None
        step = late
    if step is not None:
        fit = median(figures[:step]), median(figures[step:])
    before, after = fit
    change = (after - before) / before if before > 0 else 0.0
    if abs(change) < MIN_CHANGE:
        return None
    return Drift(
        before=before,
        after=after,
        change=change,
        runs=len(figures),
        since=samples[0].started,
        stepped=None if step is None else samples[step].started,
        fleet_alike=_fleet_changed_too(samples, change, step),
    )


def _fit(figures: Sequence[float]) -> tuple[float, float]:
    """Where the line of Theil and Sen begins and ends."""
    numbered = list(enumerate(figures))
    slope = median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(numbered, 2))
    begin = median(y - slope * x for x, y in numbered)
    return begin, begin + slope * (len(figures) - 1)


def _mann_kendall(figures: Sequence[float]) -> float:
    """How far the order of the figures is from chance, in standard deviations."""
    count = len(figures)
    up = sum((b > a) - (b < a) for a, b in combinations(figures, 2))
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return math.copysign(max(abs(up) - 1, 0), up) / deviation


def _step_at(figures: Sequence[float]) -> int | None:
    """Where one sudden change explains the figures twice as well as a line does."""

    def scatter(parts: Sequence[Sequence[float]]) -> float:
        return sum(abs(one - median(part)) for part in parts for one in part)

    begin, end = _fit(figures)
    slope = (end - begin) / (len(figures) - 1)
    around_line = sum(abs(y - begin - slope * x) for x, y in enumerate(figures))
    splits = range(2, len(figures) - 1)
    best = min(splits, key=lambda split: scatter((figures[:split], figures[split:])))
    around_steps = scatter((figures[:best], figures[best:]))
    return best if 2 * around_steps < around_line else None


def _is_apart(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether all figures after are on one side of all before."""
    return max(after) < min(before) or min(after) > max(before)


def _fleet_changed_too(samples: Sequence[Sample], change: float, step: int | None) -> bool:
    """Whether, against the fleet's median, less than half of the change is left."""
    ratios = [one.fleet_ratio for one in samples]
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < len(ratios):
        return False
    before, after = _fit(known) if step is None else (median(known[:step]), median(known[step:]))
    return before > 0 and abs((after - before) / before) < abs(change) / 2
