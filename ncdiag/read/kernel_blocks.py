"""Messages of the kernel's drivers that take several lines."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line

_GPU = re.compile(
    r"The NVIDIA GPU (?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
)
_ADDRESS = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}")
# The words alone may be a question, or what somebody looks for.
_GONE = re.compile(
    r"(?:^\s{0,16}|\bNVRM:[^\n]{0,200}?|(?<![\"'`])\bGPU\b[^\n]{0,60}? has )"
    r"fallen off the bus\b(?!:)"
)
# The three lines follow each other, but for lines of other processors in between.
_REACH = 12


class _Named(NamedTuple):
    pci: str
    line: int
    speaker: Speaker


class KernelBlockReader:
    """Joins the lines by which the driver says that a GPU has gone from the bus."""

    needles = frozenset({b"The NVIDIA GPU ", b"fallen off the bus"})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._named: dict[Speaker, _Named] = {}
        self._latest: _Named | None = None
        self._events = EventLog()

    @property
    def open(self) -> bool:
        """The lines that matter have needles of their own."""
        return False

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Remember which GPU is spoken of, and say when it is gone."""
        del hits
        if line.level is not None:
            return
        text = line.text[:4096]
        if named := _GPU.search(text):
            if len(self._named) < _REACH * 100:
                self._latest = _Named(named["pci"], line.place.line, line.speaker)
                self._named[line.speaker] = self._latest
        elif _GONE.search(text) and not _ADDRESS.search(text):
            self._gone(line)

    def _gone(self, line: Line) -> None:
        named = self._named.pop(line.speaker, None)
        if named is None and line.speaker.host is None:
            # A journal indents the further lines of a message, and names the host once.
            named, self._latest = self._latest, None
        near = named and line.place.line - named.line <= _REACH
        self.kinds.add("kernel")
        self._events.add(
            Event(
                class_name=FindingClass.GPU_FELL_OFF_BUS,
                form="bus_lines",
                place=line.place,
                text=line.shown or line.text,
                speaker=named.speaker if named and near else line.speaker,
                attributes={"pci": named.pci} if named and near else {},
                count=1 + line.repeats,
            )
        )

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        evidence.events.extend(self._events.all())
