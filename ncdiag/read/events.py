"""Events kept by what they say: equal ones are counted."""

from collections.abc import Iterator

from ncdiag.model.log import Event


class EventLog:
    """The events of one input, in the order of their first appearance."""

    def __init__(self) -> None:
        self._events: dict[tuple[object, ...], Event] = {}

    def add(self, event: Event) -> None:
        """Keep ``event``, or count it on an equal one."""
        key = (
            event.class_name,
            event.form,
            event.speaker,
            tuple(event.attributes.items()),
            tuple(event.details.items()),
            event.ranks,
        )
        known = self._events.setdefault(key, event)
        if known is not event:
            known.count += event.count
            known.last = event.place

    def all(self) -> Iterator[Event]:
        """All events."""
        return iter(self._events.values())
