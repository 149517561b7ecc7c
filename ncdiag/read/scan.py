"""Finds the lines that matter: one pass over a block for the needles of all readers at once.

Two engines give the same answer: hyperscan at gigabytes a second, and ``re`` where hyperscan is
missing or ``NCDIAG_SCAN=re`` is set.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ncdiag.read.clues import clues

try:
    import hyperscan
except ImportError:  # no wheel for this platform: slower, same answer
    hyperscan = None  # type: ignore[assignment]

# An event is one integer, offset and word, small enough for one digit of Python's where the part
# that is looked through is no longer than 512 KiB.
ID_BITS = 11
_ID_MASK = (1 << ID_BITS) - 1
# A clue in so many lines without its needles costs more than it saves.
_MOST_MISLED = 2_000

# A line of a block, ``block[start:end]`` without its line feed, and the numbers of its words.
HitLine = tuple[int, int, list[int]]
# Such a line with its needles.
NamedLine = tuple[int, int, tuple[bytes, ...]]


class Engine(Protocol):
    """Finds words in ``block[begin:stop]``, in order: their end behind ``begin`` << 11 | index.

    Every word of a line is reported at least once, at an offset within that line.
    """

    def __call__(self, block: bytearray, begin: int, stop: int) -> list[int]: ...  # noqa: D102


class Scanner:
    """Looks for a fixed set of needles.

    ``brief`` is for much text: what is looked for are short words, each of which may mean several
    needles, or none.
    """

    def __init__(
        self, needles: Iterable[bytes], engine: str | None = None, *, brief: bool = False
    ) -> None:
        self._needles = sorted(needles)
        if bad := [n for n in self._needles if not n or b"\n" in n or b"\0" in n]:
            raise ValueError(f"a needle is empty or holds a line feed or NUL: {bad[0]!r}")
        self._engine = engine_name(engine)
        short = brief and self._engine == "hyperscan"
        self._look_for(clues(self._needles) if short else {one: [one] for one in self._needles})

    def _look_for(self, words: dict[bytes, list[bytes]]) -> None:
        """Look for ``words`` from now on, each of which may mean one of its needles."""
        if len(words) > _ID_MASK:
            raise ValueError(f"{len(words)} needles are too many")
        self._words = list(words)
        self._meanings = list(words.values())
        self._misled = [0] * len(words)
        self._worst = 0
        self._named: dict[tuple[int, ...], tuple[bytes, ...]] = {}
        self._find = _engine(self._words, self._engine)

    def lines(self, block: bytearray, begin: int, stop: int) -> list[HitLine]:
        """The lines of ``block[begin:stop]`` that may contain a needle, in order.

        ``begin`` and ``stop`` are line starts, or the end of the block.
        """
        lines: list[HitLine] = []
        mask, bits = _ID_MASK, ID_BITS
        end = begin - 1
        for event in self._find(block, begin, stop):
            at = begin + (event >> bits)
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

    def named(self, block: bytearray, lines: Iterable[HitLine]) -> Iterator[NamedLine]:
        """Those of ``lines`` that contain a needle, with the needles; in order, one by one."""
        for start, end, found in lines:
            if names := self._names(block, start, end, found):
                yield start, end, names

    def _names(self, block: bytearray, start: int, end: int, found: list[int]) -> tuple[bytes, ...]:
        """The needles in a line, sorted, each once."""
        key = tuple(found) if len(found) == 1 else tuple(sorted(set(found)))
        named = self._named.get(key)
        if named is None:
            if all([self._words[word]] == self._meanings[word] for word in key):
                named = self._named[key] = tuple(sorted(self._words[word] for word in key))
            else:
                raw = block[start:end]
                named = tuple(sorted({one for word in key for one in self._meant(word, raw)}))
        return named

    def _meant(self, word: int, raw: bytearray) -> list[bytes]:
        """The needles that a word means in this line."""
        meant = [needle for needle in self._meanings[word] if needle in raw]
        if not meant:
            self._misled[word] += 1
            self._worst = max(self._worst, self._misled[word])
        return meant

    def reconsider(self) -> None:
        """Look for needles in place of words that mislead; no line may be left to be named."""
        if self._worst <= _MOST_MISLED:
            return
        words: dict[bytes, list[bytes]] = {}
        for word, meanings, misled in zip(self._words, self._meanings, self._misled, strict=True):
            for needle in meanings:
                kept = needle if misled > _MOST_MISLED // 2 else word
                words.setdefault(kept, []).append(needle)
        self._look_for(words)

    def hits(self, line: bytes) -> tuple[bytes, ...]:
        """The needles in one line."""
        return tuple(needle for needle in self._needles if needle in line)


@lru_cache(maxsize=8)
def scanner(
    needles: frozenset[bytes], engine: str | None = None, *, brief: bool = False
) -> Scanner:
    """A scanner, prepared once a process: every input looks for the same few sets."""
    return Scanner(needles, engine, brief=brief)


def engine_name(asked: str | None = None) -> str:
    """The engine that runs: ``hyperscan`` or ``re``."""
    asked = asked or os.environ.get("NCDIAG_SCAN", "")
    return "re" if hyperscan is None or asked == "re" else "hyperscan"


def _engine(words: Sequence[bytes], name: str) -> Engine:
    if not words:
        return lambda _block, _begin, _stop: []
    return (_ByRe if name == "re" else _ByHyperscan)(words)


class _ByHyperscan:
    """One literal database for all words; what is found is collected, then read."""

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._database = _database(needles)
        self._scratch = hyperscan.Scratch(self._database)

    def __call__(self, block: bytearray, begin: int, stop: int) -> list[int]:
        events: list[int] = []
        append = events.append

        def keep(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(end << ID_BITS | index)

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
                (start - begin + offset + len(needle)) << ID_BITS | index
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
