"""Events kept by what they say: equal ones are counted, and floods end in a count as well."""

from collections.abc import Iterator

from ncdiag.model.log import Event

# More different events than these tell an operator nothing: the rest raises the count of one that
# is kept, the first of its form from the same process, or else the first of its form.
PER_PROCESS = 32
PER_STRANGER = 200
PER_FORM = 200
IN_ALL = 2_000
# What each form may still keep when all together have reached their limit.
_RESERVE = 100
_TEXT_LIMIT = 4_096
# The process of messages that do not tell whose they are: it may be many.
NAMELESS = "None:None"


class EventLog:
    """The events of one input or of all, in the order of their first appearance."""

    def __init__(self) -> None:
        self._events: dict[tuple[object, ...], Event] = {}
        self._forms: dict[str, list[Event]] = {}
        self._processes: dict[tuple[str, str], list[Event]] = {}

    def add(self, event: Event) -> Event:
        """Keep ``event``, or count it on another; returns the one that is kept."""
        key = _key(event)
        process = _process(event)
        known = self._events.get(key) or self.full(event.form, process)
        if known is not None:
            known.count += event.count
            known.last = event.last or event.place
            return known
        if len(event.text) > _TEXT_LIMIT:
            event.text = event.text[:_TEXT_LIMIT] + "..."
        self._events[key] = event
        self._forms.setdefault(event.form, []).append(event)
        self._processes.setdefault((event.form, process), []).append(event)
        return event

    def kept(self, event: Event) -> Event:
        """The event that ``event``, added before, is counted on."""
        known = self._events.get(_key(event)) or self.full(event.form, _process(event))
        return known or event

    def full(self, form: str, process: str) -> Event | None:
        """The event that counts for others of ``process`` too, once no more of them are kept."""
        own = self._processes.get((form, process))
        alike = self._forms.get(form)
        if alike is None:
            return None
        full = len(alike) >= PER_FORM or (len(alike) >= _RESERVE and len(self._events) >= IN_ALL)
        most = PER_STRANGER if process == NAMELESS else PER_PROCESS
        if full or (own and len(own) >= most):
            return own[0] if own else alike[0]
        return None

    def all(self) -> Iterator[Event]:
        """All events."""
        return iter(self._events.values())


def _key(event: Event) -> tuple[object, ...]:
    return (
        event.class_name,
        event.form,
        event.speaker,
        tuple(event.attributes.items()),
        tuple(event.details.items()),
        event.ranks,
    )


def _process(event: Event) -> str:
    speaker = event.speaker
    host, pid = speaker.host or speaker.address, speaker.pid or speaker.label
    return f"{host}:{pid}"
