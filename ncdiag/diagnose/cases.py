"""Suspects brought together: one case a component, under the name an operator knows."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ncdiag.diagnose.blame import Part, Suspect
from ncdiag.diagnose.elsewhere import Elsewhere
from ncdiag.diagnose.investigate import Findings, pair_count, share_a_host
from ncdiag.diagnose.table import Fabric, Mask
from ncdiag.model.verdict import CulpritKind, Direction

# Partners (hosts) or pairs (the rest) that must be slow in quiet too before anybody is accused.
_CONFIRMED = 2
_KINDS = {
    Part.NIC: CulpritKind.NIC,
    Part.HOST: CulpritKind.HOST,
    Part.LEAF_PAIR: CulpritKind.SWITCH,
    Part.UPLINK: CulpritKind.SWITCH,
    Part.LEAF: CulpritKind.SWITCH,
    Part.RAIL: CulpritKind.RAIL,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One component with all that was found against it; ``host`` is the host that answers for it.

    ``confirmed`` counts partners (for a host) or pairs that were slow in quiet too; ``unbiased``
    those of them that are not the slow ones themselves: partners that are fast with others, and
    pairs unless one host is in all of them.
    """

    kind: CulpritKind
    part: Part
    name: str
    direction: Direction
    host: int | None
    links: Mask
    against: Mask
    confirmed: int
    unbiased: int

    @property
    def proven(self) -> bool:
        """Whether enough was measured, of it in quiet and of its partners, to accuse anybody."""
        return self.was_repeated and self.unbiased >= _CONFIRMED

    @property
    def was_repeated(self) -> bool:
        """Whether enough of it was measured again in quiet."""
        return self.confirmed >= _CONFIRMED


@dataclass(frozen=True, slots=True)
class Charges:
    """Who is accused, for what.

    ``unproven`` cases accuse nobody: too little of them was measured again in quiet, or too little
    of their partners. ``fleet`` says that everything is slow alike. ``single`` are slow links
    without a component to blame, though all they run through is fast with others; where that is
    not known they are ``unclear``, and accuse nobody. ``accused`` are all links that anything is
    blamed for. ``doubted`` hosts have part in damaged data, as others have that may be the cause.
    """

    proven: tuple[Case, ...]
    unproven: tuple[Case, ...]
    fleet: bool
    single: Mask
    unclear: Mask
    accused: Mask
    doubted: frozenset[int] = frozenset()


def charge(found: Findings, *, two_hosts: bool = False) -> Charges:
    """Decide which findings are proven; a slow link of an unproven one stands for itself.

    Of ``two_hosts`` each link is all that there is to accuse.
    """
    judged = found.judged
    elsewhere = Elsewhere(found)
    every = cases(found, elsewhere)
    proven = tuple(case for case in every if case.proven)
    unproven = tuple(case for case in every if not case.proven)
    quiet = np.flatnonzero(found.fleet & judged.confirmed)
    fabric = judged.table.fabric
    fleet = pair_count(fabric, quiet) >= _CONFIRMED and not share_a_host(fabric, quiet)
    explained = np.logical_or.reduce([found.fleet & fleet, *(case.links for case in proven)])
    single = np.logical_or.reduce([found.single, found.fleet, *(case.links for case in unproven)])
    # A lone degraded link is listed, but one path of many that is some per cent off is no culprit.
    single &= judged.confirmed & judged.faulty & ~explained
    unclear = np.zeros_like(single) if two_hosts else single & ~elsewhere.acquits_the_rest()
    single &= ~unclear
    return Charges(
        proven=proven,
        unproven=unproven,
        fleet=fleet,
        single=single,
        unclear=unclear,
        accused=explained | single,
    )


def cases(found: Findings, elsewhere: Elsewhere) -> list[Case]:
    """Bring suspects of the same component together, whatever the direction."""
    fabric = found.judged.table.fabric
    whole = _hosts_slow_on_all_nics(fabric, found.suspects)
    merged: dict[tuple[CulpritKind, str], list[Suspect]] = {}
    for suspect in found.suspects:
        host = host_of(fabric, suspect)
        if suspect.family.part is Part.NIC and (host, suspect.family.direction) in whole:
            key = CulpritKind.HOST, fabric.hosts[host or 0]
        else:
            key = _KINDS[suspect.family.part], name_of(fabric, suspect)
        merged.setdefault(key, []).append(suspect)
    return [_case(found, elsewhere, *key, suspects) for key, suspects in merged.items()]


def _case(
    found: Findings, elsewhere: Elsewhere, kind: CulpritKind, name: str, suspects: list[Suspect]
) -> Case:
    fabric, judged = found.judged.table.fabric, found.judged
    directions = {_direction(fabric, suspect) for suspect in suspects}
    links = np.logical_or.reduce([suspect.links for suspect in suspects])
    host = host_of(fabric, suspects[0])
    repeated = [suspect.links & judged.confirmed for suspect in suspects]
    rows = np.flatnonzero(links & judged.confirmed)
    pairs = pair_count(fabric, rows)
    several = 0 if share_a_host(fabric, np.flatnonzero(links)) else pairs
    unbiased = [
        slow & elsewhere.partner_is_fast(suspect.family.direction)
        for suspect, slow in zip(suspects, repeated, strict=True)
    ]
    return Case(
        kind=kind,
        part=max(suspect.family.part for suspect in suspects),
        name=name,
        direction=directions.pop() if len(directions) == 1 else Direction.BOTH,
        host=host,
        links=links,
        against=np.logical_or.reduce([suspect.against for suspect in suspects]),
        confirmed=pairs if host is None else _partners(fabric, suspects, repeated),
        unbiased=several if host is None else _partners(fabric, suspects, unbiased),
    )


def _partners(fabric: Fabric, suspects: list[Suspect], links: list[Mask]) -> int:
    """Count the hosts at the other end, whatever the direction."""
    ends = [
        fabric.target[rows] if suspect.family.direction is Direction.SEND else fabric.source[rows]
        for suspect, rows in zip(suspects, links, strict=True)
    ]
    return len(np.unique(np.concatenate(ends)))


def host_of(fabric: Fabric, suspect: Suspect) -> int | None:
    """Return the number of the host that answers for ``suspect``, ``None`` for switches."""
    if suspect.family.part is Part.NIC:
        return suspect.group // fabric.rails
    return suspect.group if suspect.family.part is Part.HOST else None


def _hosts_slow_on_all_nics(
    fabric: Fabric, suspects: Iterable[Suspect]
) -> set[tuple[int | None, Direction]]:
    """Return host and direction of which every NIC is suspected: that is the host."""
    rails: dict[tuple[int | None, Direction], set[int]] = {}
    for suspect in suspects:
        if suspect.family.part is Part.NIC:
            key = host_of(fabric, suspect), suspect.family.direction
            rails.setdefault(key, set()).add(suspect.group % fabric.rails)
    return {key for key, found in rails.items() if len(found) == fabric.rails}


def name_of(fabric: Fabric, suspect: Suspect) -> str:
    """Return what an operator calls the component."""
    part, group = suspect.family.part, suspect.group
    if part is Part.NIC:
        host, rail = divmod(group, fabric.rails)
        return f"{fabric.hosts[host]}:{nic_of(fabric, host, rail)}"
    if part is Part.HOST:
        return fabric.hosts[group]
    if part is Part.RAIL:
        return str(group)
    groups = sorted({group, *suspect.rivals})
    if part is Part.LEAF_PAIR:
        size = len(fabric.leaves)
        groups = sorted({end for one in groups for end in divmod(one, size)})
    return "|".join(fabric.leaves[leaf] for leaf in groups)


def nic_of(fabric: Fabric, host: int, rail: int) -> str:
    """``eth1``, or ``rail1`` where the NIC's name is not known."""
    nics = fabric.nics[host]
    return nics[rail] if rail < len(nics) else f"rail{rail}"


def _direction(fabric: Fabric, suspect: Suspect) -> Direction:
    """Return the direction as seen from the component (of two leaves: from the first named)."""
    if suspect.family.part is not Part.LEAF_PAIR:
        return suspect.family.direction
    source, target = divmod(suspect.group, len(fabric.leaves))
    return Direction.SEND if source < target else Direction.RECEIVE
