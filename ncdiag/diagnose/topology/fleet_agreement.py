"""What most hosts of a fleet agree on, and in what a group of like hosts differs from that."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.topology.fleet_facts import MINOR, Item, Subject
from ncdiag.diagnose.topology.fleet_words import Difference, absent, extra, other, written
from ncdiag.diagnose.topology.peers import ONE_ODD_OF
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible

Facts = Mapping[Subject, Mapping[str, Hashable]]
_ABSENT = object()
_MOST_UNCLEAR = 4


@dataclass(frozen=True, slots=True)
class Alike:
    """Hosts whose dumps say the same; ``items`` are indexes into a pool that all groups share."""

    hosts: tuple[str, ...]
    items: tuple[int, ...]
    pool: Sequence[Item]

    def facts(self) -> dict[Subject, dict[str, Hashable]]:
        """Return what these hosts' dumps say."""
        return {
            subject: dict(aspects) for subject, aspects in map(self.pool.__getitem__, self.items)
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """What nearly all hosts agree on; ``unclear`` are facts without a clear majority."""

    hosts: int
    facts: Facts
    weights: Mapping[tuple[Subject, str | None], int]
    unclear: tuple[tuple[Subject, str | None], ...]

    @property
    def is_unclear_in_what_matters(self) -> bool:
        """Whether a host could have been accused of something, had there been a majority."""
        return any(aspect not in MINOR for _, aspect in self.unclear)


def agree(groups: Sequence[Alike]) -> Agreement:
    """Return what ``groups`` agree on, each weighing as many hosts as it has."""
    hosts = sum(len(group.hosts) for group in groups)
    there, values = _weighed(groups)
    facts: dict[Subject, dict[str, Hashable]] = {}
    weights: dict[tuple[Subject, str | None], int] = {}
    unclear: list[tuple[Subject, str | None]] = []
    for subject, weight in there.items():
        weights[subject, None] = max(weight, hosts - weight)
        if _nearly_all(weight, hosts):
            facts[subject] = {}
        elif not _nearly_all(hosts - weight, hosts):
            unclear.append((subject, None))
    for (subject, aspect), seen in values.items():
        value, weight = seen.most_common(1)[0]
        weights[subject, aspect] = weight
        if subject not in facts:
            continue
        if _nearly_all(weight, there[subject]):
            facts[subject][aspect] = value
        else:
            unclear.append((subject, aspect))
    return Agreement(hosts, facts, weights, tuple(unclear))


def _weighed(
    groups: Sequence[Alike],
) -> tuple[Counter[Subject], dict[tuple[Subject, str], Counter[Hashable]]]:
    """Return how many hosts have each subject, and each value of each aspect."""
    items: Counter[int] = Counter()
    for group in groups:
        for item in group.items:
            items[item] += len(group.hosts)
    there: Counter[Subject] = Counter()
    values: dict[tuple[Subject, str], Counter[Hashable]] = {}
    for item, weight in items.items():
        subject, aspects = groups[0].pool[item]
        there[subject] += weight
        for aspect, value in aspects:
            values.setdefault((subject, aspect), Counter())[value] += weight
    return there, values


def differences(mine: Facts, agreed: Agreement) -> Iterator[Difference]:
    """Yield in what ``mine`` differs from what is agreed; what follows from another is left out."""
    usual = agreed.facts
    unclear = set(agreed.unclear)
    missing = [subject for subject in usual if subject not in mine]
    gone = {subject.name for subject in missing if not subject.ends}
    ways = {step for one in missing for step in str(usual[one].get("place", "")).split(" > ")}
    for subject in missing:
        follows = gone & set(subject.ends) or (subject.kind == "bridge" and subject.name in ways)
        if not follows:
            yield absent(subject, label(subject, usual[subject]), agreed.weights[subject, None])
    new = [s for s in mine if s not in usual and (s, None) not in unclear]
    names = {subject.name for subject in new if not subject.ends}
    for subject in new:
        if not names & set(subject.ends):
            weight = agreed.weights.get((subject, None), agreed.hosts)
            yield extra(subject, label(subject, mine[subject]), weight)
    for subject, aspects in mine.items():
        if subject in usual and not gone & set(subject.ends):
            yield from _aspects(subject, aspects, agreed)


def _aspects(
    subject: Subject, aspects: Mapping[str, Hashable], agreed: Agreement
) -> Iterator[Difference]:
    usual = agreed.facts[subject]
    for aspect, value in aspects.items():
        expected = usual.get(aspect, _ABSENT)
        if expected is not _ABSENT and expected != value:
            weight = agreed.weights[subject, aspect]
            yield other(subject, label(subject, aspects), aspect, (value, expected), weight)


def label(subject: Subject, aspects: Mapping[str, Hashable]) -> str:
    """Return the name of a subject, with what the system calls it."""
    name = aspects.get("name")
    text = f"{name} at {subject.name}" if name and str(name) not in subject.name else subject.name
    return visible(text)


def told_unclear(groups: Sequence[Alike], agreed: Agreement) -> str:
    """Write the facts that no majority settles, with the hosts on each side."""
    parts = []
    for subject, aspect in agreed.unclear[:_MOST_UNCLEAR]:
        sides: dict[str, list[str]] = {}
        name = subject.name
        for group in groups:
            aspects = group.facts().get(subject)
            if aspects is None:
                side = "missing"
            else:
                name = label(subject, aspects)
                side = "there" if aspect is None else written(aspect, aspects.get(aspect))
            sides.setdefault(side, []).extend(group.hosts)
        told = ", ".join(f"{side} on {fold(hosts)}" for side, hosts in sides.items())
        parts.append(f"{subject.kind} {name}: {told}")
    more = len(agreed.unclear) - len(parts)
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _nearly_all(weight: int, total: int) -> bool:
    return (total - weight) * ONE_ODD_OF <= total
