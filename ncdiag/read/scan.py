"""Finds the lines that matter: one pass over a block for the needles of all readers at once.

Two engines give the same answer: hyperscan at gigabytes a second, and ``re`` where hyperscan is
missing or ``NCDIAG_SCAN=re`` is set.
"""

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Protocol

try:
    import hyperscan
except ImportError:  # no wheel for this platform: slower, same answer
    hyperscan = None  # type: ignore[assignment]

# An event is one integer, offset and needle, so that sorting them is cheap.
ID_BITS = 16
_ID_MASK = (1 << ID_BITS) - 1


# A line of a block, ``block[start:end]`` without its line feed, and the numbers of its needles.
HitLine = tuple[int, int, list[int]]


class Engine(Protocol):
    """Finds needles in ``block[begin:stop]``: (end offset << 16 | needle's index), in order.

    Every needle of a line is reported at least once, at an offset within that line.
    """

    def __call__(self, block: bytearray, begin: int, stop: int) -> list[int]: ...  # noqa: D102


class Scanner:
    """Looks for a fixed set of needles."""

    def __init__(self, needles: Iterable[bytes], engine: str | None = None) -> None:
        self._needles = sorted(needles)
        if bad := [n for n in self._needles if not n or b"\n" in n or b"\0" in n]:
            raise ValueError(f"a needle is empty or holds a line feed or NUL: {bad[0]!r}")
        self._find = _engine(self._needles, engine)
        self._named: dict[tuple[int, ...], tuple[bytes, ...]] = {}

    def lines(self, block: bytearray, begin: int, stop: int) -> list[HitLine]:
        """The lines of ``block[begin:stop]`` that contain a needle, in order.

        ``begin`` and ``stop`` are line starts, or the end of the block.
        """
        lines: list[HitLine] = []
        mask, bits = _ID_MASK, ID_BITS
        end = begin - 1
        for event in self._find(block, begin, stop):
            at = event >> bits
            if at > end:
                start = block.rfind(b"\n", begin, at) + 1 or begin
                end = block.find(b"\n", at, stop)
                if end < 0:
                    end = stop
                found = [event & mask]
                lines.append((start, end, found))
            else:
                found.append(event & mask)
        return lines

    def names(self, found: list[int]) -> tuple[bytes, ...]:
        """The needles found in a line, sorted, each once."""
        key = tuple(found) if len(found) == 1 else tuple(sorted(set(found)))
        named = self._named.get(key)
        if named is None:
            named = self._named[key] = tuple(self._needles[index] for index in key)
        return named

    def hits(self, line: bytes) -> tuple[bytes, ...]:
        """The needles in one line."""
        return tuple(needle for needle in self._needles if needle in line)


@lru_cache(maxsize=8)
def scanner(needles: frozenset[bytes], engine: str | None = None) -> Scanner:
    """A scanner, prepared once a process: every input looks for the same few sets."""
    return Scanner(needles, engine)


def engine_name(asked: str | None = None) -> str:
    """The engine that runs: ``hyperscan`` or ``re``."""
    asked = asked or os.environ.get("NCDIAG_SCAN", "")
    return "re" if hyperscan is None or asked == "re" else "hyperscan"


def _engine(needles: Sequence[bytes], asked: str | None) -> Engine:
    if not needles:
        return lambda _block, _begin, _stop: []
    return (_ByRe if engine_name(asked) == "re" else _ByHyperscan)(needles)


class _ByHyperscan:
    """One literal database for all needles; what is found is collected, then read."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._database = _database(needles)
        self._scratch = hyperscan.Scratch(self._database)

    def __call__(self, block: bytearray, begin: int, stop: int) -> list[int]:
        events: list[int] = []
        append = events.append

        def keep(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(begin + end << ID_BITS | index)

        with memoryview(block) as whole, whole[begin:stop] as part:
            self._database.scan(part, match_event_handler=keep, scratch=self._scratch)
        events.sort()
        return events


def _database(needles: Sequence[bytes]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=needles,
        ids=list(range(len(needles))),
        elements=len(needles),
        flags=0,
        literal=True,
    )
    return database


class _ByRe:
    """One alternation finds the lines, then each needle is looked for in those lines."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._needles = needles
        self._any = _alternation(needles)

    def __call__(self, block: bytearray, begin: int, stop: int) -> list[int]:
        events: list[int] = []
        at = begin
        while found := self._any.search(block, at, stop):
            start = block.rfind(b"\n", at, found.end()) + 1 or at
            end = block.find(b"\n", found.end(), stop)
            end = stop if end < 0 else end
            line = bytes(block[start:end])
            events += sorted(
                (start + offset + len(needle)) << ID_BITS | index
                for index, needle in enumerate(self._needles)
                if (offset := line.find(needle)) >= 0
            )
            at = end
        return events


def _alternation(needles: Sequence[bytes]) -> re.Pattern[bytes]:
    """Needles grouped by their first byte: fewer branches to try at each offset."""
    groups: dict[bytes, list[bytes]] = {}
    for needle in needles:
        groups.setdefault(needle[:1], []).append(re.escape(needle[1:]))
    branches = (re.escape(head) + b"(?:" + b"|".join(rest) + b")" for head, rest in groups.items())
    return re.compile(b"|".join(branches))
