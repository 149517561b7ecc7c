"""The components that can be blamed, as families that each cut the links into groups."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ncdiag.diagnose.table import Fabric, Ints, Mask
from ncdiag.model.verdict import Direction


class Part(IntEnum):
    """What a group of links has in common, the more specific first."""

    NIC = 0
    HOST = 1
    LEAF_PAIR = 2
    UPLINK = 3
    LEAF = 4
    RAIL = 5

    @property
    def is_host(self) -> bool:
        """Whether one host answers for it."""
        return self <= Part.HOST


@dataclass(frozen=True, slots=True)
class Family:
    """All components of one kind in one direction; ``group`` is -1 for links of none of them."""

    part: Part
    direction: Direction
    group: Ints

    @property
    def groups(self) -> int:
        """Upper bound of the group numbers."""
        return int(self.group.max(initial=-1)) + 1


def families(fabric: Fabric) -> list[Family]:
    """Every family that this fabric can be cut by.

    A leaf with one host inside or outside cannot be told from that host, so the host stands for
    both; a leaf with all hosts is the fleet.
    """
    ends = (Direction.SEND, fabric.source), (Direction.RECEIVE, fabric.target)
    found = []
    if fabric.rails > 1:
        found += [
            Family(Part.NIC, direction, end * fabric.rails + fabric.rail) for direction, end in ends
        ]
    found += [Family(Part.HOST, direction, end) for direction, end in ends]
    found += _switches(fabric)
    if fabric.rails > 1:
        found.append(Family(Part.RAIL, Direction.BOTH, fabric.rail))
    return found


def _switches(fabric: Fabric) -> list[Family]:
    """Leaves, their uplinks, and pairs of leaves (which stand for a spine's path too)."""
    shared = _shared_leaf(fabric)
    source, target = shared[fabric.source], shared[fabric.target]
    if (shared < 0).all():
        return []
    crossing = fabric.leaf[fabric.source] != fabric.leaf[fabric.target]
    known = (fabric.leaf[fabric.source] >= 0) & (fabric.leaf[fabric.target] >= 0)
    pair = np.where(
        crossing & (source >= 0) & (target >= 0), source * len(fabric.leaves) + target, -1
    )
    return [
        Family(Part.LEAF_PAIR, Direction.SEND, pair),
        Family(Part.UPLINK, Direction.SEND, _where(known & crossing, source)),
        Family(Part.UPLINK, Direction.RECEIVE, _where(known & crossing, target)),
        Family(Part.LEAF, Direction.SEND, source),
        Family(Part.LEAF, Direction.RECEIVE, target),
    ]


def _shared_leaf(fabric: Fabric) -> Ints:
    """Return the leaf of each host, -1 where one host is alone inside it or outside it."""
    known = fabric.leaf[fabric.leaf >= 0]
    members = np.bincount(known, minlength=len(fabric.leaves) + 1)[fabric.leaf]
    return _where((members > 1) & (members < len(fabric.hosts) - 1), fabric.leaf)


def _where(mask: Mask, numbers: Ints) -> Ints:
    return np.where(mask, numbers, -1)
