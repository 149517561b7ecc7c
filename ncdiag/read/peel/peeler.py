"""One input's raw lines to ``Line``s."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ncdiag.model.log import Place, Speaker
from ncdiag.read.line import Line
from ncdiag.read.peel import chain, clean, library, records, stamps
from ncdiag.read.peel.chain import Chain, Memory

SHOWN_MAX = 1000
_KNOWN_HOSTS = 4096
_REPEATED = re.compile(
    r"\s*\[repeated (\d{1,9})x across (?:cluster|all nodes)\](?: \(Ray deduplicates.{0,400})?$",
    re.ASCII,
)


class Peeler:
    """Takes raw lines of one input in their order, with gaps where none mattered."""

    def __init__(self, path: str, *, year: int | None = None) -> None:
        self._path = path
        self._memory = Memory(stamps.Calendar(year))
        self._last_raw: bytes | None = None
        self._last_number = 0
        self._last_told = False

    def feed(self, raw: bytes, number: int) -> Iterable[Line]:
        """The records that line ``number`` completes."""
        if self._doubled(raw, number):
            return ()
        lines = list(self._lines(raw, number))
        self._last_told = any(line.place.time or line.speaker.pid for line in lines)
        return lines

    def finish(self) -> Iterable[Line]:
        """The records that were held back."""
        return ()

    def _doubled(self, raw: bytes, number: int) -> bool:
        """Whether a collector wrote the last line again."""
        again = self._last_told and number == self._last_number + 1 and raw == self._last_raw
        self._last_raw, self._last_number = raw, number
        return again

    def _lines(self, raw: bytes, number: int) -> Iterator[Line]:
        text = clean.decode(raw)
        prefix = library.at(text, 0)
        if prefix and not records.hinted(text, prefix.end) and "\r" not in text:
            yield self._line(text, len(text), number, Chain(prefix.end, prefix=prefix))
            return
        for piece in clean.after_returns(text) if "\r" in text else (text,):
            yield from self._records(clean.without_colours(piece), number)

    def _records(self, text: str, number: int) -> Iterator[Line]:
        first = chain.read(text, 0, self._memory)
        if not records.hinted(text, first.end) and not first.prefix:
            yield self._line(text, len(text), number, first)
            return
        begun = replace(first, end=0, prefix=None) if first.prefix else first
        found = first
        floor = found.end
        for mark in records.marks(text, self._memory.hosts):
            if mark.start < floor or not text[mark.start :].strip():
                continue
            start = records.with_wrappers(text, mark.start, found.end)
            gap = text[found.end : mark.start]
            if not gap.strip() and not mark.prefix:
                continue
            if not found.prefix and mark.prefix and stamps.only_time(gap):
                found = self._with_stamp(found, gap, mark.prefix)
            else:
                if text[found.end : start].strip():
                    yield self._line(text, start, number, found)
                found = chain.read(text, start, self._memory, self._shared(begun))
                if not found.prefix and mark.prefix:
                    found = replace(found, end=mark.prefix.end, prefix=mark.prefix)
            floor = max(found.end, mark.start + 1)
        yield self._line(text, len(text), number, found)

    def _with_stamp(self, found: Chain, gap: str, prefix: library.Prefix) -> Chain:
        stamp = stamps.read(gap, self._memory.calendar) if gap.strip() else None
        if not stamp or (found.stamp and found.stamp.weight >= stamp.weight):
            stamp = found.stamp
        return replace(found, end=prefix.end, prefix=prefix, stamp=stamp)

    @staticmethod
    def _shared(first: Chain) -> Chain:
        """What the wrappers of a line prove for a record that runs into its first one."""
        speaker = first.speaker
        shared = Speaker(host=speaker.host, label=speaker.label, address=speaker.address)
        return Chain(speaker=shared, stamp=first.stamp, origin=first.origin)

    def _line(self, text: str, end: int, number: int, found: Chain) -> Line:
        speaker, prefix = found.speaker, found.prefix
        origin = found.origin
        if prefix:
            if prefix.host:
                speaker = speaker._replace(host=prefix.host, pid=prefix.pid)
                if len(self._memory.hosts) < _KNOWN_HOSTS:
                    self._memory.hosts.add(prefix.host)
            speaker = speaker._replace(device=prefix.device)
            origin = None if origin == "kernel" else origin
        body = text[found.end : end].rstrip()
        repeats = 0
        if body.endswith(("cluster]", "nodes]", ")")) and (again := _REPEATED.search(body)):
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
        )
