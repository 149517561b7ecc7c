"""The hosts that should be out, for programs that are told whom to leave out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ncdiag.isolate.budget import over_budget
from ncdiag.isolate.places.base import Standing, with_aliases
from ncdiag.isolate.policy import Budget
from ncdiag.model.isolation import Action, Decision, PlaceState
from ncdiag.model.nodes import fold

# Of a fleet of unknown size no share can be told: then only the number of hosts counts.
_ANY_SIZE: Final = 1_000_000
_TWO_RANGES: Final = re.compile(r"\][^,\[]*\[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Decisions that hosts be out, by the fleet's own names; ``refused`` says why there is none."""

    decisions: Sequence[Decision] = ()
    refused: str | None = None


def chosen(
    decisions: Sequence[Decision],
    budget: Budget,
    fleet: Sequence[str] | None,
    leaves: Mapping[str, str],
) -> Chosen:
    """The hosts of ``fleet`` (``None``: any) that should be out, unless they are too many."""
    out = [
        one
        for one in decisions
        if one.action in (Action.ISOLATE, Action.KEEP) and one.held_back is None
    ]
    if fleet is not None:
        there = with_aliases(
            {name: Standing(state=PlaceState.AVAILABLE, name=name) for name in fleet}
        )
        named = {there.own_name(one.host): one for one in out}
        out = [replace(named[name], host=name) for name in fleet if name in named]
    hosts = _ANY_SIZE if fleet is None else len(set(fleet))
    refused = over_budget([one.host for one in out], budget, hosts=hosts, leaves=leaves)
    return Chosen(refused=refused) if refused else Chosen(decisions=out)


def as_slurm_writes_it(names: Sequence[str]) -> str:
    """``gpu[003,007]``; unfolded where a name has several ranges, which not every Slurm folds."""
    folded = fold(names)
    return ",".join(names) if _TWO_RANGES.search(folded) else folded
