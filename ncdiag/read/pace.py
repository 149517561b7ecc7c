"""How the timed lines of an input follow one another, and where it was silent."""

from bisect import insort

from ncdiag.model.log import Pace, Pause
from ncdiag.model.place import Clock, Place

# The longest pauses that are kept: the one that a hang is, those after it, and the pace before.
_MOST = 8
_DAY_S = 86_400.0


def step(pace: Pace, place: Place) -> None:
    """Take the next timed line of the same input."""
    _add(pace, Pause(pace.last, place, pace.lines, _seconds(pace.last, place)))
    pace.last = place
    pace.lines += 1


def join(first: Pace, second: Pace) -> Pace:
    """The pace of two pieces, one after the other."""
    _add(first, Pause(first.last, second.first, first.lines, _seconds(first.last, second.first)))
    for pause in second.pauses:
        _add(first, pause._replace(lines=pause.lines + first.lines))
    first.last = second.last
    first.lines += second.lines
    return first


def _add(pace: Pace, pause: Pause) -> None:
    pauses = pace.pauses
    if len(pauses) < _MOST or pause.seconds > pauses[-1].seconds:
        insort(pauses, pause, key=_shortness)
        del pauses[_MOST:]


def _shortness(pause: Pause) -> float:
    return -pause.seconds


def _seconds(before: Place, after: Place) -> float:
    """Seconds from one line to the next; none where the clocks differ or went back."""
    one, other = before.time, after.time
    if one is None or other is None or one.clock is not other.clock:
        return 0.0
    gap = other.seconds - one.seconds
    if one.clock is Clock.DAY and gap < -_DAY_S / 2:
        gap += _DAY_S
    return max(gap, 0.0)
