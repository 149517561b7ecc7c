"""The lines of a kernel log that tell of a fault, read as post-mortems read them.

An ordinary log is looked through for the kernel's own messages only, by few readers that are soon
loaded. One that is flooded with them is left to the reader of any log, which knows how to hurry.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ncdiag.model.log import Event, LogEvidence
from ncdiag.read.blocks import LINE_LIMIT, Block, Stream, blocks
from ncdiag.read.kernel_blocks import KernelBlockReader
from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler
from ncdiag.read.scan import scanner
from ncdiag.read.signatures.kernel import ROWS
from ncdiag.read.signatures.reader import SignatureReader

_NAME: Final = "kernel log"
# Lines with a fault, perhaps, that are read one by one: a tenth of a second.
_MOST_LINES: Final = 2_000
# What a kernel tells of; programs that write into its log tell of other things as well.
_CLASSES: Final = frozenset(row.class_ for row in ROWS)


class Told(NamedTuple):
    """The events of a log, and how many bytes were read."""

    events: list[Event]
    bytes: int


def read_kernel_lines(open_stream: Callable[[], Stream], size: int | None) -> Told:
    """The faults of a log of ``size`` bytes; ``open_stream`` gives it from its beginning."""
    reader = _FewLines()
    for block in blocks(open_stream()):
        if not reader.takes(block):
            return _flood(open_stream(), size)
    return Told(reader.finish(), reader.bytes)


class _FewLines:
    """Reads lines one by one, as long as they are few."""

    def __init__(self) -> None:
        self._readers = (SignatureReader(ROWS), KernelBlockReader())
        self._scanner = scanner(frozenset[bytes]().union(*(one.needles for one in self._readers)))
        self._peeler = Peeler(_NAME)
        self._taken = 0
        self._lines = 0
        self.bytes = 0

    def takes(self, block: Block) -> bool:
        """Read the lines of a block; false where they are too many."""
        buffer, size, _ = block
        found = self._scanner.lines(buffer, 0, size)
        self._taken += len(found)
        if self._taken > _MOST_LINES:
            return False
        position = 0
        for start, end, _needles in found:
            self._lines += buffer.count(b"\n", position, start)
            position = start
            raw = bytes(buffer[start : min(end, start + LINE_LIMIT)])
            for line in self._peeler.feed(raw, self._lines + 1):
                self._read(line)
        self._lines += buffer.count(b"\n", position, size)
        self.bytes += size
        return True

    def finish(self) -> list[Event]:
        """All events; called once, after the last block."""
        for line in self._peeler.finish():
            self._read(line)
        evidence = LogEvidence()
        for reader in self._readers:
            reader.finish(evidence)
        return evidence.events

    def _read(self, line: Line) -> None:
        hits = self._scanner.hits(line.text.encode(errors="replace"))
        for reader in self._readers:
            if not reader.needles.isdisjoint(hits):
                reader.read(line, hits)


def _flood(stream: Stream, size: int | None) -> Told:
    from ncdiag.read.depth import Depth
    from ncdiag.read.log_reader import LogReader
    from ncdiag.read.selection import Selection

    # Nothing but lines of errors matters here.
    shallow = Depth(
        edge_bytes=0, first_calls_bytes=0, last_calls_bytes=0, facts_lines=0, later_facts_lines=0
    )
    reader = LogReader(_NAME, brief=True)
    selection = Selection(reader, every_line=False, size=size, depth=shallow)
    for block in blocks(stream):
        selection.read(block)
    events = [event for event in reader.finish().events if event.class_name in _CLASSES]
    return Told(events, selection.bytes)
