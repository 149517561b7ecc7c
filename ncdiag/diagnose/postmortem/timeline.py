"""Which of two events came first, as far as their clocks or their places can tell."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ncdiag.diagnose.postmortem.clocks import (
    Scale,
    common_scale,
    scale_of,
    seconds_between,
    seconds_on,
)
from ncdiag.model.log import Event, LogEvidence
from ncdiag.model.place import Place

__all__ = ["Timeline", "last_place", "seconds_between"]


def last_place(event: Event) -> Place:
    """Where an event was last seen."""
    return event.last or event.place


class Timeline:
    """Puts events in order: by the clock where all inputs have the same kind, else as read.

    A line without a time has that of the line before it in its input.
    """

    def __init__(self, evidence: LogEvidence) -> None:
        places = [event.place for event in evidence.events]
        paths = {given.path for given in evidence.inputs} | {place.path for place in places}
        # By name: the order in which inputs were given means nothing.
        self._inputs: Mapping[str, int] = {path: n for n, path in enumerate(sorted(paths))}
        timed = [place for place in places if place.time]
        whole = {place.path for place in timed} == {place.path for place in places}
        self._scale = common_scale(timed) if whole else None
        self._marks = _marks(timed, self._scale) if self._scale is not None else {}

    @property
    def by_clock(self) -> bool:
        """Whether the order is that of a clock."""
        return self._scale is not None

    def key(self, place: Place) -> tuple[float, int, int]:
        """Sorts places."""
        return self._seconds(place), self._inputs.get(place.path, len(self._inputs)), place.line

    def _seconds(self, place: Place) -> float:
        if self._scale is None:
            return 0.0
        if place.time and scale_of(place.time) >= self._scale:
            return seconds_on(place.time, self._scale)
        lines, seconds = self._marks.get(place.path, ([], []))
        at = max(bisect_right(lines, place.line) - 1, 0)
        return seconds[at] if seconds else 0.0

    def ordered(self, one: Place, other: Place) -> bool:
        """Whether it can be told which came first: by one clock, or as lines of one input."""
        return one.path == other.path or self.by_clock or seconds_between(one, other) is not None

    def before(self, one: Place, other: Place) -> bool:
        """Whether ``one`` came first: by their own clocks if they have the same, else as read."""
        gap = seconds_between(one, other)
        if gap:
            return gap > 0
        return self.key(one) < self.key(other)


def spread(events: Iterable[Event]) -> float:
    """Seconds between the first and the last of events, by one clock; 0 where it cannot be told."""
    places: list[Place] = [p for e in events for p in (e.place, e.last) if p]
    gaps = (seconds_between(one, other) for one in places[:1] for other in places)
    return max((abs(gap) for gap in gaps if gap is not None), default=0.0)


def _marks(timed: Sequence[Place], scale: Scale) -> dict[str, tuple[list[int], list[float]]]:
    """For each input, the lines that carry a time, and their times."""
    marks: dict[str, tuple[list[int], list[float]]] = {}
    for place in sorted(timed, key=lambda place: (place.path, place.line)):
        if place.time:
            lines, seconds = marks.setdefault(place.path, ([], []))
            lines.append(place.line)
            seconds.append(seconds_on(place.time, scale))
    return marks
