"""Which host names are others' names, damaged: run into by other text, or cut off in front."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations

from ncdiag.read.peel.library import is_extended, shares_pids

# A process by its host and number.
Process = tuple[str, str]

_POINTER = re.compile(r"0x[0-9a-f]{6,16}")
_MOST_NAMESAKES = 64
# Damage is rare, and seldom twice the same.
_MOST_DAMAGED = 2
_RARE = 4
_RARER = 8


def garbled_names(
    lines: Mapping[Process, int],
    named: Collection[str],
    differ: Callable[[Process, Process], bool],
) -> dict[Process, Process]:
    """The process that is meant for each whose name is damaged.

    ``lines`` counts the lines of each, ``named`` are hosts of rank tables, ``differ`` tells two
    processes apart by what they said of themselves.
    """
    found: dict[Process, Process] = {}
    for one, other in _pairs(lines):
        if one in found or other in found:
            continue
        if {one[0], other[0]} <= set(named) or differ(one, other):
            continue
        damaged = _damaged(one, other, lines)
        if damaged:
            found[damaged] = other if damaged == one else one
    return found


def _pairs(lines: Mapping[Process, int]) -> Iterator[tuple[Process, Process]]:
    """Processes with one number of which the first has the longer name and ends in the other."""
    by_pid: dict[str, list[Process]] = {}
    for key in lines:
        by_pid.setdefault(key[1], []).append(key)
    for keys in by_pid.values():
        if len(keys) > 1:
            keys.sort(key=lambda key: len(key[0]))
            for short, long in combinations(keys[:_MOST_NAMESAKES], 2):
                ends_in_it = long[0].endswith(short[0]) or _POINTER.match(long[0])
                if short[0] and len(short[0]) < len(long[0]) and ends_in_it:
                    yield long, short


def _damaged(long: Process, short: Process, lines: Mapping[Process, int]) -> Process | None:
    """The one of two that is no name of its own, if any."""
    rarer, other = (long, short) if lines[long] <= lines[short] else (short, long)
    few, many = lines[rarer], lines[other]
    if is_extended(long[0], short[0]):
        # Both look like names.
        proved = few == 1 and many >= (_RARER if shares_pids(long[1]) else _RARE)
    elif shares_pids(long[1]):
        proved = few <= _MOST_DAMAGED and few * _RARE <= many
    else:
        # No two hosts give one number to such processes by chance.
        proved = few <= _MOST_DAMAGED or few * _RARE <= many
    return rarer if proved else None
