"""One input's lines, without their wrappers, handed to the readers of every dialect."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ncdiag.model.log import InputSummary, LogEvidence, Place
from ncdiag.read.dialects import line_readers, peeler
from ncdiag.read.line import Line, LineReader

# Wrappers that prove a host speaks, beside the library's own prefix.
_HOST_ORIGINS = frozenset({"kernel", "syslog", "journald", "pdsh", "fabric-manager"})
_TAIL = 16


class Peeler(Protocol):
    """Takes wrappers off raw lines; may hold a line back until it knows that it is whole."""

    def feed(self, raw: bytes, number: int) -> Iterable[Line]:
        """The records that are complete with this line."""

    def finish(self) -> Iterable[Line]:
        """What was held back."""


class LogReader:
    """Reads the lines of one input: some or all of them, in order."""

    def __init__(self, path: str, readers: Sequence[LineReader] | None = None) -> None:
        self._path = path
        self._peeler: Peeler = peeler(path)
        self._readers = list(line_readers() if readers is None else readers)
        self._wanted: dict[bytes, list[int]] = {}
        for index, reader in enumerate(self._readers):
            for needle in reader.needles | reader.facts:
                self._wanted.setdefault(needle, []).append(index)
        always = (reader.needles - reader.facts for reader in self._readers)
        self.needles = frozenset[bytes]().union(*always)
        self.facts = frozenset(self._wanted) - self.needles
        self.open = False
        self.learned = 0
        self.starts = 0
        self._pending: dict[int, tuple[bytes, Sequence[bytes]]] = {}
        self._evidence = LogEvidence()
        self._end: Place | None = None
        self._clock_end: Place | None = None

    def take(self, raw: bytes, number: int, hits: Sequence[bytes]) -> None:
        """Read a line without its line end; ``hits`` are the needles it contains."""
        self._pending[number] = (raw, hits)
        for line in self._peeler.feed(raw, number):
            self._read(line)
        self.open = any(reader.open for reader in self._readers)

    def finish(self) -> LogEvidence:
        """All that was read; called once, after the last line."""
        for line in self._peeler.finish():
            self._read(line)
        evidence = self._evidence
        kinds: set[str] = set()
        for reader in self._readers:
            reader.finish(evidence)
            kinds |= getattr(reader, "kinds", set())
        if self._end:
            evidence.ends[self._path] = self._end
        if self._clock_end:
            evidence.clock_ends[self._path] = self._clock_end
        evidence.inputs.append(InputSummary(path=self._path, kinds=sorted(kinds)))
        return evidence

    def _read(self, line: Line) -> None:
        """Note what any line tells and hand it to those who want it."""
        hits = self._hits(line)
        if line.text.strip():
            self._end = line.place
        if line.place.time:
            self._clock_end = line.place
        host = line.speaker.host
        if host and (line.level or line.origin in _HOST_ORIGINS):
            self._evidence.hosts.setdefault(host, line.place)
        wanted = {index for hit in hits for index in self._wanted.get(hit, ())}
        for index, reader in enumerate(self._readers):
            if index in wanted or reader.open:
                reader.read(line, hits)

    def _hits(self, line: Line) -> Sequence[bytes]:
        """The needles of the raw line; searched anew where a record is joined from several."""
        number = line.place.line
        for old in [held for held in self._pending if held < number]:
            del self._pending[old]
        raw, hits = self._pending.get(number, (b"", ()))
        text = line.text.encode(errors="replace")
        if text[-_TAIL:] in raw:
            return hits
        return [needle for needle in self._wanted if needle in text]
