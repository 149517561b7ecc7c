"""Which lines of an input its reader sees: all of a small one, those that matter of a large one."""

from ncdiag.read.blocks import LINE_LIMIT, Block
from ncdiag.read.depth import DEEPEST, Depth
from ncdiag.read.facts_budget import FactsBudget
from ncdiag.read.log_reader import LogReader
from ncdiag.read.newlines import newlines
from ncdiag.read.scan import Scanner, scanner

_CALLS = frozenset({b": opCount ", b"[nranks=", b"NCCL CALL "})
# How much is looked through before it is decided anew which needles are worth looking for: a part
# of the input within these limits.
_SPAN_PART = 64
_SHORTEST_SPAN_BYTES, _LONGEST_SPAN_BYTES = 8 << 10, 256 << 10

# In a smaller input clues cost more to choose than they save.
_BRIEF_BYTES = 32 << 20


class Selection:
    """Takes the blocks of one input, or of a piece of it, and gives its reader what it needs.

    ``every_line`` is for small inputs. ``size`` is the number of bytes to come where that is known.
    ``begins`` and ``ends`` say whether the piece begins and ends the input, ``depth`` how much is
    read beyond the lines that matter.
    """

    def __init__(
        self,
        reader: LogReader,
        *,
        every_line: bool,
        size: int | None = None,
        begins: bool = True,
        ends: bool = True,
        depth: Depth = DEEPEST,
        engine: str | None = None,
    ) -> None:
        self.bytes = 0
        self.lines = 0
        self.cut_lines = 0
        self._reader = reader
        self._every_line = every_line
        self._size = size
        self._begins, self._ends = begins, ends
        self._engine = engine
        self._depth = depth
        first_look = depth.facts_lines if begins else depth.later_facts_lines
        self._budget = FactsBudget(first_look, depth.facts_lines)
        self._newlines = newlines(size)
        part = _LONGEST_SPAN_BYTES if size is None else size // _SPAN_PART
        self._span_bytes = max(_SHORTEST_SPAN_BYTES, min(part, _LONGEST_SPAN_BYTES))
        self._brief = size is not None and size > _BRIEF_BYTES
        self._scanners: dict[tuple[bool, bool], Scanner] = {}
        # Of the block at hand: its bytes, what is read whole before and after these offsets, and
        # where the input ends within a word.
        self._buffer = bytearray()
        self._head = self._tail = 0
        self._unended = -1

    def read(self, block: Block) -> None:
        """Give the reader the lines of ``block`` that it needs, in order."""
        self._buffer, size, last = block
        self._head = self._depth.edge_bytes if self._begins and not self.bytes else 0
        self._tail = size
        if last and self._ends:
            self._tail = self._buffer.rfind(b"\n", 0, max(size - self._depth.edge_bytes, 0)) + 1
        end = self._buffer[size - 1] if last and size else None
        within = end is not None and not chr(end).isspace()
        self._unended = size if self._ends and within else -1
        start = 0
        while start < size:
            stop = self._buffer.find(b"\n", min(start + self._span_bytes, size), size) + 1 or size
            self._span(start, stop)
            self.bytes += stop - start
            start = stop
        self.lines += end not in {None, 0x0A}

    def _span(self, position: int, stop: int) -> None:
        """Look through whole lines with the needles wanted at this point of the input."""
        reader = self._reader
        free = self._every_line or position < self._head or stop > self._tail
        facts = self._every_line or self._budget.wanted
        finder = self._scanner(facts=facts)
        finder.reconsider()
        starts, learned = reader.starts, reader.learned if facts else 0
        taken = 0
        if not (free or reader.open):
            position, taken = self._hurry(finder, position, stop)
        if position < stop:
            taken += self._walk(finder, position, stop)
        if facts:
            self._budget.spend(taken, reader.learned - learned, reader.known_hosts)
        if reader.starts > starts:
            self._budget.renew()

    def _walk(self, finder: Scanner, position: int, stop: int) -> int:
        """Give lines with needles, and what else is wanted; returns how many had needles."""
        buffer = self._buffer
        taken = 0
        for start, end, hits in finder.named(buffer, finder.lines(buffer, position, stop)):
            position = self._between(position, start)
            self.lines += self._newlines(buffer, position, start)
            taken += 1
            self._take(start, end, hits)
            self.lines += end < stop
            position = min(end + 1, stop)
        position = self._between(position, stop)
        self.lines += self._newlines(buffer, position, stop)
        return taken

    def _hurry(self, finder: Scanner, position: int, stop: int) -> tuple[int, int]:
        """Give lines with needles only, and not those of a flood, until a reader is open.

        Returns how far that went, and how many lines were given.
        """
        buffer, reader = self._buffer, self._reader
        taken = 0
        lines = finder.lines(buffer, position, stop)
        for start, end, hits in finder.named(buffer, reader.unmuted(buffer, lines)):
            self.lines += self._newlines(buffer, position, start)
            taken += 1
            self._take(start, end, hits)
            self.lines += end < stop
            position = min(end + 1, stop)
            if reader.open:
                return position, taken
        self.lines += self._newlines(buffer, position, stop)
        return stop, taken

    def _take(self, start: int, end: int, hits: tuple[bytes, ...]) -> None:
        if end == self._unended:
            self._reader.unended = self.lines + 1
        if end - start > LINE_LIMIT:
            self._take_long(start, end)
        else:
            self._reader.take(bytes(self._buffer[start:end]), self.lines + 1, hits)

    def _between(self, position: int, stop: int) -> int:
        """Give lines without a needle as far as they are wanted; returns where that ended."""
        buffer, reader = self._buffer, self._reader
        while position < stop:
            if not (self._every_line or position < self._head or reader.open):
                if stop <= self._tail:
                    break
                if position < self._tail:
                    self.lines += self._newlines(buffer, position, self._tail)
                    position = self._tail
            end = buffer.find(b"\n", position, stop)
            end = stop if end < 0 else end
            self._take(position, end, ())
            self.lines += end < stop
            position = min(end + 1, stop)
        return position

    def _take_long(self, start: int, end: int) -> None:
        """Give a line over the limit: each part between carriage returns, cut to the limit."""
        parts = self._buffer[start:end].replace(b"\r", b"\n")
        finder = self._scanner(facts=True)
        position = 0
        for begin, stop, named in finder.named(parts, finder.lines(parts, 0, len(parts))):
            self._take_parts(parts, position, begin)
            part, hits = bytes(parts[begin:stop]), named
            if len(part) > LINE_LIMIT:
                self.cut_lines += 1
                part = part.lstrip(b"\0")[:LINE_LIMIT]
                hits = finder.hits(part)
            if hits or self._every_line or self._reader.open:
                self._reader.take(part, self.lines + 1, hits)
            position = stop + 1
        self._take_parts(parts, position, len(parts))

    def _take_parts(self, parts: bytearray, position: int, stop: int) -> None:
        """Give parts without a needle as far as they are wanted."""
        while position < stop and (self._every_line or self._reader.open):
            end = parts.find(b"\n", position, stop)
            end = stop if end < 0 else end
            part = bytes(parts[position : min(end, position + LINE_LIMIT)])
            self.cut_lines += end - position > LINE_LIMIT
            self._reader.take(part, self.lines + 1, ())
            position = end + 1

    def _scanner(self, *, facts: bool) -> Scanner:
        """What looks for the needles wanted now."""
        calls = self._every_line or self._calls_wanted()
        known = self._scanners.get((facts, calls))
        if known is None:
            needles = self._reader.needles | (self._reader.facts if facts else frozenset())
            wanted = needles if calls else needles - _CALLS
            known = self._scanners[facts, calls] = scanner(wanted, self._engine, brief=self._brief)
        return known

    def _calls_wanted(self) -> bool:
        if self._size is None:
            return True
        first = self._begins and self.bytes < self._depth.first_calls_bytes
        return first or (self._ends and self.bytes > self._size - self._depth.last_calls_bytes)
