"""Which of two events came first, as far as their clocks or their places can tell."""

from collections.abc import Mapping

from ncdiag.diagnose.postmortem.clocks import common_scale, seconds_between, seconds_on
from ncdiag.model.log import Event, LogEvidence, Place

__all__ = ["Timeline", "last_place", "seconds_between"]


def last_place(event: Event) -> Place:
    """Where an event was last seen."""
    return event.last or event.place


class Timeline:
    """Puts events in order: by the clock where all can be compared, else as they were read."""

    def __init__(self, evidence: LogEvidence) -> None:
        paths = [given.path for given in evidence.inputs]
        paths += [event.place.path for event in evidence.events]
        self._inputs: Mapping[str, int] = {
            path: number for number, path in enumerate(dict.fromkeys(paths))
        }
        self._scale = common_scale([event.place for event in evidence.events])

    @property
    def by_clock(self) -> bool:
        """Whether the order is that of a clock."""
        return self._scale is not None

    def key(self, place: Place) -> tuple[float, int, int]:
        """Sorts places."""
        seconds = 0.0
        if self._scale is not None and place.time:
            seconds = seconds_on(place.time, self._scale)
        return seconds, self._inputs.get(place.path, len(self._inputs)), place.line

    def before(self, one: Place, other: Place) -> bool:
        """Whether ``one`` came first: by their own clocks if they have the same, else as read."""
        gap = seconds_between(one, other)
        if gap:
            return gap > 0
        return self.key(one) < self.key(other)
