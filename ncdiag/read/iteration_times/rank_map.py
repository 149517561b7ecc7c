"""Which host and GPU a rank runs on: a line a rank, ``rank host [gpu [group]]``."""

import re
from typing import Final, NamedTuple

from ncdiag.model.errors import UsageError
from ncdiag.model.nodes import is_host_name
from ncdiag.model.text import visible

_MAX_LINES: Final = 2_000_000
_WORDS: Final = re.compile(r"[,;\s]+")


class Placed(NamedTuple):
    """Where one rank runs."""

    host: str
    gpu: str | None = None
    group: str | None = None


def read_rank_map(text: str, name: str) -> dict[int, Placed]:
    """The map in ``text``, separated by commas or blanks; ``#`` starts a comment.

    A first line that names columns is left out. Raises :class:`UsageError` with the line's number.
    """
    found: dict[int, Placed] = {}
    first = True
    for number, line in enumerate(text.splitlines()[:_MAX_LINES], start=1):
        words = [word for word in _WORDS.split(line.partition("#")[0].strip()) if word]
        if not words:
            continue
        header, first = first and not words[0].isdigit(), False
        if header:
            continue
        found_here = _placed(words)
        if found_here is None:
            raise UsageError(
                f"{visible(name)}, line {number}: {visible(line.strip()[:60])!r} is not "
                "'rank host [gpu [group]]'"
            )
        rank, placed = found_here
        if found.setdefault(rank, placed) != placed:
            raise UsageError(f"{visible(name)}, line {number}: rank {rank} stands there twice")
    return found


def _placed(words: list[str]) -> tuple[int, Placed] | None:
    number, rest = words[0], words[1:]
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return None
    if not 1 <= len(rest) <= 3 or not is_host_name(rest[0]):
        return None
    return int(number), Placed(*rest)
