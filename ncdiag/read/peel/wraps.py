r"""Joins what a terminal, a pager or an editor cut into several lines.

Three marks are believed: ``$`` at the end of a record, which editors put over the first character
they cut off, ``\`` where they cut off none, and a width at which one input ends line after line, or
that of a terminal. All doubt joins nothing.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

_NARROWEST, _WIDEST = 72, 512
# How many different lines must be cut at a width, if none is longer: few at those of terminals.
_PROOF = {80: 1, 100: 2, 119: 2, 120: 1, 131: 2, 132: 1, 159: 2, 160: 1, 200: 2}
_PROOF_ELSEWHERE = 3
_ENDS = (".", ":", "!", "?", ")", "=")
_MARKS = ("$", "\\")
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

    ``begins`` tells whether a text begins as a record does, so that it continues nothing;
    ``holds`` whether a record is in it, so that it may go on.
    """

    def __init__(self, begins: Callable[[str], bool], holds: Callable[[str], bool]) -> None:
        self._begins = begins
        self._holds = holds
        self._longest = 0
        self._width: int | None = None
        self._refused = 0
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
            least = _PROOF.get(len(self._waiting[0].text), _PROOF_ELSEWHERE)
            yield from self._decide(proved=self._proved(least))
        if self._held:
            yield self._held
            self._held = None

    def _take(self, raw: Raw) -> Iterator[Raw]:
        held = self._held
        if held is not None:
            next_to_it = raw.number == self._last + 1
            if next_to_it and self._is_cut(held.text) and self._goes_on(held, raw):
                yield from self._join(held, raw)
                return
            # Two that begin alike are two records: this saves a closer look at most lines.
            candidates = next_to_it and raw.text[:2] != held.text[:2]
            if candidates and self._may_be_cut(held, raw) and self._goes_on(held, raw):
                self._held = None
                self._waiting = [held, raw]
                self._last = raw.number
                return
            self._held = None
            yield held
        yield from self._begin(raw)

    def _may_be_cut(self, held: Raw, raw: Raw) -> bool:
        length = len(held.text)
        wide = max(self._refused + 1, _NARROWEST) <= length <= _WIDEST
        return wide and len(raw.text) <= length and self._width is None

    def _begin(self, raw: Raw) -> Iterator[Raw]:
        self._last = raw.number
        length = len(raw.text)
        if self._width and length > self._width:
            self._width, self._refused = None, _WIDEST
        longest = length >= self._longest
        self._longest = max(length, self._longest)
        wide = longest and max(self._refused + 1, _NARROWEST) <= length <= _WIDEST
        if wide or self._is_cut(raw.text):
            self._held, self._parts = raw, 1
        else:
            yield raw

    def _join(self, held: Raw, raw: Raw) -> Iterator[Raw]:
        self._held = None
        self._last = raw.number
        self._parts += 1
        whole = Raw(_joined(held.text, raw.text), held.number)
        more = raw.text.endswith(_MARKS) or len(raw.text) == self._width
        if more and self._parts < _MOST_PARTS:
            self._held = whole
        else:
            yield whole

    def _is_cut(self, text: str) -> bool:
        return text.endswith(_MARKS) or (self._width is not None and len(text) >= self._width)

    def _goes_on(self, before: Raw, after: Raw) -> bool:
        return (
            bool(after.text.strip()) and not self._begins(after.text) and self._holds(before.text)
        )

    def _wait(self, raw: Raw) -> Iterator[Raw]:
        width = len(self._waiting[0].text)
        self._waiting.append(raw)
        if len(raw.text) > width:
            yield from self._decide(proved=False)
        elif len(self._waiting) % 16 == 0 and self._proved(_PROOF_ELSEWHERE):
            yield from self._decide(proved=True)
        elif len(self._waiting) >= _MOST_HELD:
            yield from self._decide(proved=False)

    def _proved(self, least: int) -> bool:
        """Whether enough records end at the width of the first and go on after it.

        Away from the widths of terminals, records that say the same count once: their length
        is the same by nature. A rest that is as wide as the record is worth another one.
        """
        width = len(self._waiting[0].text)
        cut = [
            raw.text if width in _PROOF else _DIGITS.sub("0", raw.text)
            for raw, after in pairwise(self._waiting)
            if len(raw.text) == width
            and after.number == raw.number + 1
            and not raw.text.endswith(_ENDS)
            and self._goes_on(raw, after)
        ]
        rests = {
            _DIGITS.sub("0", after.text)
            for raw, after in pairwise(self._waiting)
            if len(raw.text) == len(after.text) == width and self._goes_on(raw, after)
        }
        return len(set(cut)) + 2 * len(rests) >= least

    def _decide(self, *, proved: bool) -> Iterator[Raw]:
        """Go on from the lines that waited, with or without a width."""
        waiting, self._waiting = self._waiting, []
        width = len(waiting[0].text)
        if proved:
            self._width = width
        else:
            self._refused = width
        for raw in waiting:
            yield from self._take(raw)


def _joined(before: str, after: str) -> str:
    if not before.endswith("$"):
        return before.removesuffix("\\") + after
    cut = _CUT_WORD.search(before)
    if cut and not after[:1].isalnum():
        # The mark stands over the last letter of a word that is known.
        word = next((word for word in _WORDS if word[:-1] == cut[1]), None)
        if word:
            return before[: cut.start()] + word + after
    return before[:-1] + after
