"""One input's raw lines to ``Line``s."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ncdiag.model.log import Speaker
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.peel import chain, clean, collected, library, quotes, records, stamps
from ncdiag.read.peel.chain import Chain, Memory
from ncdiag.read.peel.exports import Export
from ncdiag.read.peel.mail import Mail
from ncdiag.read.peel.wraps import Joiner, Raw

SHOWN_MAX = 1000
_RANK_TABLE = re.compile(r"#? +Rank +\d+ .{0,40}\bPid +\d+ on +(\S{1,255}) +device ", re.ASCII)
_RESULT_ROW = re.compile(r"\s{0,40}\d{1,16}\s{1,40}\d{1,16}\s{1,20}[a-z]\w{2,9} ", re.ASCII)
_REPEATED = re.compile(
    r"\s{0,8}\[repeated (\d{1,9})x across (?:cluster|all nodes)\](?: \(Ray deduplicates.{0,400})?$",
    re.ASCII,
)
# Streams whose lines a container runtime may break at the same time, and how far apart the
# pieces of one line may stand.
_MOST_STREAMS = 64
_PIECES_APART = 64


@dataclass(slots=True)
class _Partial:
    """A line of which a container runtime wrote the beginning only, so far."""

    text: str
    number: int
    last: int
    base: Chain | None


class Peeler:
    """Takes raw lines of one input in their order, with gaps where none mattered.

    ``year`` is that of stamps that leave it out, where the input itself does not tell.
    A ``Line`` has the number of the raw line it begins in; it may come some calls later.
    """

    def __init__(self, path: str, *, year: int | None = None) -> None:
        self._path = path
        self._memory = Memory(stamps.Calendar(year))
        self._joiner = Joiner(self._begins_record, self._holds)
        self._mail = Mail(self._begins_record, self._holds)
        self._export = Export()
        self._partial: dict[str, _Partial] = {}
        self._last = Raw("", 0)
        self._last_told = False

    def feed(self, raw: bytes, number: int) -> Iterable[Line]:
        """The records that are complete with line ``number``."""
        text = Raw(clean.decode(raw), number)
        if self._mail.passes(text):
            return self._unwrapped(text)
        return [line for whole in self._mail.push(text) for line in self._unwrapped(whole)]

    def _unwrapped(self, text: Raw) -> Iterable[Line]:
        """The records that are complete with a line as it was written."""
        if self._joiner.passes(text):
            return self._lines(text)
        return [line for whole in self._joiner.push(text) for line in self._lines(whole)]

    def finish(self) -> Iterable[Line]:
        """The records that were held back."""
        lines = [line for whole in self._mail.finish() for line in self._unwrapped(whole)]
        lines += [line for whole in self._joiner.finish() for line in self._lines(whole)]
        while self._partial:
            partial = self._partial.pop(next(iter(self._partial)))
            lines.extend(self._records(partial.text, partial.number, partial.base, whole=True))
        return lines

    def _begins_record(self, text: str) -> bool:
        """Whether ``text`` continues nothing: a row of a table stands for itself, too."""
        return self._begins(text) or _RESULT_ROW.match(text) is not None

    def _holds(self, text: str) -> bool:
        """Whether a record may go on after ``text``; the frame of a table does not."""
        return not text.startswith("#") and (self._begins(text) or records.hinted(text))

    def _begins(self, text: str) -> bool:
        prefix = library.at(text, 0)
        if prefix and prefix.host and prefix.pid:
            return not self._memory.hosts.is_tail(prefix.host, prefix.pid)
        if library.lost_at(text, 0):
            # The rest of a prefix, as far as that matters here.
            return False
        return chain.begins(text, self._memory)

    def _lines(self, raw: Raw) -> Iterable[Line]:
        doubled = self._last_told and raw.number == self._last.number + 1
        if doubled and raw.text == self._last.text:
            # A collector wrote the line again.
            self._last = raw
            return ()
        lines = self._bare(raw) or list(self._peeled(raw))
        self._last = raw
        self._last_told = _tells(lines[-1]) if lines else False
        return lines

    def _bare(self, raw: Raw) -> list[Line]:
        """A line that begins with the library's prefix and holds nothing else to look for."""
        text = raw.text
        prefix = library.at(text, 0)
        if not prefix or records.hinted(text, prefix.end) or not clean.is_plain(text):
            return []
        if not self._stands(prefix.host, prefix.pid):
            return []
        return [self._line(text, len(text), raw.number, Chain(prefix.end, prefix=prefix))]

    def _peeled(self, raw: Raw) -> Iterator[Line]:
        text = raw.text
        for piece in clean.after_returns(text) if "\r" in text else (text,):
            cleaned = clean.without_entities(clean.without_colours(piece))
            self._memory.line = raw.number
            if record := self._export.read(cleaned, self._memory):
                yield from self._collected(record, raw.number)
            else:
                yield from self._records(cleaned, raw.number, None)

    def _records(
        self, text: str, number: int, base: Chain | None, *, whole: bool = False
    ) -> Iterator[Line]:
        found = chain.read(text, 0, self._memory, base)
        if found.prefix and not self._stands(found.prefix.host, found.prefix.pid):
            found = replace(found, end=found.prefix.start, prefix=None)
        tag = None if whole else found.part
        key = f"{found.speaker.label} {tag['stream']}" if tag else ""
        if tag and (tag["part"] == "P" or key in self._partial):
            yield from self._piece(text, number, tag, key, base)
        elif collected.begins(text, found.end) and (
            told := collected.read(text, found.end, found, self._memory)
        ):
            for record in told:
                yield from self._collected(record, number)
        elif records.hinted(text, found.end):
            yield from self._split(text, number, found)
        else:
            if "Rank" in text and (row := _RANK_TABLE.match(text, found.end)):
                self._memory.hosts.learn(row[1])
            yield self._line(text, len(text), number, found)

    def _split(self, text: str, number: int, found: Chain) -> Iterator[Line]:
        """The records in one line; all but the first ran into it from other processes."""
        shared = _shared(found)
        floor = found.end
        for mark in records.marks(text, self._memory.hosts):
            gap = text[found.end : mark.start]
            if mark.start < floor or not (gap.strip() or mark.prefix):
                continue
            if not found.prefix and mark.prefix and stamps.only_time(gap):
                found = self._with_stamp(found, gap, mark.prefix)
            else:
                start = records.with_wrappers(text, mark.start, found.end)
                if text[found.end : start].strip():
                    yield self._line(text, start, number, found)
                found = chain.read(text, start, self._memory, shared)
                if mark.prefix:
                    found = replace(found, end=mark.prefix.end, prefix=mark.prefix)
            floor = max(found.end, mark.start + 1)
        yield self._line(text, len(text), number, found)

    def plain(self, host: str, pid: str) -> bool:
        """Whether a line that begins with the prefix of this process has no other before it."""
        return not self._memory.hosts.is_tail(host, pid) and self._stands(host, pid)

    def _stands(self, host: str | None, pid: str | None) -> bool:
        """Whether the host of a prefix is whole: no other record ends in its word.

        A name that may be one of its own stands; how often it comes tells in the end.
        """
        if not host or not pid or self._memory.hosts.knows(host, pid):
            return True
        hosts = self._memory.hosts
        if host.startswith("0x") or (hosts.glued(host, pid) and not hosts.may_be_two(host, pid)):
            return False
        self._memory.hosts.learn(host, pid)
        return True

    def _with_stamp(self, found: Chain, gap: str, prefix: library.Prefix) -> Chain:
        stamp = stamps.read(gap, self._memory.calendar) if gap.strip() else None
        if not stamp or (found.stamp and found.stamp.weight >= stamp.weight):
            stamp = found.stamp
        return replace(found, end=prefix.end, prefix=prefix, stamp=stamp)

    def _piece(
        self, text: str, number: int, tag: re.Match[str], key: str, base: Chain | None
    ) -> Iterator[Line]:
        """Join the pieces that a container runtime made of a long line."""
        whole = f"{text[: tag.start('part')]}F{text[tag.end('part') :]}"
        partial = tag["part"] == "P"
        yield from self._joined(key, whole, text[tag.end() :], number, base, partial=partial)

    def _collected(self, record: collected.Collected, number: int) -> Iterator[Line]:
        *whole, last = record.lines
        for text in whole:
            yield from self._records(text, number, record.proved)
        key = f"{record.proved.speaker.host} {record.stream} json"
        yield from self._joined(key, last, last, number, record.proved, partial=record.partial)

    def _joined(
        self, key: str, whole: str, rest: str, number: int, base: Chain | None, *, partial: bool
    ) -> Iterator[Line]:
        """``whole``, or what was kept under ``key`` and ``rest`` after it."""
        kept = self._partial.pop(key, None)
        if kept and (number - kept.last > _PIECES_APART or len(kept.text) >= clean.LONGEST):
            yield from self._records(kept.text, kept.number, kept.base, whole=True)
            kept = None
        if kept is None:
            kept = _Partial(whole, number, number, base)
        else:
            kept.text, kept.last = (kept.text + rest)[: clean.LONGEST], number
        if partial and len(self._partial) < _MOST_STREAMS:
            self._partial[key] = kept
        else:
            yield from self._records(kept.text, kept.number, kept.base, whole=True)

    def _line(self, text: str, end: int, number: int, found: Chain) -> Line:
        speaker, prefix, origin, carrier = found.speaker, found.prefix, found.origin, None
        if prefix:
            carrier = speaker.host if prefix.host and prefix.host != speaker.host else None
            speaker = Speaker(
                prefix.host or speaker.host,
                prefix.pid or speaker.pid,
                speaker.rank,
                prefix.device,
                speaker.label,
                speaker.address,
            )
            origin = None if origin == "kernel" else origin
        begin = prefix.start if prefix else found.end
        end = quotes.end_of(text, begin, found.end, end)
        body = text[found.end : end]
        repeats = 0
        if body.endswith(("]", ")")) and (again := _REPEATED.search(body)):
            body, repeats = body[: again.start()], int(again[1])
        return Line(
            text=body,
            place=Place(self._path, number, found.stamp.moment if found.stamp else None),
            shown=text[found.shown : min(end, found.shown + SHOWN_MAX)].rstrip(),
            speaker=speaker,
            level=prefix.level if prefix else None,
            location=(prefix.location if prefix else None) or found.location,
            function=prefix.function if prefix else None,
            origin=origin,
            repeats=repeats,
            carrier=carrier,
        )


def _tells(line: Line) -> bool:
    """Whether an exact repeat of ``line`` is no other event: calls and facts may come twice."""
    if line.level not in {None, "WARN", "ABORT"}:
        return False
    return bool(line.place.time or line.speaker.pid or line.location)


def _shared(first: Chain) -> Chain:
    """What the wrappers of a line prove for a record that runs into its first one."""
    said = first.speaker
    speaker = Speaker(host=said.host, label=said.label, address=said.address)
    return Chain(speaker=speaker, stamp=first.stamp, origin=first.origin)
