"""Versions of NCCL, and the ranges of them that a profile is meant for: ``>=2.18, <2.30``."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ncdiag.model.errors import UsageError

Version = tuple[int, ...]

_VERSION = re.compile(r"[vV]?(\d{1,3}(?:\.\d{1,5}){0,3})(?:[-+][\w.+-]{1,40})?", re.ASCII)
_BOUND = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d{1,5}(?:\.\d{1,5}){0,3})", re.ASCII)
_HOLDS: Final[Mapping[str, Callable[[Version, Version], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def parse_version(text: str) -> Version:
    """``2.21.5``, ``v2.21.5-1`` and ``2.21.5+cuda12.4`` are (2, 21, 5); raises UsageError."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"not a version: {text[:40]!r} (example: 2.21.5)")
    return tuple(map(int, found[1].split(".")))


def check_range(text: str) -> str:
    """``text`` if it is a range of versions; raises :class:`UsageError`."""
    if not all(_BOUND.fullmatch(part.strip()) for part in text.split(",")):
        raise UsageError(f"not a range of versions: {text[:40]!r} (example: >=2.18, <2.30)")
    return text


def in_range(version: Version, text: str) -> bool:
    """Whether ``version`` is in the range; only as many numbers count as a bound has."""
    return all(
        _HOLDS[found[1]](_padded(version, bound), bound)
        for part in text.split(",")
        if (found := _BOUND.fullmatch(part.strip()))
        for bound in [tuple(map(int, found[2].split(".")))]
    )


def join_ranges(ranges: Iterable[str | None]) -> str | None:
    """The range that holds what all of ``ranges`` hold; of several lowest versions the highest."""
    parts = {part.strip(): None for one in ranges if one for part in one.split(",")}
    lowest = [part for part in parts if part.startswith(">=")]
    highest = max(lowest, key=lambda part: parse_version(part.removeprefix(">=")), default="")
    return ", ".join(part for part in parts if part not in lowest or part == highest) or None


def _padded(version: Version, bound: Version) -> Version:
    return (version + (0,) * len(bound))[: len(bound)]
