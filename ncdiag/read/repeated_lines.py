"""Counts what a large log says again and again, without taking each line apart anew.

A failing job prints the same few messages millions of times. A line is known when its wrappers,
process and level are, and each signature that matches it captured the same values before.
"""

import re
from collections.abc import Callable, Sequence

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import NOBODY, Event
from ncdiag.model.place import Place
from ncdiag.read.events import NAMELESS
from ncdiag.read.line import Line
from ncdiag.read.plain_lines import PlainLine
from ncdiag.read.shapes import Shapes, Tally, speaker_of, was_heard
from ncdiag.read.signatures.reader import SignatureReader, applies, match
from ncdiag.read.signatures.row import Signature

# In warnings these say no more than that their process lives, or where in the source it is.
_WARNING = b"NCCL WARN "
_SIGNS = frozenset({_WARNING, b".cc:", b".h:", b".c:", b".cu:", b".cpp:"})
_MOST_KNOWN = 50_000
# So many lines of a kind are read in full at least.
_FLOOD = 1_000

_NUMBERS = re.compile(r"\d+")
# Signatures that tell messages of one shape apart do so by a number: a status, an Xid, a code.
_TELLING_NUMBERS = ("0", "1", "2", "4", "5", "6", "12", "79", "110")

_Key = tuple[object, ...]
# Lines with the same needles: all of them warnings, or none.
_Kind = tuple[tuple[bytes, ...], bool]


def _accepts(row: Signature, found: re.Match[str], plain: PlainLine) -> bool:
    """Whether what the signature captured is what it means."""
    if row.refine is None:
        return True
    values = {name: value for name, value in found.groupdict().items() if value}
    return row.refine({**values, **row.constants}, plain.line("", 0)) is not None


def _as_it_stands(raw: bytes) -> Line:
    return Line(text=raw.decode(errors="replace"), place=Place("", 0))


def _may_be(row: Signature, line: Line) -> bool:
    """Whether the signature means lines that differ from this one by their numbers only."""
    alike = (line._replace(text=_NUMBERS.sub(n, line.text)) for n in _TELLING_NUMBERS)
    return any(match(row, one) for one in (line, *alike))


def _nameless(row: Signature, text: str, found: re.Match[str]) -> _Key:
    """A line by what it says: of what stands before it, the kind of wrapper."""
    return row.name, _NUMBERS.sub("0", text[: found.start()]), found.groups()


class _Flood:
    """Lines with the same needles: how many there were, what they may be, and who wrote them.

    Without ``voices`` only signatures read them.
    """

    __slots__ = ("lines", "rows", "voices")

    def __init__(self, rows: tuple[Signature, ...], voices: set[bytes] | None) -> None:
        self.rows = rows
        self.lines = 0
        self.voices = voices


class RepeatedLines:
    """Knows the events of one input, which ``table`` reads, by the lines they came from."""

    def __init__(self, table: SignatureReader) -> None:
        self._table = table
        self._events = table.events
        self._plans: dict[_Kind, tuple[Signature, ...] | None] = {}
        # What a signature's captures were in a line of this process; None: it refused them.
        self._known: dict[_Key, Tally | None] = {}
        self._tallies: dict[int, Tally] = {}
        self._nameless: dict[_Key, Tally] = {}
        self._wrappers: set[_Key] = set()
        self._floods: dict[_Kind, _Flood] = {}
        self._latest = (b"", -1)
        self._shapes = Shapes()
        self.unmuted = self._shapes.unmuted
        self.hear = self._shapes.hear

    def counts(self, line: PlainLine, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether the line says only what is known; it is counted then.

        If not, it must be read in full, and what it was be told to ``learn``.
        """
        rows = self._plan(hits, warns=line.voice.level == "WARN")
        if rows is None:
            return False
        tallies = self._look(rows, line)
        if tallies is None:
            return False
        if self._latest != (raw, number - 1):  # else a collector wrote the line again
            for tally in tallies:
                tally.add(raw, number)
        self._latest = raw, number
        self._note_shape(raw, rows, tallies, plain=line)
        return True

    def _note_shape(
        self,
        raw: bytes,
        rows: Sequence[Signature],
        tallies: Sequence[Tally],
        *,
        plain: PlainLine | None = None,
        voices: set[bytes] | None = None,
    ) -> None:
        """Let a line that was counted stand for those of its shape, once nothing more is kept."""
        shape = self._shapes.of(raw)
        if shape is None:
            return
        shape.note(tallies, voices)
        if shape.due and all(self._events.full(tally.event.form, "") for tally in tallies):
            line = plain.line("", 0) if plain else _as_it_stands(raw)
            likely = [] if shape.fine else [row for row in rows if _may_be(row, line)]
            finer = not all(self._events.full(row.name, "") for row in likely)
            self._shapes.mute(raw, shape, finer=finer)

    def repeats(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether a line that names nobody says what such lines said before; it is counted then."""
        rows = self._plan(hits, warns=_WARNING in raw)
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
                    tally.add(raw, number)
                    self._note_shape(raw, rows, (tally,))
                return tally is not None
        return False

    def meet(self, raw: bytes, lines: Sequence[Line], hits: tuple[bytes, ...]) -> None:
        """Remember what a line turned out to be that was not plain, if it named nobody."""
        named = any(line.speaker != NOBODY or line.repeats for line in lines)
        if named or len(self._nameless) >= _MOST_KNOWN:
            return
        text = raw.decode(errors="replace")
        for row in self._plan(hits, warns=_WARNING in raw) or ():
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
        warns = _WARNING in raw
        flood = self._floods.get((hits, warns))
        if flood is None:
            voices = set[bytes]() if self._plan(hits, warns=warns) is None else None
            flood = self._floods[hits, warns] = _Flood(self._table.rows(hits), voices)
        flood.lines += 1
        if flood.voices is not None and not was_heard(raw, flood.voices):
            if len(flood.voices) < _MOST_KNOWN:
                flood.voices.add(speaker_of(raw))
            return False
        if flood.lines < _FLOOD:
            return False
        text = raw.decode(errors="replace")
        for row in flood.rows:
            if not row.pattern.search(text):
                continue
            full = self._events.full(row.name, "")
            if full is None:
                return False
            tally = self._tally(full)
            self._note_shape(raw, flood.rows, (tally,), voices=flood.voices)
            if row.refine is not None:
                return False
            tally.add(raw, number)
            return True
        self._note_shape(raw, flood.rows, (), voices=flood.voices)
        return False

    def learn(self, plain: PlainLine, line: Line, hits: tuple[bytes, ...]) -> None:
        """Remember what a line turned out to be, now that it was read in full."""
        if line.text != plain.body or line.level != plain.voice.level:
            return
        plain.voice.known = True
        if self._plan(hits, warns=plain.voice.level == "WARN") and self._table.latest is line:
            for row, values, event in self._table.told:
                if len(self._known) < _MOST_KNOWN:
                    known = self._tally(event) if event else None
                    self._known[row.name, plain.voice, values] = known

    def finish(self, place: Callable[[bytes, int], Place]) -> None:
        """Add what was counted to the events; ``place`` tells where and when a line stands."""
        self._shapes.finish()
        for tally in self._tallies.values():
            if tally.count:
                event = tally.event
                event.count += tally.count
                if event.last is None or event.last.line < tally.number:
                    event.last = place(tally.raw, tally.number)

    def _plan(self, hits: tuple[bytes, ...], *, warns: bool) -> tuple[Signature, ...] | None:
        """The signatures that such lines may match; ``None``: others want to read them too."""
        key = hits, warns
        if key not in self._plans:
            signs = _SIGNS if warns else frozenset[bytes]()
            others = any(
                needle not in self._table.needles and needle not in signs for needle in hits
            )
            self._plans[key] = None if others else self._table.rows(hits)
        return self._plans[key]

    def _look(self, rows: tuple[Signature, ...], plain: PlainLine) -> list[Tally] | None:
        """What counts for this line, if all of it is known."""
        seen: list[FindingClass] = []
        tallies = []
        for row in rows:
            if row.class_ in seen or not applies(row, plain.voice.level, plain.voice.location):
                continue
            found = row.pattern.search(plain.body)
            if not found:
                continue
            key = (row.name, plain.voice, found.groups())
            if key in self._known:
                tally = self._known[key]
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

    def _tally(self, event: Event) -> Tally:
        tally = self._tallies.get(id(event))
        if tally is None:
            tally = self._tallies[id(event)] = Tally(event)
        return tally
