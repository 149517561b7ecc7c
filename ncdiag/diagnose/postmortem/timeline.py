"""Which of two events came first, as far as their clocks or their places can tell."""

from collections.abc import Iterable, Mapping

from ncdiag.model.log import Clock, Event, LogEvidence, Moment, Place


def seconds_between(earlier: Place | None, later: Place | None) -> float | None:
    """Seconds from one place to another, ``None`` where their clocks cannot be compared."""
    if not earlier or not later or not earlier.time or not later.time:
        return None
    a, b = earlier.time, later.time
    if a.clock is not b.clock:
        return None
    if a.clock is Clock.UPTIME and earlier.path != later.path:
        return None
    return b.seconds - a.seconds


def last_place(event: Event) -> Place:
    """Where an event was last seen."""
    return event.last or event.place


class Timeline:
    """Puts events in order: by the clock where all have the same kind, else as they were read."""

    def __init__(self, evidence: LogEvidence) -> None:
        paths = [given.path for given in evidence.inputs]
        paths += [event.place.path for event in evidence.events]
        self._inputs: Mapping[str, int] = {
            path: number for number, path in enumerate(dict.fromkeys(paths))
        }
        self._clocks = _common_clock(event.place for event in evidence.events)

    @property
    def by_clock(self) -> bool:
        """Whether the order is that of a clock."""
        return self._clocks

    def key(self, place: Place) -> tuple[float, int, int]:
        """Sorts places."""
        moment: Moment | None = place.time if self._clocks else None
        return (
            moment.seconds if moment else 0.0,
            self._inputs.get(place.path, len(self._inputs)),
            place.line,
        )

    def before(self, one: Place, other: Place) -> bool:
        """Whether ``one`` came first: by their own clocks if they have the same, else as read."""
        gap = seconds_between(one, other)
        if gap:
            return gap > 0
        return self.key(one) < self.key(other)


def _common_clock(places: Iterable[Place]) -> bool:
    """Whether all events carry a time of one and the same clock."""
    clocks = set()
    uptimes = set()
    for place in places:
        clocks.add(place.time.clock if place.time else None)
        if place.time and place.time.clock is Clock.UPTIME:
            uptimes.add(place.path)
    return len(clocks) == 1 and None not in clocks and len(uptimes) <= 1
