"""What two time stamps can be compared as.

Logs print times with and without a year, a date or a zone. Stamps are compared on the coarsest
clock that both have; where one of them has a zone and the other has none, they are not compared at
all, since hours may lie between.
"""

import re
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

from ncdiag.model.place import Clock, Moment, Place

_ZONE = re.compile(r"(?:Z|UTC|GMT|[+-]\d\d:?\d\d|^\d{10}(?:[.,]\d+)?)[\])]?\s*$")
_DAY_S = 86_400.0
# A stamp without a year stands in the first ones of the epoch.
_YEARLESS_BELOW_S = 3 * 366 * _DAY_S


class Scale(IntEnum):
    """How much a stamp tells, the least first."""

    UPTIME = 0
    DAY = 1
    YEARLESS = 2
    FULL = 3


def scale_of(moment: Moment) -> Scale:
    """What a stamp tells."""
    if moment.clock is Clock.UPTIME:
        return Scale.UPTIME
    if moment.clock is Clock.DAY:
        return Scale.DAY
    return Scale.YEARLESS if moment.seconds < _YEARLESS_BELOW_S else Scale.FULL


@lru_cache(maxsize=4096)
def zoned(text: str) -> bool:
    """Whether a stamp says in which zone it is."""
    return bool(_ZONE.search(text.strip()))


def seconds_on(moment: Moment, scale: Scale) -> float:
    """A stamp's seconds on a coarser clock."""
    own = scale_of(moment)
    if own is scale:
        return moment.seconds
    if scale is Scale.DAY:
        return moment.seconds % _DAY_S
    return _without_year(moment.seconds)


@lru_cache(maxsize=4096)
def _without_year(seconds: float) -> float:
    day = datetime.fromtimestamp(seconds // _DAY_S * _DAY_S, UTC)
    start = datetime(day.year, 1, 1, tzinfo=UTC)
    return (day - start).total_seconds() + seconds % _DAY_S


def seconds_between(earlier: Place | None, later: Place | None) -> float | None:
    """Seconds from one place to another, ``None`` where their clocks cannot be compared."""
    if not earlier or not later or not earlier.time or not later.time:
        return None
    one, other = earlier.time, later.time
    scales = {scale_of(one), scale_of(other)}
    if Scale.UPTIME in scales:
        same = len(scales) == 1 and earlier.path == later.path
        return other.seconds - one.seconds if same else None
    if zoned(one.text) != zoned(other.text):
        return None
    common = min(scales)
    gap = seconds_on(other, common) - seconds_on(one, common)
    if common is Scale.DAY and len(scales) > 1 and abs(gap) > _DAY_S / 2:
        gap -= _DAY_S if gap > 0 else -_DAY_S
    return gap


def common_scale(places: list[Place]) -> Scale | None:
    """The clock on which all places can be put in order, if there is one."""
    moments = [place.time for place in places if place.time]
    if not moments or len(moments) < len(places):
        return None
    if len({zoned(moment.text) for moment in moments}) > 1:
        return None
    scales = {scale_of(moment) for moment in moments}
    if Scale.UPTIME in scales:
        return Scale.UPTIME if len(scales) == 1 and len({p.path for p in places}) == 1 else None
    if Scale.DAY in scales:
        return Scale.DAY if len(scales) == 1 and not _midnight(places) else None
    return min(scales)


def _midnight(places: list[Place]) -> bool:
    """Whether a log without dates goes on into the next day."""
    read = sorted((p.path, p.line, p.time.seconds) for p in places if p.time)
    return any(a[0] == b[0] and a[2] - b[2] > _DAY_S / 2 for a, b in pairwise(read))
