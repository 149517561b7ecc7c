"""Events kept by what they say: equal ones are counted, and floods end in a count as well."""

from collections.abc import Iterator

from ncdiag.model.log import Event

# More different events than these tell an operator nothing: the rest raises the count of one that
# is kept, the first of its form from the same process, or else the first of its form.
PER_PROCESS = 32
PER_FORM = 2_000
IN_ALL = 20_000
# What each form may still keep when all together have reached their limit.
_RESERVE = 100
_TEXT_LIMIT = 4_096


class EventLog:
    """The events of one input or of all, in the order of their first appearance."""

    def __init__(self) -> None:
        self._events: dict[tuple[object, ...], Event] = {}
        self._forms: dict[str, list[Event]] = {}
        self._processes: dict[tuple[str, object, object], list[Event]] = {}

    def add(self, event: Event) -> Event:
        """Keep ``event``, or count it on another; returns the one that is kept."""
        key = (
            event.class_name,
            event.form,
            event.speaker,
            tuple(event.attributes.items()),
            tuple(event.details.items()),
            event.ranks,
        )
        known = self._events.get(key) or self.stand_in(event)
        if known is not None:
            known.count += event.count
            known.last = event.last or event.place
            return known
        if len(event.text) > _TEXT_LIMIT:
            event.text = event.text[:_TEXT_LIMIT] + "..."
        self._events[key] = event
        self._forms.setdefault(event.form, []).append(event)
        self._processes.setdefault(_process(event), []).append(event)
        return event

    def stand_in(self, event: Event) -> Event | None:
        """The event that counts for ``event`` too where no more like it are kept."""
        form = self._forms.get(event.form, [])
        own = self._processes.get(_process(event), [])
        full = len(form) >= PER_FORM or (len(form) >= _RESERVE and len(self._events) >= IN_ALL)
        if full or len(own) >= PER_PROCESS:
            return own[0] if own else form[0]
        return None

    def all(self) -> Iterator[Event]:
        """All events."""
        return iter(self._events.values())


def _process(event: Event) -> tuple[str, object, object]:
    speaker = event.speaker
    return event.form, speaker.host or speaker.address, speaker.pid or speaker.label
