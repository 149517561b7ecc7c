"""What a slow link's hosts and switches do elsewhere: without that, nobody can tell which is slow.

A link whose sender was measured nowhere else is as likely the sender. So a link is accused by
itself only if all it runs through is fast with others, and a host only if its partners are.
"""

import numpy as np

from ncdiag.diagnose.blame import Part, Rule
from ncdiag.diagnose.blame.parts import Family, families
from ncdiag.diagnose.investigate import Findings
from ncdiag.diagnose.table import Ints, Mask
from ncdiag.model.verdict import Direction


class Elsewhere:
    """Tells of each link what else runs through the same parts, and is clearly faster."""

    def __init__(self, found: Findings) -> None:
        judged = found.judged
        fabric = judged.table.fabric
        self._share = judged.sticks.ratio if found.fleet.any() else judged.sticks.share
        # Slow too, but known why: a part that lets more through there does not hold this link up.
        explained = np.logical_or.reduce([found.fleet, *(one.links for one in found.suspects)])
        known = found.usable & ~np.isnan(self._share)
        self._clear = judged.clear & known
        self._telling = self._clear | ((judged.degraded | explained) & known)
        self._families = [
            one
            for one in families(fabric)
            # A path between two leaves is what a link between them is accused for.
            if one.part is not Part.LEAF_PAIR
        ]
        self._sends, self._receives = (
            self._faster(end * fabric.rails + fabric.rail) for end in (fabric.source, fabric.target)
        )

    def acquits_the_rest(self) -> Mask:
        """Return the links of which every part is fast elsewhere: only the path is left."""
        found: Mask = np.logical_and.reduce(
            [self._sends, self._receives, *map(self._passes, self._families)]
        )
        return found

    def partner_is_fast(self, direction: Direction) -> Mask:
        """Return the links whose far end, as seen from ``direction``, is fast with others."""
        return self._receives if direction is Direction.SEND else self._sends

    def _passes(self, family: Family) -> Mask:
        found: Mask = self._faster(family.group) | (family.group < 0)
        return found

    def _faster(self, group: Ints) -> Mask:
        """Return the links in whose group another is clear, or faster than any spread explains."""
        size = int(group.max(initial=-1)) + 1
        best, clear = np.full(size + 1, -np.inf), np.zeros(size + 1, dtype=bool)
        telling = self._telling & (group >= 0)
        np.maximum.at(best, group[telling], self._share[telling])
        clear[group[self._clear & (group >= 0)]] = True
        found: Mask = clear[group] | (best[group] > Rule().high * self._share)
        return found & (group >= 0)
