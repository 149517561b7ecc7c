"""Times that a message states, where its line carries no stamp."""

from datetime import UTC, datetime

from ncdiag.model.log import Event
from ncdiag.model.place import Clock, Moment, Place


def stated(event: Event) -> Place:
    """Where an event stands, at the time that its message gives if its line has none."""
    text = event.details.get("at")
    if event.place.time or not text:
        return event.place
    try:
        seconds = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return event.place
    return event.place._replace(time=Moment(text, seconds, Clock.WALL))
