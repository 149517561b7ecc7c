"""Which components could explain the slow links that nothing explains yet."""

from dataclasses import dataclass

import numpy as np

from ncdiag.diagnose.blame.parts import Family, Part
from ncdiag.diagnose.table import Fabric, Floats, Ints, Mask
from ncdiag.diagnose.yardstick import upper_quantile
from ncdiag.model.verdict import Direction

# Different ends a component must slow down before it is suspected at all, and for a rail the
# hosts it must do so for: on two hosts it cannot be told from their NICs.
_PARTNERS = 2
_RAIL_HOSTS = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """What counts as an explanation.

    A component has one rate: the upper quartile of the slow links through it. It explains links
    from ``low`` to ``high`` times that rate; slower ones need another explanation as well, faster
    ones speak against it. The defaults allow for a spread of 5 % in a few hundred links. More than
    the share ``contradictions`` of what speaks for or against it acquits it: one link in twenty
    may be a mishap, in a small fleet none. At least the share ``majority`` of its links is slow.
    """

    low: float = 0.75
    high: float = 1.3
    contradictions: float = 0.05
    majority: float = 0.5


@dataclass(frozen=True, slots=True)
class Observed:
    """The links as blame sees them: share of the yardstick (``nan`` unknown) and what it means."""

    fabric: Fabric
    families: list[Family]
    share: Floats
    slow: Mask
    clear: Mask
    confirmed: Mask


@dataclass(frozen=True, slots=True)
class Proposals:
    """Viable components for the links ``rows``; numbers run through all families.

    ``by[row, family]`` is the number of the component that explains the row, or -1.
    ``thin`` components hang on one host at one end, and are only good to cast doubt on that host.
    """

    rows: Ints
    by: Ints
    offsets: Ints
    rate: Floats
    thin: Mask

    def family_of(self, number: int) -> int:
        """Return the place of the family that component ``number`` belongs to."""
        return int(np.searchsorted(self.offsets, number, side="right")) - 1


def propose(seen: Observed, remaining: Mask, rule: Rule) -> Proposals:
    """Find every component that is viable for some of the ``remaining`` links."""
    offsets = np.cumsum([0, *(family.groups for family in seen.families)])
    rate = np.full(offsets[-1], np.nan)
    thin = np.zeros(offsets[-1], dtype=bool)
    columns = []
    for family, offset in zip(seen.families, offsets, strict=False):
        part = slice(offset, offset + family.groups)
        explained, rate[part], thin[part] = _viable(seen, family, remaining, rule)
        columns.append(np.where(explained, family.group + offset, -1))
    by = np.stack(columns, axis=1)
    rows = np.flatnonzero((by >= 0).any(axis=1))
    return Proposals(rows=rows, by=by[rows], offsets=offsets, rate=rate, thin=thin)


def explained_at(seen: Observed, links: Mask, rate: Floats | float, rule: Rule) -> Mask:
    """Return which slow ``links`` a component of this ``rate`` accounts for."""
    fits = (seen.share >= rule.low * rate) & (seen.share <= rule.high * rate)
    found: Mask = links & seen.slow & fits
    return found


def _viable(
    seen: Observed, family: Family, remaining: Mask, rule: Rule
) -> tuple[Mask, Floats, Mask]:
    """Return the links that viable groups explain, the groups' rates, and which are thin."""
    size, member = family.groups, family.group >= 0
    mine = remaining & member
    rate, no_link = np.full(size, np.nan), np.zeros(size, dtype=bool)
    if not mine.any():
        return np.zeros_like(mine), rate, no_link
    rate[np.unique(family.group[mine])] = upper_quantile(family.group[mine], seen.share[mine])
    rate_of_link = np.where(member, rate[family.group], np.nan)
    explained = explained_at(seen, mine, rate_of_link, rule)
    against = member & ~explained & (seen.clear | (seen.share > rule.high * rate_of_link))

    def count(mask: Mask) -> Ints:
        return np.bincount(family.group[mask & member], minlength=size)

    def acquitted(links: Mask) -> Mask:
        speaking = count(links & (explained | against))
        found: Mask = count(links & against) > np.floor(rule.contradictions * speaking)
        return found

    viable = ~acquitted(member) & ~acquitted(seen.confirmed)
    if family.part is Part.LEAF:
        # What tells a leaf from its uplink are the few links inside it.
        viable &= ~acquitted(
            seen.fabric.leaf[seen.fabric.source] == seen.fabric.leaf[seen.fabric.target]
        )
    viable &= count(seen.slow) >= rule.majority * count(~np.isnan(seen.share))
    # Links that are slower still, for whatever reason, also run through a slow switch.
    through = member & seen.slow & (seen.share <= rule.high * rate_of_link)
    enough, thin = _ends(seen.fabric, family, explained if family.part.is_host else through)
    viable &= enough | thin
    return explained & viable[family.group], rate, thin & ~enough


def _ends(fabric: Fabric, family: Family, slow: Mask) -> tuple[Mask, Mask]:
    """Return which groups slow down enough different ends, and which do so on one side only."""
    sources = distinct(family, slow, fabric.source, len(fabric.hosts))
    targets = distinct(family, slow, fabric.target, len(fabric.hosts))
    nobody = np.zeros(family.groups, dtype=bool)
    if family.part.is_host:
        partners = targets if family.direction is Direction.SEND else sources
        return partners >= _PARTNERS, nobody
    if family.part is Part.RAIL:
        return np.minimum(sources, targets) >= _RAIL_HOSTS, nobody
    return (
        np.minimum(sources, targets) >= _PARTNERS,
        np.maximum(sources, targets) >= _PARTNERS,
    )


def distinct(family: Family, links: Mask, ends: Ints, hosts: int) -> Ints:
    """Count the different ``ends`` among each group's ``links``."""
    links = links & (family.group >= 0)
    pairs = np.unique(family.group[links] * hosts + ends[links])
    return np.bincount(pairs // hosts, minlength=family.groups)
