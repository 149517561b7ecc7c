"""Hosts of another model than most: other bus numbers, told once and no fault by themselves."""

from collections import Counter
from collections.abc import Hashable, Sequence

from ncdiag.diagnose.topology.fleet_agreement import Alike, Facts
from ncdiag.diagnose.topology.fleet_facts import OF_PLACE, Subject
from ncdiag.diagnose.topology.fleet_words import DIFFERS, MISSING, Difference, written
from ncdiag.diagnose.topology.peers import listed
from ncdiag.model.topology import TopologySeverity

_WITH_BUS_NUMBERS = frozenset({"GPU", "adapter", "bridge"})
# Hosts that share this much of their bus numbers are of one model, with parts missing or added.
_SAME_MODEL = 0.5
# A fleet has few models; beyond this many, each further layout stands for itself.
_MOST_MODELS = 100


def by_model(groups: Sequence[Alike]) -> list[list[Alike]]:
    """Return ``groups`` by the bus numbers they share, the model of most hosts first."""
    families: list[list[Alike]] = []
    leaders: list[frozenset[Subject]] = []
    for group in groups:
        numbers = frozenset(s for s in group.facts() if s.kind in _WITH_BUS_NUMBERS)
        like = (
            at
            for at, leader in enumerate(leaders[:_MOST_MODELS])
            if len(leader & numbers) >= len(leader | numbers) * _SAME_MODEL
        )
        place = next(like, None)
        if place is None:
            leaders.append(numbers)
            families.append([group])
        else:
            families[place].append(group)
    return sorted(families, key=hosts_of, reverse=True)


def hosts_of(groups: Sequence[Alike]) -> int:
    """Return how many hosts there are in ``groups``."""
    return sum(len(group.hosts) for group in groups)


def is_same_hardware(mine: Facts, usual: Facts) -> bool:
    """Whether GPUs and CPUs are the same parts, so that other bus numbers are no other design."""
    return all(
        {aspects.get(part) for subject, aspects in mine.items() if subject.kind == kind}
        == {aspects.get(part) for subject, aspects in usual.items() if subject.kind == kind}
        for kind, part in (("GPU", "model"), ("GPU", "sm"), ("CPU", "model"))
    )


def shape_differences(mine: Facts, usual: Facts, agree: int) -> list[Difference]:
    """Return in what two hosts differ when bus numbers are set aside."""
    found = []
    for kind in sorted({subject.kind for subject in (*mine, *usual)}):
        here = [aspects for subject, aspects in mine.items() if subject.kind == kind]
        there = [aspects for subject, aspects in usual.items() if subject.kind == kind]
        if len(here) != len(there):
            name = MISSING.get(kind, DIFFERS) if len(here) < len(there) else DIFFERS
            text = f"{len(here) or 'no'} {kind}s instead of {len(there)}"
            found.append(Difference(name, TopologySeverity.DEGRADED, text, agree))
            continue
        for aspect in sorted({a for aspects in (*here, *there) for a in aspects} - OF_PLACE):
            mine_values = Counter(aspects.get(aspect) for aspects in here)
            values = Counter(aspects.get(aspect) for aspects in there)
            if mine_values != values:
                text = (
                    f"{kind}s: {_counted(aspect, mine_values)} instead of "
                    f"{_counted(aspect, values)}"
                )
                found.append(Difference(DIFFERS, TopologySeverity.DEGRADED, text, agree))
    return found


def _counted(aspect: str, values: Counter[Hashable]) -> str:
    return listed([f"{count} x {written(aspect, value)}" for value, count in values.most_common()])
