"""Who is accused of damaged data: one case a host, and single links that no host explains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ncdiag.diagnose.blame.damage import BY_CHANCE, blame_damage
from ncdiag.diagnose.blame.parts import Part
from ncdiag.diagnose.cases import Case, Charges, nic_of
from ncdiag.diagnose.elsewhere import Elsewhere
from ncdiag.diagnose.investigate import Findings
from ncdiag.diagnose.table import Fabric, Mask
from ncdiag.model.verdict import CulpritKind, Direction


@dataclass(frozen=True, slots=True)
class _Slow:
    """Slow links by the end that they speak against, since the other one is fast with others."""

    sends: Mask
    receives: Mask


def charge_damage(found: Findings, charges: Charges) -> Charges:
    """Return ``charges`` with those for damaged data.

    A damaged link without a host to blame stands for itself, also where a host was lost since.
    What a host is slow with through its own fault goes with its damage: one culprit a host.
    """
    damaged = found.judged.damaged
    if not damaged.any():
        return charges
    fabric, slow = found.judged.table.fabric, _slow(found, charges)
    speaking = _slow_partners(fabric, charges.proven, slow)
    blamed = blame_damage(fabric, damaged & found.usable, speaking)
    made: list[Case] = []
    kept = list(charges.proven)
    for host in blamed.accused:
        own = [case for case in kept if case.host == host]
        kept = [case for case in kept if case.host != host]
        made.append(_case(fabric, host, damaged, slow, own))
    explained = np.logical_or.reduce([np.zeros_like(damaged), *(case.links for case in made)])
    return replace(
        charges,
        proven=(*made, *kept),
        single=(charges.single | damaged) & ~explained,
        unclear=charges.unclear & ~explained,
        accused=charges.accused | damaged | explained,
        doubted=blamed.doubted,
    )


def _slow(found: Findings, charges: Charges) -> _Slow:
    """Slow links that no component explains: with damage they may well have one."""
    elsewhere = Elsewhere(found)
    slow = charges.single | charges.unclear
    return _Slow(
        sends=slow & elsewhere.partner_is_fast(Direction.SEND),
        receives=slow & elsewhere.partner_is_fast(Direction.RECEIVE),
    )


def _slow_partners(fabric: Fabric, proven: Sequence[Case], slow: _Slow) -> dict[int, set[int]]:
    """With whom each host is slow through its own fault, or nobody else's."""
    found: dict[int, set[int]] = {}
    for rows, own, far in (
        (slow.sends, fabric.source, fabric.target),
        (slow.receives, fabric.target, fabric.source),
    ):
        for row in np.flatnonzero(rows).tolist():
            found.setdefault(int(own[row]), set()).add(int(far[row]))
    for case in proven:
        if case.host is not None:
            found.setdefault(case.host, set()).update(_partners(fabric, case.host, case.links))
    return found


def _partners(fabric: Fabric, host: int, links: Mask) -> set[int]:
    ends = np.concatenate((fabric.source[links], fabric.target[links]))
    return set(np.unique(ends).tolist()) - {host}


def _case(fabric: Fabric, host: int, damaged: Mask, slow: _Slow, own: Sequence[Case]) -> Case:
    sends, receives = fabric.source == host, fabric.target == host
    links = (sends & (damaged | slow.sends)) | (receives & (damaged | slow.receives))
    links = np.logical_or.reduce([links, *(case.links for case in own)])
    partners = len(_partners(fabric, host, links))
    rails = np.unique(fabric.rail[links])
    # Damage comes and goes: on one rail of several it may show by chance.
    by_chance = float(fabric.rails) ** (1 - partners) > BY_CHANCE
    is_nic = fabric.rails > 1 and len(rails) == 1 and not by_chance
    name = fabric.hosts[host]
    if (links & sends).any() and (links & receives).any():
        direction = Direction.BOTH
    else:
        direction = Direction.SEND if (links & sends).any() else Direction.RECEIVE
    return Case(
        kind=CulpritKind.NIC if is_nic else CulpritKind.HOST,
        part=Part.NIC if is_nic else Part.HOST,
        name=f"{name}:{nic_of(fabric, host, int(rails[0]))}" if is_nic else name,
        direction=direction,
        host=host,
        links=links,
        against=np.logical_or.reduce([np.zeros_like(links), *(case.against for case in own)]),
        confirmed=partners,
        unbiased=partners,
    )
