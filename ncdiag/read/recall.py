"""Counts what a large log says again and again, without taking each line apart anew.

A failing job prints the same few messages millions of times. A line is known when its wrappers,
process and level are, and each signature that matches it captured the same values before.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import NOBODY, Event, Place
from ncdiag.read.events import NAMELESS, EventLog
from ncdiag.read.line import Line
from ncdiag.read.plain import PlainLine
from ncdiag.read.signatures.reader import match
from ncdiag.read.signatures.row import Signature

# In warnings these say no more than that their process lives, or where in the source it is.
_SIGNS = frozenset({b"NCCL WARN ", b".cc:", b".h:", b".c:", b".cu:", b".cpp:"})
_MOST_KNOWN = 50_000
# So many lines of a kind are read in full at least; more where others than signatures read them,
# for each rank of a job may say there where it is.
_FLOOD = 1_000
_MUTED_AFTER = 1_000
_FLOOD_OF_FACTS = 8_000

_NUMBERS = re.compile(r"\d+")

_Key = tuple[object, ...]


class _Tally:
    """How often a known event came again, and where last."""

    __slots__ = ("count", "event", "number", "raw")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.count = 0
        self.number = 0
        self.raw = b""


def _accepts(row: Signature, found: re.Match[str], plain: PlainLine) -> bool:
    """Whether what the signature captured is what it means."""
    if row.refine is None:
        return True
    values = {name: value for name, value in found.groupdict().items() if value}
    return row.refine({**values, **row.constants}, plain.line("", 0)) is not None


def _nameless(row: Signature, text: str, found: re.Match[str]) -> _Key:
    """A line by what it says: of what stands before it, the kind of wrapper."""
    return row.name, _NUMBERS.sub("0", text[: found.start()]), found.groups()


class Mute:
    """Lines of which only each eighth need be looked at: no event of their forms is kept any more.

    ``skipped`` counts those not looked at since the last one that was.
    """

    __slots__ = ("seen", "skipped")
    MOST = 7

    def __init__(self) -> None:
        self.seen = 0
        self.skipped = 0


class _Flood:
    """Lines with the same needles: how many there were, and what they may be."""

    __slots__ = ("limit", "lines", "rows")

    def __init__(self, rows: tuple[Signature, ...], others: bool) -> None:  # noqa: FBT001
        self.rows = rows
        self.lines = 0
        self.limit = _FLOOD_OF_FACTS if others else _FLOOD


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
        self._nameless: dict[_Key, _Tally] = {}
        self.muted: dict[tuple[bytes, ...], Mute] = {}
        self._mutes: dict[tuple[bytes, ...], Mute] = {}
        self._wrappers: set[_Key] = set()
        self._floods: dict[tuple[bytes, ...], _Flood] = {}
        self._latest = (b"", -1)

    def counts(self, line: PlainLine, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether the line says only what is known; it is counted then.

        If not, it must be read in full, and what it was be told to ``learn``.
        """
        try:
            rows = self._plans[hits]
        except KeyError:
            rows = self._plans[hits] = self._plan(hits)
        if rows is None:
            return False
        tallies = self._look(rows, line, None)
        if tallies is None:
            return False
        mute = self._mutes.get(hits)
        if mute is None:
            mute = self._mutes[hits] = Mute()
        if self._latest != (raw, number - 1):  # else a collector wrote the line again
            for tally in tallies:
                tally.count += 1 + mute.skipped
                tally.number = number
                tally.raw = raw
        self._latest = raw, number
        mute.skipped = 0
        mute.seen += 1
        if mute.seen == _MUTED_AFTER:
            mute.seen = 0
            if all(self._events.full(row.name, "") for row in rows):
                self.muted[hits] = mute
        return True

    def repeats(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether a line that names nobody says what such lines said before; it is counted then."""
        rows = self._plans.get(hits)
        if not rows:
            return False
        text = raw.decode(errors="replace")
        for row in rows:
            if found := row.pattern.search(text):
                key = _nameless(row, text, found)
                tally = self._nameless.get(key)
                if tally is None and key[:2] in self._wrappers:
                    full = self._events.full(row.name, NAMELESS)
                    tally = self._tally(full) if full else None
                if tally is not None:
                    tally.count += 1
                    tally.number, tally.raw = number, raw
                return tally is not None
        return False

    def meet(self, raw: bytes, lines: Sequence[Line], hits: tuple[bytes, ...]) -> None:
        """Remember what a line turned out to be that was not plain, if it named nobody."""
        if hits not in self._plans:
            self._plans[hits] = self._plan(hits)
        named = any(line.speaker != NOBODY or line.repeats for line in lines)
        if named or len(self._nameless) >= _MOST_KNOWN:
            return
        text = raw.decode(errors="replace")
        for row in self._plans[hits] or ():
            if found := row.pattern.search(text):
                told = row.pattern.search(lines[-1].text)
                event = match(row, lines[-1])
                if event and told and told.groups() == found.groups():
                    kept = self._tally(self._events.kept(event))
                    key = _nameless(row, text, found)
                    self._nameless[key] = kept
                    self._wrappers.add(key[:2])
                return

    def floods(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether the line is one too many of its kind; it is counted then.

        So it is when thousands like it were read in full, no more events of its form are kept, and
        its signature matches the line as it stands, with all that stands before the message.
        """
        flood = self._floods.get(hits)
        if flood is None:
            flood = self._floods[hits] = _Flood(self._all_rows(hits), self._plan(hits) is None)
        flood.lines += 1
        if flood.lines < flood.limit:
            return False
        text = raw.decode(errors="replace")
        for row in flood.rows:
            if not row.pattern.search(text):
                continue
            full = self._events.full(row.name, "")
            if full is None or row.refine is not None:
                return False
            tally = self._tally(full)
            tally.count += 1
            tally.number, tally.raw = number, raw
            return True
        return False

    def learn(self, plain: PlainLine, line: Line, hits: tuple[bytes, ...]) -> None:
        """Remember what a line turned out to be, now that it was read in full."""
        if line.text != plain.body or line.level != plain.voice.level:
            return
        plain.voice.known = True
        if rows := self._plans.get(hits):
            self._look(rows, plain, line)

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
        signs = _SIGNS if b"NCCL WARN " in hits else frozenset[bytes]()
        if any(needle not in self._rows and needle not in signs for needle in hits):
            return None
        return self._all_rows(hits)

    def _all_rows(self, hits: tuple[bytes, ...]) -> tuple[Signature, ...]:
        rows = {place: row for hit in hits for place, row in self._rows.get(hit, ())}
        return tuple(rows[place] for place in sorted(rows))

    def _look(
        self, rows: tuple[Signature, ...], plain: PlainLine, line: Line | None
    ) -> list[_Tally] | None:
        """What counts for this line, if all of it is known; ``line`` makes it known."""
        level = plain.voice.level
        seen: list[FindingClass] = []
        tallies = []
        for row in rows:
            if row.class_ in seen or level not in row.levels:
                continue
            location = plain.voice.location
            if row.location and not (location and row.location.search(location)):
                continue
            found = row.pattern.search(plain.body)
            if not found:
                continue
            key = (row.name, plain.voice, found.groups())
            if key in self._known:
                tally = self._known[key]
            elif line is not None:
                tally = self._meet(row, line, key)
            elif full := self._full(row.name, plain):
                tally = self._tally(full) if _accepts(row, found, plain) else None
            else:
                return None
            if tally is not None:
                seen.append(row.class_)
                tallies.append(tally)
        return tallies

    def _full(self, form: str, plain: PlainLine) -> Event | None:
        return self._events.full(form, f"{plain.voice.host}:{plain.voice.pid}")

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
