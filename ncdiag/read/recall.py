"""Counts what a large log says again and again, without taking each line apart anew.

A failing job prints the same few messages millions of times. A line is known when its wrappers,
process and level are, and each signature that matches it captured the same values before.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import Event, Place
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line
from ncdiag.read.peel import clean, records
from ncdiag.read.signatures.reader import match
from ncdiag.read.signatures.row import Signature

# The library's own prefix, as far as its level; what stands before it are wrappers.
_PREFIX = re.compile(
    r"([^\s:\[\]<>(){}|\"'`,;=\\]{1,255}:\d{1,10}):\d{1,10} \[(-?\d{1,4})\]"
    r"(?: (\S{1,256}:\d{1,7})(?: \([^()]{0,200}\))?)? \Z",
    re.ASCII,
)
_LEVEL = " NCCL "
_FARTHEST_LEVEL = 400
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
# Needles of lines that say nothing more than that their process lives, at this level.
_SIGNS = frozenset({b"NCCL WARN ", b".cc:", b".h:", b".c:", b".cu:", b".cpp:"})
_MOST_KNOWN = 50_000
_MOST_PROCESSES = 100_000

_Key = tuple[object, ...]


class _Tally:
    """How often a known event came again, and where last."""

    __slots__ = ("count", "event", "number", "raw")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.count = 0
        self.number = 0
        self.raw = b""


class _Prefix(NamedTuple):
    process: str
    wrapper: str
    device: str
    location: str | None
    level: str
    body: str


class Recall:
    """Knows the events of one input by the lines they came from."""

    def __init__(
        self, rows: Mapping[bytes, Sequence[tuple[int, Signature]]], events: EventLog
    ) -> None:
        self._rows = rows
        self._events = events
        self._plans: dict[tuple[bytes, ...], tuple[Signature, ...] | None] = {}
        # What a signature's captures were in a line of this process; None: it refused them.
        self._known: dict[_Key, _Tally | None] = {}
        self._tallies: dict[int, _Tally] = {}
        self._processes: set[tuple[str, str]] = set()
        self._asked: tuple[tuple[Signature, ...], _Prefix] | None = None
        self._latest = (b"", -1)

    def counts(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether the line says only what is known; it is counted then.

        If not, it must be read in full, and what it was be told to ``learn``.
        """
        self._asked = None
        try:
            rows = self._plans[hits]
        except KeyError:
            rows = self._plans[hits] = self._plan(hits)
        prefix = None if rows is None else _prefix(raw)
        if rows is None or prefix is None:
            return False
        tallies: list[_Tally] | None = None
        if (prefix.process, prefix.wrapper) in self._processes:
            tallies = self._look(rows, prefix, None)
        if tallies is None:
            self._asked = rows, prefix
            return False
        if self._latest != (raw, number - 1):  # else a collector wrote the line again
            for tally in tallies:
                tally.count += 1
                tally.number = number
                tally.raw = raw
        self._latest = raw, number
        return True

    def learn(self, line: Line) -> None:
        """Remember what the line just asked for turned out to be, now that it was read."""
        if self._asked is None:
            return
        rows, prefix = self._asked
        if line.text == prefix.body and len(self._processes) < _MOST_PROCESSES:
            self._processes.add((prefix.process, prefix.wrapper))
            self._look(rows, prefix, line)

    def finish(self, place: Callable[[bytes, int], Place]) -> None:
        """Add what was counted to the events; ``place`` tells where and when a line stands."""
        for tally in self._tallies.values():
            if tally.count:
                event = tally.event
                event.count += tally.count
                if event.last is None or event.last.line < tally.number:
                    event.last = place(tally.raw, tally.number)

    def _plan(self, hits: tuple[bytes, ...]) -> tuple[Signature, ...] | None:
        """The signatures that lines with these needles may match; ``None``: others want them."""
        others = [needle for needle in hits if needle not in self._rows and needle not in _SIGNS]
        warns = b"NCCL WARN " in hits
        if others or not warns:
            return None
        rows = {place: row for hit in hits for place, row in self._rows.get(hit, ())}
        return tuple(rows[place] for place in sorted(rows))

    def _look(
        self, rows: tuple[Signature, ...], prefix: _Prefix, line: Line | None
    ) -> list[_Tally] | None:
        """What counts for this line, if all of it is known; ``line`` makes it known."""
        seen: list[FindingClass] = []
        tallies = []
        for row in rows:
            if row.class_ in seen or prefix.level not in row.levels:
                continue
            location = prefix.location
            if row.location and not (location and row.location.search(location)):
                continue
            found = row.pattern.search(prefix.body)
            if not found:
                continue
            key = (row.name, prefix[:4], found.groups())
            if key in self._known:
                tally = self._known[key]
            elif line is not None:
                tally = self._meet(row, line, key)
            elif row.refine is None and (full := self._events.full(row.name, prefix.process)):
                tally = self._tally(full)
            else:
                return None
            if tally is not None:
                seen.append(row.class_)
                tallies.append(tally)
        return tallies

    def _meet(self, row: Signature, line: Line, key: _Key) -> _Tally | None:
        event = match(row, line)
        tally = self._tally(self._events.kept(event)) if event else None
        if len(self._known) < _MOST_KNOWN:
            self._known[key] = tally
        return tally

    def _tally(self, event: Event) -> _Tally:
        tally = self._tallies.get(id(event))
        if tally is None:
            tally = self._tallies[id(event)] = _Tally(event)
        return tally


def _prefix(raw: bytes) -> _Prefix | None:
    """The parts of a plain line of one process; ``None`` if there is any doubt."""
    if b"\x1b" in raw or b"\r" in raw or b"\0" in raw:
        return None
    text = raw.decode(errors="replace")
    at = text.find(_LEVEL, 0, _FARTHEST_LEVEL) + 1
    found = _PREFIX.search(text, 0, at) if at else None
    start = text.find(" ", at + 5)
    if found is None or start < 0:
        return None
    body = text[start + 1 :].rstrip()
    doubtful = "[" in body or "CCL" in body or "NVRM" in body
    if doubtful and (records.hinted(body) or not clean.is_plain(body) or "[repeated " in body):
        return None
    wrapper = text[: found.start()]
    if wrapper:
        wrapper = _TIME.sub("T", wrapper)
    process, device, location = found.groups()
    return _Prefix(process, wrapper, device, location, text[at + 5 : start], body)
