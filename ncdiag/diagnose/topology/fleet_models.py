"""Hosts of another model than most: other bus numbers, told once and no fault by themselves."""

from collections import Counter
from collections.abc import Hashable, Sequence

from ncdiag.diagnose.topology.fleet_agreement import Alike, Facts
from ncdiag.diagnose.topology.fleet_facts import OF_PLACE, Subject
from ncdiag.diagnose.topology.fleet_words import DIFFERS, MISSING, Difference, written
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, ONE_ODD_OF, listed
from ncdiag.model.topology import TopologySeverity

_WITH_BUS_NUMBERS = frozenset({"GPU", "adapter", "bridge"})
# Hosts that share this much of their bus numbers are of one model, with parts missing or added.
_SAME_MODEL = 0.5
# Of two large halves of a fleet, those that share less than this much: a part or two that are
# missing on many hosts make no model.
_SAME_PARTS = 0.8
# A fleet has few models; beyond this many, each further layout stands for itself.
_MOST_MODELS = 100


def by_model(groups: Sequence[Alike]) -> list[list[Alike]]:
    """Return ``groups`` by the bus numbers they share, the model of most hosts first."""
    families: list[list[Alike]] = []
    leaders: list[frozenset[Subject]] = []
    for group in groups:
        numbers = _devices(group)
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
    models = [model for family in families for model in _of_parts(family)]
    return sorted(models, key=hosts_of, reverse=True)


def _of_parts(family: list[Alike]) -> list[list[Alike]]:
    """Return a family by models, where several times many hosts have other devices.

    A few hosts with parts missing or added belong to the model that they are nearest to.
    """
    devices = [_devices(group) for group in family]
    leaders: list[int] = []
    for at, group in enumerate(family):
        many = len(group.hosts) >= LEAST_ALIKE and len(group.hosts) * ONE_ODD_OF > hosts_of(family)
        if many and all(_differ_much(devices[at], devices[leader]) for leader in leaders):
            leaders.append(at)
    if len(leaders) < 2:
        return [family]
    models: dict[int, list[Alike]] = {leader: [] for leader in leaders}
    for at, group in enumerate(family):
        nearest = min(leaders, key=lambda leader: len(devices[leader] ^ devices[at]))
        models[nearest].append(group)
    return list(models.values())


def _differ_much(one: frozenset[Subject], other: frozenset[Subject]) -> bool:
    return len(one & other) < len(one | other) * _SAME_PARTS


def _devices(group: Alike) -> frozenset[Subject]:
    return frozenset(subject for subject in group.facts() if subject.kind in _WITH_BUS_NUMBERS)


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
