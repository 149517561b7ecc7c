"""What torch's analyser of flight recorders prints: a collective that ranks differ in."""

import re
from collections.abc import Sequence

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import Event, LogEvidence
from ncdiag.read.line import Line

_HEADING = re.compile(
    r"(?:Not all ranks joining collective,|Input/output mismatch in the collective)"
    r" sequence number: (?P<seq>\d{1,20})"
)
_FIELD = re.compile(
    r"^\s{0,8}(?P<name>group info|collective|missing ranks|error msg|[\w ]{0,20}errors):"
    r" (?P<value>.{1,400})"
)
_RANKS = re.compile(r"\{(?P<ranks>[\d, ]{1,4000})\}")
_CULPRIT = re.compile(r"[Cc]ulprit rank (\d{1,7})")
_OP = re.compile(r"(?:\w{1,20}:)?(\w{1,64})")
_REACH = 24
_MOST = 10_000


class FlightTextReader:
    """Makes an event of each collective that does not fit."""

    needles = frozenset({b"Not all ranks joining collective", b"mismatch in the collective"})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._events: list[Event] = []
        self._left = 0

    @property
    def open(self) -> bool:
        """Whether fields are to be expected."""
        return self._left > 0

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a heading, or a field below it."""
        del hits
        if line.level is not None:
            return
        if found := _HEADING.search(line.text):
            self._begin(found["seq"], line)
        elif self._left:
            self._left -= 1
            if field := _FIELD.match(line.text):
                _note(self._events[-1], field["name"], field["value"].strip())

    def _begin(self, seq: str, line: Line) -> None:
        self.kinds.add("flight-recorder")
        if len(self._events) >= _MOST:
            self._left = 0
            return
        self._left = _REACH
        self._events.append(
            Event(
                class_name=FindingClass.TORCH_DESYNC,
                form="flight_text",
                place=line.place,
                text=line.shown or line.text,
                speaker=line.speaker,
                attributes={"seq": seq},
            )
        )

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        evidence.events.extend(self._events)


def _note(event: Event, name: str, value: str) -> None:
    if name == "collective" and (op := _OP.match(value)):
        event.attributes = {"op": op[1], **event.attributes}
    elif name == "group info":
        event.details = {"group": value, **event.details}
    elif name == "missing ranks" and (found := _RANKS.search(value)):
        ranks = [int(rank) for rank in found["ranks"].split(",") if rank.strip().isdigit()]
        event.ranks = tuple(dict.fromkeys((*event.ranks, *ranks)))
    elif "error" in name:
        culprits = [int(rank) for rank in _CULPRIT.findall(value)]
        event.ranks = tuple(dict.fromkeys((*event.ranks, *culprits)))
