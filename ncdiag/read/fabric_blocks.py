"""What the fabric manager of NVLink 5 says of a GPU's link: a heading, then a line a field."""

import re
from collections.abc import Sequence

from ncdiag.model.finding import FindingClass, Severity
from ncdiag.model.log import Event, LogEvidence
from ncdiag.read.line import Line

_HEADING = re.compile(r"detected (?:stale )?GPU NVL (Non )?Fatal error on")
_FIELD = re.compile(
    r"(?:^|\s)(?P<name>moduleId|nodeId|partitionId|gpuGuid|portNum|portStatus|errorCode"
    r"|errorSubcode|portDownReasonCode|isErrorFirst|errorStatus) ?: ?(?P<value>\w{1,32})"
)
# Fields that tell more than the heading, by the names they get.
_DETAILS = {
    "gpuGuid": "gpu_guid",
    "moduleId": "module",
    "nodeId": "fabric_node",
    "errorCode": "error_code",
    "errorSubcode": "error_subcode",
}
# Lines in a row that are no field, after which none comes any more.
_STRANGERS = 3
_MOST = 10_000


class FabricBlockReader:
    """Makes an event of each heading, with what the fields below it say."""

    needles = frozenset({b"GPU NVL Fatal error", b"GPU NVL Non Fatal error"})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._events: list[Event] = []
        self._current: Event | None = None
        self._strangers = 0

    @property
    def open(self) -> bool:
        """Whether fields are to be expected."""
        return self._current is not None

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a heading, or a field of the block that is open."""
        del hits
        if line.level is not None:
            return
        if found := _HEADING.search(line.text):
            self._begin(found, line)
        fields = _FIELD.findall(line.text) if self._current else []
        if self._current and fields:
            self._strangers = 0
            _note(self._current, dict(fields))
        elif self._current and not found:
            self._strangers += 1
            if self._strangers > _STRANGERS:
                self._current = None

    def _begin(self, found: re.Match[str], line: Line) -> None:
        survived = found[1] is not None
        self.kinds.add("fabric-manager")
        self._strangers = 0
        self._current = Event(
            class_name=FindingClass.NVLINK_ERROR,
            form="manager_gpu_link",
            place=line.place,
            text=line.shown or line.text,
            speaker=line.speaker,
            details={"fatal": "no"} if survived else {},
            severity=Severity.DEGRADED if survived else None,
            count=1 + line.repeats,
        )
        if len(self._events) < _MOST:
            self._events.append(self._current)

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        evidence.events.extend(self._events)


def _note(event: Event, fields: dict[str, str]) -> None:
    """Keep what a block says first."""
    if link := fields.get("portNum"):
        event.attributes = {"link": link, **event.attributes}
    told = {detail: fields[name] for name, detail in _DETAILS.items() if name in fields}
    event.details = told | dict(event.details)
