"""Slurm's lists of names (``rack[1-4]n[01-16],login1``), expanded within a budget."""

import math
import re
from collections.abc import Iterator
from itertools import product

from ncdiag.model.topology import NotATopologyError, TruncatedTopologyError
from ncdiag.read.topology.text import quoted

# Slurm's own limit of nodes is 65,536 (MAX_SLURM_NODES in old releases); nobody has more.
MAX_NAMES = 1_000_000
_MAX_NAME_CHARS = 255
_MAX_DIGITS = 9

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class Names:
    """Expands lists of one file; all of them together may name ``MAX_NAMES`` things."""

    def __init__(self) -> None:
        self._left = MAX_NAMES

    def expand(self, text: str) -> tuple[str, ...]:
        """The names of a list, each once, in its order.

        Raises :class:`NotATopologyError` for what is no list, or too long a one, and
        :class:`TruncatedTopologyError` for a list whose bracket is never closed.
        """
        found: dict[str, None] = {}
        for part in _parts(text):
            found.update(dict.fromkeys(self._expand_part(part)))
        return tuple(found)

    def _expand_part(self, part: str) -> Iterator[str]:
        pieces = _BRACKETS.split(part)
        texts, groups = pieces[::2], [_numbers(inside, part) for inside in pieces[1::2]]
        if any({"[", "]"} & set(text) for text in texts):
            raise NotATopologyError(f"no list of names: {quoted(part)}")
        count = math.prod(sum(len(one) for one, _ in group) for group in groups)
        length = sum(map(len, texts)) + len(groups) * _MAX_DIGITS
        if length > _MAX_NAME_CHARS:
            raise NotATopologyError(f"a name of more than {_MAX_NAME_CHARS} characters")
        self._left -= count
        if self._left < 0:
            raise NotATopologyError(f"more than {MAX_NAMES:,} names, at {quoted(part)}")
        written = [[f"{n:0{width}d}" for one, width in group for n in one] for group in groups]
        for combination in product(*written):
            yield texts[0] + "".join(a + b for a, b in zip(combination, texts[1:], strict=True))


def is_open(text: str) -> bool:
    """Whether a bracket of ``text`` is not closed."""
    return text.rfind("[") > text.rfind("]")


def _parts(text: str) -> Iterator[str]:
    """Parts a list at the commas outside of brackets."""
    if is_open(text):
        raise TruncatedTopologyError(f"cut short: an open bracket in {quoted(text[-60:])}")
    start = depth = 0
    for place, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            yield from filter(None, (text[start:place].strip(),))
            start = place + 1
    yield from filter(None, (text[start:].strip(),))


def _numbers(inside: str, part: str) -> list[tuple[range, int]]:
    """The numbers of one bracket: ranges, each with the digits its numbers are written with."""
    found = []
    for text in inside.split(","):
        match = _RANGE.fullmatch(text.strip())
        if match is None or max(len(match[1]), len(match[2] or "")) > _MAX_DIGITS:
            raise NotATopologyError(f"no list of names: {quoted(part)}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise NotATopologyError(f"a range that counts down: {quoted(part)}")
        found.append((range(first, last + 1), len(match[1])))
    return found
