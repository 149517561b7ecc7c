"""Joins what a terminal, a pager or an editor cut into several lines.

Two marks are believed: ``$`` at the end of a record, which editors put over the first character
they cut off, and a width at which one input ends line after line. All doubt joins nothing.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

_NARROWEST, _WIDEST = 72, 512
# Widths of terminals: two different lines cut there are proof, elsewhere it takes three.
_TERMINALS = frozenset({79, 80, 99, 100, 119, 120, 131, 132, 159, 160, 200})
_MOST_PARTS = 32
_MOST_HELD = 256
_DIGITS = re.compile(r"[0-9a-f]*\d[0-9a-f]*", re.ASCII)
_CUT_WORD = re.compile(r"([A-Za-z]+)\$$", re.ASCII)
# Words of records that are cut most; the editor's mark hides one letter.
_WORDS = frozenset(
    {
        "Channel",
        "busId",
        "comm",
        "commId",
        "count",
        "cudaDev",
        "datatype",
        "error",
        "failed",
        "nranks",
        "nvmlDev",
        "opCount",
        "opcode",
        "peer",
        "rank",
        "recvbuff",
        "root",
        "sendbuff",
        "status",
        "stream",
        "vendor",
    }
)


class Raw(NamedTuple):
    """A raw line as text, and its number."""

    text: str
    number: int


class Joiner:
    """Takes raw lines in order and gives back whole ones.

    ``begins`` tells whether a text begins as a record does, so that it continues nothing.
    """

    def __init__(self, begins: Callable[[str], bool]) -> None:
        self._begins = begins
        self._longest = 0
        self._width: int | None = None
        self._given_up = False
        self._held: Raw | None = None
        self._parts = 0
        self._last = 0
        self._waiting: list[Raw] = []

    def passes(self, raw: Raw) -> bool:
        """Whether ``raw`` is whole for sure, as most lines are; else it is to be pushed."""
        length = len(raw.text)
        if self._held or self._waiting or length >= self._longest or self._is_cut(raw.text):
            return False
        self._last = raw.number
        return True

    def push(self, raw: Raw) -> Iterator[Raw]:
        """The lines that are whole now."""
        if self._waiting:
            yield from self._wait(raw)
        else:
            yield from self._take(raw)

    def finish(self) -> Iterator[Raw]:
        """What was held back."""
        if self._waiting:
            yield from self._decide(proved=self._proved(last=True))
        if self._held:
            yield self._held
            self._held = None

    def _take(self, raw: Raw) -> Iterator[Raw]:
        held = self._held
        if held is not None:
            follows = self._follows(held, raw)
            if follows and self._is_cut(held.text):
                yield from self._join(held, raw)
                return
            if follows and len(raw.text) <= len(held.text) and not self._given_up:
                self._held = None
                self._waiting = [held, raw]
                self._last = raw.number
                return
            self._held = None
            yield held
        yield from self._begin(raw)

    def _begin(self, raw: Raw) -> Iterator[Raw]:
        self._last = raw.number
        length = len(raw.text)
        if self._width and length > self._width:
            self._width, self._given_up = None, True
        longest = length >= self._longest
        self._longest = max(length, self._longest)
        may_be_cut = longest and not self._given_up and _NARROWEST <= length <= _WIDEST
        if may_be_cut or self._is_cut(raw.text):
            self._held, self._parts = raw, 1
        else:
            yield raw

    def _join(self, held: Raw, raw: Raw) -> Iterator[Raw]:
        self._held = None
        self._last = raw.number
        self._parts += 1
        whole = Raw(_joined(held.text, raw.text), held.number)
        more = raw.text.endswith("$") or len(raw.text) == self._width
        if more and self._parts < _MOST_PARTS:
            self._held = whole
        else:
            yield whole

    def _is_cut(self, text: str) -> bool:
        return text.endswith("$") or (self._width is not None and len(text) >= self._width)

    def _follows(self, held: Raw, raw: Raw) -> bool:
        """Whether ``raw`` may be the rest of ``held``; two that begin alike are two records."""
        alike = raw.text[:2] == held.text[:2]
        next_to_it = raw.number == self._last + 1 and not alike
        return next_to_it and self._continues(raw.text) and self._begins(held.text)

    def _continues(self, text: str) -> bool:
        return bool(text.strip()) and not self._begins(text)

    def _wait(self, raw: Raw) -> Iterator[Raw]:
        width = len(self._waiting[0].text)
        self._waiting.append(raw)
        if len(raw.text) > width:
            yield from self._decide(proved=False)
        elif len(self._waiting) % 16 == 0 and self._proved(last=False):
            yield from self._decide(proved=True)
        elif len(self._waiting) >= _MOST_HELD:
            self._given_up = True
            yield from self._decide(proved=False)

    def _proved(self, *, last: bool) -> bool:
        """Whether different records end at the width of the first and go on after it."""
        width = len(self._waiting[0].text)
        cut = {
            _DIGITS.sub("0", raw.text)
            for raw, after in pairwise(self._waiting)
            if len(raw.text) == width
            and after.number == raw.number + 1
            and self._begins(raw.text)
            and self._continues(after.text)
        }
        return len(cut) >= (2 if last and width in _TERMINALS else 3)

    def _decide(self, *, proved: bool) -> Iterator[Raw]:
        """Go on from the lines that waited, with or without a width."""
        waiting, self._waiting = self._waiting, []
        given_up = self._given_up
        if proved:
            self._width = len(waiting[0].text)
        else:
            self._given_up = True
        for raw in waiting[:-1]:
            yield from self._take(raw)
        self._given_up = given_up
        yield from self._take(waiting[-1])


def _joined(before: str, after: str) -> str:
    if not before.endswith("$"):
        return before + after
    cut = _CUT_WORD.search(before)
    if cut and not after[:1].isalnum():
        # The mark stands over the last letter of a word that is known.
        word = next((word for word in _WORDS if word[:-1] == cut[1]), None)
        if word:
            return before[: cut.start()] + word + after
    return before[:-1] + after
