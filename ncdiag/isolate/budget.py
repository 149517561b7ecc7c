"""The safety budget: how many hosts may be out at a time, whatever the evidence says."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ncdiag.isolate.policy import Budget
from ncdiag.model.isolation import Action, Decision
from ncdiag.model.text import visible
from ncdiag.model.units import format_count

# Of two hosts, one is half of the fleet.
_SMALLEST_FLEET: Final = 3


def most_out(budget: Budget, fleet_hosts: int) -> int:
    """How many hosts of a fleet of so many may be out at a time.

    One at least where the share is less than one, but in a fleet of two.
    """
    share = int(fleet_hosts * budget.per_cent / 100.0 + 1e-9)
    least = 1 if fleet_hosts >= _SMALLEST_FLEET else 0
    return min(budget.hosts, max(share, least))


def over_budget(
    out: Collection[str],
    budget: Budget,
    *,
    hosts: int,
    leaves: Mapping[str, str] | None = None,
    beside: Collection[str] = (),
) -> str | None:
    """Why it is too much to have the hosts ``out`` out of a fleet of ``hosts``, or ``None``.

    ``leaves`` maps hosts to their leaf; hosts without one count towards none. ``beside`` are out
    as well and not of the fleet: they are no share of it.
    """
    names = frozenset(out)
    if not names:
        return None
    if hosts < 1:
        return "the safety budget needs the size of the fleet, which is not known"
    most = most_out(budget, hosts)
    if len(names) > most:
        return (
            f"the safety budget is {format_count(most, 'host')} of {hosts} at a time "
            f"(hosts = {budget.hosts}, per_cent = {budget.per_cent:g}), and "
            f"{len(names)} would be out: nothing is carried out"
        )
    everywhere = names.union(beside)
    if len(everywhere) > budget.hosts:
        return (
            f"the safety budget is {format_count(budget.hosts, 'host')} at a time "
            f"(hosts = {budget.hosts}), and {len(everywhere)} would be out, "
            f"{len(everywhere) - len(names)} of them not among --nodes: nothing is carried out"
        )
    return _over_a_leaf(everywhere, budget, leaves or {})


def _over_a_leaf(out: Collection[str], budget: Budget, leaves: Mapping[str, str]) -> str | None:
    by_leaf = Counter(leaves[name] for name in out if name in leaves)
    leaf, count = min(by_leaf.items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
    if count > budget.per_leaf:
        return (
            f"the safety budget is {format_count(budget.per_leaf, 'host')} of a leaf at a time "
            f"(per_leaf), and {count} of leaf {visible(leaf)} would be out, which look more like "
            "a fault of the leaf: nothing is carried out"
        )
    return None


def hold_back(
    decisions: Sequence[Decision],
    budget: Budget,
    isolated: Collection[str],
    *,
    hosts: int,
    leaves: Mapping[str, str] | None = None,
    beside: Collection[str] = (),
) -> tuple[Decision, ...]:
    """``decisions``, with every ``isolate`` held back where together they are too many.

    ``isolated`` are the hosts that are out already, whoever took them out; those that are to be
    released do not count. ``hosts`` is the size of the fleet, ``beside`` are out and not of it. All
    or nothing: to isolate the first few of too many would be to choose by the alphabet.
    """
    released = {one.host for one in decisions if one.action is Action.RELEASE}
    wanted = {one.host for one in decisions if _is_carried_out(one)}
    if not wanted - set(isolated):
        return tuple(decisions)
    out = (set(isolated) - released) | wanted
    others = set(beside) - released - out
    why = over_budget(out, budget, hosts=hosts, leaves=leaves, beside=others)
    if why is None:
        return tuple(decisions)
    return tuple(replace(one, held_back=why) if _is_carried_out(one) else one for one in decisions)


def _is_carried_out(decision: Decision) -> bool:
    return decision.action is Action.ISOLATE and decision.held_back is None
