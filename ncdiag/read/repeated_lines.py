"""Counts what a large log says again and again, without taking each line apart anew.

A failing job prints the same few messages millions of times. A line is known when its wrappers,
process and level are, and each signature that matches it captured the same values before.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import NOBODY, Event, Place
from ncdiag.read.events import NAMELESS, EventLog
from ncdiag.read.line import Line
from ncdiag.read.plain import PlainLine
from ncdiag.read.scan import HitLine
from ncdiag.read.signatures.reader import applies, match
from ncdiag.read.signatures.row import Signature

# In warnings these say no more than that their process lives, or where in the source it is.
_WARNING = b"NCCL WARN "
_SIGNS = frozenset({_WARNING, b".cc:", b".h:", b".c:", b".cu:", b".cpp:"})
_MOST_KNOWN = 50_000
# So many lines of a kind are read in full at least.
_FLOOD = 1_000
_MUTED_AFTER = 100

_NUMBERS = re.compile(r"\d+")
# What differs between lines that say alike: numbers, and the letters of pointers and addresses.
_VARIABLE = b"0123456789abcdef"
_LARGE = re.compile(rb"\d+\.\d+\.\d+\.\d+|[0-9a-f]{4,}")
# The library begins its lines with host:pid:thread.
_PREFIX_COLONS = 2
# Signatures that tell messages of one shape apart do so by a number: a status, an Xid, a code.
_TELLING_NUMBERS = ("0", "1", "2", "4", "5", "6", "12", "79", "110")

_Key = tuple[object, ...]
# Lines with the same needles: all of them warnings, or none.
_Kind = tuple[tuple[bytes, ...], bool]


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


def _may_be(row: Signature, line: Line) -> bool:
    """Whether the signature means lines that differ from this one by their numbers only."""
    alike = (replace(line, text=_NUMBERS.sub(n, line.text)) for n in _TELLING_NUMBERS)
    return any(match(row, one) for one in (line, *alike))


def _nameless(row: Signature, text: str, found: re.Match[str]) -> _Key:
    """A line by what it says: of what stands before it, the kind of wrapper."""
    return row.name, _NUMBERS.sub("0", text[: found.start()]), found.groups()


def _fine_shape(raw: bytes) -> bytes:
    """A message without addresses, ports, pointers and large numbers: codes stay."""
    start = raw.find(b" NCCL ")
    return _LARGE.sub(b"", raw[start:] if start >= 0 else raw.partition(b" ")[2])


def _voice(raw: bytes) -> bytes:
    """What tells whose line it is: its process or rank where it begins with one, else all of it."""
    first, _, _ = raw.partition(b" ")
    return first if first.startswith(b"[rank") or first.count(b":") == _PREFIX_COLONS else raw


class Mute:
    """Lines of one shape, of which only some need be looked at once nothing new is kept.

    ``skipped`` counts those not looked at since the last one that was, whose ``tallies`` they are.
    ``voices`` have been heard: where others than signatures read such lines, each process may say
    there where it is.
    """

    __slots__ = ("finer", "seen", "skipped", "tallies", "voices")
    MOST = 127

    def __init__(self) -> None:
        # Lines of this shape may differ by a number that matters: the finer shape decides.
        self.finer = False
        self.seen = 0
        self.skipped = 0
        self.tallies: Sequence[_Tally] = ()
        self.voices: set[bytes] | None = None


class _Flood:
    """Lines with the same needles: how many there were, what they may be, and who wrote them.

    Without ``voices`` only signatures read them.
    """

    __slots__ = ("lines", "rows", "voices")

    def __init__(self, rows: tuple[Signature, ...], voices: set[bytes] | None) -> None:
        self.rows = rows
        self.lines = 0
        self.voices = voices


class Recall:
    """Knows the events of one input by the lines they came from."""

    def __init__(
        self, rows: Mapping[bytes, Sequence[tuple[int, Signature]]], events: EventLog
    ) -> None:
        self._rows = rows
        self._events = events
        self._plans: dict[_Kind, tuple[Signature, ...] | None] = {}
        # What a signature's captures were in a line of this process; None: it refused them.
        self._known: dict[_Key, _Tally | None] = {}
        self._tallies: dict[int, _Tally] = {}
        self._nameless: dict[_Key, _Tally] = {}
        self.muted: dict[bytes, Mute] = {}
        self._mutes: dict[bytes, Mute] = {}
        self._wrappers: set[_Key] = set()
        self._floods: dict[_Kind, _Flood] = {}
        self._latest = (b"", -1)

    def counts(self, line: PlainLine, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Whether the line says only what is known; it is counted then.

        If not, it must be read in full, and what it was be told to ``learn``.
        """
        rows = self._plan(hits, warns=line.voice.level == "WARN")
        if rows is None:
            return False
        tallies = self._look(rows, line, None)
        if tallies is None:
            return False
        if self._latest != (raw, number - 1):  # else a collector wrote the line again
            for tally in tallies:
                tally.count += 1
                tally.number = number
                tally.raw = raw
        self._latest = raw, number
        self._mute(raw, rows, line.line("", number), tallies)
        return True

    def _mute(
        self,
        raw: bytes,
        rows: Sequence[Signature],
        line: Line,
        tallies: Sequence[_Tally],
        voices: set[bytes] | None = None,
    ) -> None:
        """Let a line that was counted stand for those of its shape, once nothing more is kept."""
        alike = raw.translate(None, _VARIABLE)
        mute = self._shaped(alike)
        finer = mute is not None and mute.finer
        if finer:
            alike = _fine_shape(raw)
            mute = self._shaped(alike)
        if mute is None:
            return
        for tally in tallies:
            tally.count += mute.skipped
        mute.tallies = tallies
        mute.voices = voices
        mute.skipped = 0
        mute.seen += 1
        if alike in self.muted or (mute.seen % _MUTED_AFTER and not finer):
            return
        if all(self._events.full(tally.event.form, "") for tally in tallies):
            likely = [] if finer else [row for row in rows if _may_be(row, line)]
            mute.finer = not all(self._events.full(row.name, "") for row in likely)
            self.muted[alike] = mute

    def _shaped(self, alike: bytes) -> Mute | None:
        mute = self._mutes.get(alike)
        if mute is None and len(self._mutes) < _MOST_KNOWN:
            mute = self._mutes[alike] = Mute()
        return mute

    def unmuted(self, block: bytearray, lines: Sequence[HitLine]) -> Iterator[HitLine]:
        """The lines that need be looked at; the others are counted."""
        muted = self.muted
        if not muted:
            yield from lines
            return
        joined = b"\n".join([block[start:end] for start, end, _ in lines])
        for line, shape in zip(lines, joined.translate(None, _VARIABLE).split(b"\n"), strict=False):
            mute = muted.get(shape)
            if mute is None or not self._skips(mute, block, line):
                yield line

    def _skips(self, mute: Mute, block: bytearray, line: HitLine) -> bool:
        if mute.finer or mute.voices is not None:
            raw = bytes(block[line[0] : line[1]])
            if mute.finer:
                finer = self.muted.get(_fine_shape(raw))
                if finer is None:
                    return False
                mute = finer
            if mute.voices is not None and _voice(raw) not in mute.voices:
                return False
        if mute.skipped >= mute.MOST:
            return False
        mute.skipped += 1
        return True

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
                    tally.count += 1
                    tally.number, tally.raw = number, raw
                    self._mute(raw, rows, Line(text=text, place=Place("", number)), (tally,))
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
            flood = self._floods[hits, warns] = _Flood(self._all_rows(hits), voices)
        flood.lines += 1
        if flood.voices is not None and (voice := _voice(raw)) not in flood.voices:
            if len(flood.voices) < _MOST_KNOWN:
                flood.voices.add(voice)
            return False
        if flood.lines < _FLOOD:
            return False
        text = raw.decode(errors="replace")
        line = Line(text=text, place=Place("", number))
        for row in flood.rows:
            if not row.pattern.search(text):
                continue
            full = self._events.full(row.name, "")
            if full is None:
                return False
            tally = self._tally(full)
            self._mute(raw, flood.rows, line, (tally,), flood.voices)
            if row.refine is not None:
                return False
            tally.count += 1
            tally.number, tally.raw = number, raw
            return True
        self._mute(raw, flood.rows, line, (), flood.voices)
        return False

    def learn(self, plain: PlainLine, line: Line, hits: tuple[bytes, ...]) -> None:
        """Remember what a line turned out to be, now that it was read in full."""
        if line.text != plain.body or line.level != plain.voice.level:
            return
        plain.voice.known = True
        if rows := self._plan(hits, warns=plain.voice.level == "WARN"):
            self._look(rows, plain, line)

    def finish(self, place: Callable[[bytes, int], Place]) -> None:
        """Add what was counted to the events; ``place`` tells where and when a line stands."""
        for mute in self._mutes.values():
            for tally in mute.tallies:
                tally.count += mute.skipped
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
            others = any(needle not in self._rows and needle not in signs for needle in hits)
            self._plans[key] = None if others else self._all_rows(hits)
        return self._plans[key]

    def _all_rows(self, hits: tuple[bytes, ...]) -> tuple[Signature, ...]:
        rows = {place: row for hit in hits for place, row in self._rows.get(hit, ())}
        return tuple(rows[place] for place in sorted(rows))

    def _look(
        self, rows: tuple[Signature, ...], plain: PlainLine, line: Line | None
    ) -> list[_Tally] | None:
        """What counts for this line, if all of it is known; ``line`` makes it known."""
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
