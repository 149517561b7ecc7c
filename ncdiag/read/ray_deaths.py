"""What Ray tells of an actor that died: its process and its host stand on lines of their own."""

import re
from collections.abc import Sequence

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line

_HEAD = re.compile(r"(?:ActorDiedError|RayActorError|The actor died unexpectedly)\b")
_FIELD = re.compile(r"^\s*(pid|ip|actor_id|class_name|namespace): (\S{1,200})")
# The fields follow the head at once, in no order to rely on.
_FIELDS = 8
_MOST = 1024


class _Death:
    """An actor's death while its fields are read."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.pid: str | None = None
        self.address: str | None = None
        self.read = 0


class RayDeathReader:
    """Joins an actor's death with the process and the host that it names."""

    needles = frozenset({b"ActorDiedError", b"RayActorError", b"The actor died unexpectedly"})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._deaths: dict[Speaker, _Death] = {}
        self._events = EventLog()

    @property
    def open(self) -> bool:
        """Whether fields are awaited."""
        return bool(self._deaths)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take the head of a death, or one of its fields."""
        del hits
        if line.level is None and _HEAD.search(line.text[:4096]):
            if len(self._deaths) < _MOST:
                self._deaths[line.speaker] = _Death(line)
            return
        death = self._deaths.get(line.speaker)
        if death and (field := _FIELD.match(line.text)):
            if field[1] == "pid":
                death.pid = field[2]
            elif field[1] == "ip":
                death.address = field[2]
        for speaker, open_death in list(self._deaths.items()):
            open_death.read += 1
            if open_death.read >= _FIELDS:
                self._close(speaker)

    def _close(self, speaker: Speaker) -> None:
        death = self._deaths.pop(speaker)
        if not death.pid and not death.address:
            return
        self.kinds.add("ray")
        self._events.add(
            Event(
                class_name=FindingClass.PROCESS_DIED,
                form="ray_actor_fields",
                place=death.line.place,
                text=death.line.shown or death.line.text,
                speaker=speaker,
                attributes={"pid": death.pid} if death.pid else {},
                details={"host": death.address} if death.address else {},
            )
        )

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        for speaker in list(self._deaths):
            self._close(speaker)
        evidence.events.extend(self._events.all())
