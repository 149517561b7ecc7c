"""Where a line of an input stands, and the time it carries."""

from enum import StrEnum
from typing import NamedTuple


class Clock(StrEnum):
    """What a time stamp counts from, which decides what it can be compared with."""

    WALL = "wall"  # seconds since 1970, as the host's clock had it; the zone may be unknown
    DAY = "day"  # seconds since midnight: no date was printed
    UPTIME = "uptime"  # seconds since the host booted


class Moment(NamedTuple):
    """A time stamp: ``text`` as printed, ``seconds`` on its ``clock``."""

    text: str
    seconds: float
    clock: Clock


class Place(NamedTuple):
    """A line of an input, counted from 1, and the time it carries."""

    path: str
    line: int
    time: Moment | None = None
