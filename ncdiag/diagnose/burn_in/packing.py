"""Which leaves to take so many hosts from: as few as there can be, and as whole as possible."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# Leaves, times leaves taken, times hosts: what is tried exactly within a fraction of a second, as
# for 4,000 hosts under 128 leaves.
EXACT_STEPS: Final = 60_000_000
_NEVER: Final = np.iinfo(np.int32).max


def fewest_leaves(sizes: Sequence[int], hosts: int) -> int:
    """How many leaves of these sizes hold ``hosts`` at the least; all of them if none do."""
    held = 0
    for number, size in enumerate(sorted(sizes, reverse=True), start=1):
        held += size
        if held >= hosts:
            return number
    return len(sizes)


def choose_leaves(sizes: Sequence[int], first: int, all_: int) -> tuple[int, ...]:
    """Places in ``sizes``, the largest first, of the leaves to take ``all_`` hosts from.

    Nothing can hold ``all_`` hosts with fewer leaves, nor ``first`` hosts with fewer than the first
    of these do: both hold for any size of fleet, as taking the largest leaves attains both. Of the
    sets of leaves that do, the one with the fewest hosts left over is taken, so that leaves are
    used whole; where trying all would take long, the left-over is what swapping one leaf after the
    other for the smallest that will do leaves: less than the largest leaf holds. Of leaves of one
    size those that stand first in ``sizes`` are taken.
    """
    order = sorted(range(len(sizes)), key=lambda place: (-sizes[place], place))
    falling = [sizes[place] for place in order]
    first = min(first, sum(falling))
    all_ = min(max(first, all_), sum(falling))
    if all_ <= 0:
        return ()
    taken, of_first = fewest_leaves(falling, all_), fewest_leaves(falling, first)
    if len(falling) * taken * (all_ + falling[0]) <= EXACT_STEPS:
        chosen = _exact(falling, first, all_, taken, of_first)
    else:
        chosen = _swapped(falling, first, all_, taken, of_first)
    return tuple(order[place] for place in chosen)


def _exact(falling: list[int], first: int, all_: int, taken: int, of_first: int) -> list[int]:
    """The places of the ``taken`` leaves that hold least but enough.

    ``reached[n, s]`` is the leaf with which n leaves first held s hosts. Leaves come in falling
    size, so that the first of a set are its largest: those must hold ``first`` hosts.
    """
    most = all_ + falling[0]  # with more than this a leaf could be left out
    reached: NDArray[np.int32] = np.full((taken + 1, most), _NEVER, np.int32)
    reached[0, 0] = -1
    for place, size in enumerate(falling):
        new = np.zeros((taken, most), np.bool_)
        new[:, size:] = reached[:-1, : most - size] != _NEVER
        new &= reached[1:] == _NEVER
        if of_first:
            new[of_first - 1, :first] = False
        reached[1:][new] = place
    held = all_ + int(np.argmax(reached[taken, all_:] != _NEVER))
    chosen: list[int] = []
    for number in range(taken, 0, -1):
        place = int(reached[number, held])
        chosen.append(place)
        held -= falling[place]
    return chosen[::-1]


def _swapped(falling: list[int], first: int, all_: int, taken: int, of_first: int) -> list[int]:
    """The largest leaves, each from the smallest on swapped for a smaller one that will do."""
    chosen = list(range(taken))
    spare = sum(falling[:taken]) - all_
    spare_of_first = sum(falling[:of_first]) - first
    free = len(falling) - 1  # the smallest leaf that is not taken yet
    for number in range(taken - 1, -1, -1):
        room = spare if number >= of_first else min(spare, spare_of_first)
        least = falling[chosen[number]] - room
        while free >= taken and falling[free] < least:
            free -= 1
        if free < taken or not room or falling[free] >= falling[chosen[number]]:
            continue
        saved = falling[chosen[number]] - falling[free]
        spare -= saved
        spare_of_first -= saved if number < of_first else 0
        chosen[number] = free
        free -= 1
    return sorted(chosen)
