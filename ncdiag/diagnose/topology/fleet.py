"""Which hosts of a fleet differ from the others, and in what."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.topology.classes import AMD_VENDOR
from ncdiag.diagnose.topology.findings import found as finding_of
from ncdiag.diagnose.topology.findings import info
from ncdiag.diagnose.topology.fleet_agreement import (
    Agreement,
    Alike,
    agree,
    differences,
    told_unclear,
)
from ncdiag.diagnose.topology.fleet_facts import Item, items_of
from ncdiag.diagnose.topology.fleet_models import (
    by_model,
    hosts_of,
    is_same_hardware,
    shape_differences,
)
from ncdiag.diagnose.topology.fleet_words import DIFFERS, Difference
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, by, listed
from ncdiag.model.errors import UsageError
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.topology import Topology, TopologyFinding, TopologyKind, TopologySeverity

_MOST_TOLD = 4
FLEET = "the fleet"
"""Where a finding is that no host is blamed for."""
_WORST_FIRST = (TopologySeverity.FATAL, TopologySeverity.DEGRADED, TopologySeverity.INFO)


class MixedKindsError(UsageError):
    """Dumps of different kinds say different things, and cannot be compared."""


@dataclass(frozen=True, slots=True)
class FleetGroup:
    """Hosts whose dumps are alike; ``differs`` says in what they differ from most hosts."""

    hosts: tuple[str, ...]
    count: int
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetDiff:
    """A fleet by groups, the largest first, and a finding for each host that is odd.

    ``models`` is how many hosts there are of each model of server, as far as bus numbers tell.
    ``undecided`` is set where hosts differ in what matters and no majority says which are wrong,
    or where there are too few hosts of a model to be compared with each other.
    """

    hosts: int
    groups: tuple[FleetGroup, ...]
    findings: tuple[TopologyFinding, ...]
    models: tuple[int, ...] = ()
    amd: bool = False
    undecided: bool = False


def compare(dumps: Iterable[tuple[str, Topology]]) -> FleetDiff:
    """Compare the dumps of hosts of one fleet; each is looked at once and not kept.

    A host is odd where at least two in three of the others agree on something else. Raises
    ``MixedKindsError`` where the dumps are not all of one kind.
    """
    groups = _alike(dumps)
    total = hosts_of(groups)
    families = by_model(groups)
    findings: list[TopologyFinding] = []
    told: dict[tuple[str, ...], list[str]] = {}
    undecided = False
    for family in families:
        agreed = agree(family)
        model = _Model(family, families[0], total) if family is not families[0] else None
        if model is not None:
            findings.extend(model.finding())
            undecided |= model.is_too_small
        for group in family:
            found = list(differences(group.facts(), agreed))
            findings.extend(_findings(group, found, agreed.hosts))
            findings.extend(_findings(group, model.accused(group) if model else (), total))
            lines = [*(one.text for one in found), *(model.lines(group) if model else ())]
            told[group.hosts] = list(dict.fromkeys(lines))
        if agreed.unclear:
            findings.append(info(DIFFERS, FLEET, _unclear(family, agreed)))
            _tell_against_the_largest(family, told)
            undecided |= agreed.is_unclear_in_what_matters
    return FleetDiff(
        hosts=total,
        groups=tuple(FleetGroup(g.hosts, len(g.hosts), tuple(told[g.hosts])) for g in groups),
        findings=tuple(sorted(findings, key=lambda f: (_WORST_FIRST.index(f.severity), f.where))),
        models=tuple(map(hosts_of, families)),
        amd=any(_is_amd(family[0]) for family in families),
        undecided=undecided,
    )


def _is_amd(group: Alike) -> bool:
    """Whether the GPUs of these hosts are AMD's."""
    return any(
        aspects.get("path") == "XGMI"
        or (subject.kind == "GPU" and str(aspects.get("model")).startswith(AMD_VENDOR))
        for subject, aspects in group.facts().items()
    )


def _alike(dumps: Iterable[tuple[str, Topology]]) -> list[Alike]:
    """Return the groups of hosts whose dumps say the same, the largest first."""
    pool: list[Item] = []
    known: dict[Item, int] = {}
    hosts: dict[bytes, list[str]] = {}
    first: TopologyKind | None = None
    for host, topology in dumps:
        first = first or topology.kind
        if topology.kind is not first:
            raise MixedKindsError(
                f"dumps of different kinds cannot be compared: {visible(host)} is "
                f"{topology.kind}, those before it are {first}"
            )
        numbers = []
        for item in items_of(topology):
            number = known.setdefault(item, len(pool))
            if number == len(pool):
                pool.append(item)
            numbers.append(number)
        hosts.setdefault(array("L", sorted(numbers)).tobytes(), []).append(host)
    groups = [Alike(tuple(sorted(h)), tuple(array("L", key)), pool) for key, h in hosts.items()]
    return sorted(groups, key=lambda group: (-len(group.hosts), group.hosts))


class _Model:
    """A family of hosts whose bus numbers are not those of most hosts."""

    def __init__(self, family: Sequence[Alike], main: Sequence[Alike], total: int) -> None:
        self._family = family
        self._main = main
        self._usual = main[0].facts()
        self._mine = family[0].facts()
        # A few hosts with the parts of all the others are no design of their own.
        self._is_odd = (
            hosts_of(main) * 2 > total
            and hosts_of(family) < LEAST_ALIKE <= hosts_of(main)
            and is_same_hardware(self._mine, self._usual)
        )

    @property
    def is_too_small(self) -> bool:
        """Whether these hosts are too few to agree on anything, and no others are like them."""
        return hosts_of(self._family) < LEAST_ALIKE and not self._is_odd

    def finding(self) -> Iterator[TopologyFinding]:
        """Yield that there is another model, once."""
        hosts = fold(host for group in self._family for host in group.hosts)
        shapes = shape_differences(self._mine, self._usual, 0)
        apart = "; ".join(one.text for one in shapes[:_MOST_TOLD]) or "otherwise alike"
        yield info(
            DIFFERS,
            hosts,
            f"{hosts_of(self._family)} hosts ({hosts}) have other bus numbers than "
            f"{hosts_of(self._main)} hosts ({_folded(self._main)}), so another model or layout; "
            f"{apart}",
        )

    def accused(self, group: Alike) -> list[Difference]:
        """Return what a few hosts lack that have the parts of most."""
        if not self._is_odd:
            return []
        return shape_differences(group.facts(), self._usual, hosts_of(self._main))

    def lines(self, group: Alike) -> list[str]:
        """Return in what ``group`` differs from most hosts, or which hosts are of its model."""
        if group is not self._family[0]:
            return [f"of the model of {fold(self._family[0].hosts)}"]
        shapes = shape_differences(group.facts(), self._usual, 0)
        return ["other bus numbers", *(one.text for one in shapes)]


def _findings(group: Alike, found: Sequence[Difference], total: int) -> Iterator[TopologyFinding]:
    """Yield, for each host of ``group``, one finding a class."""
    for (name, severity), same in by(found, lambda one: (one.name, one.severity)).items():
        agreeing = min(one.agree for one in same)
        text = f"{_told(same)}; {agreeing} of {total} hosts agree on it"
        for host in group.hosts:
            yield finding_of(name, severity, host, text)


def _told(same: Sequence[Difference]) -> str:
    """Write several differences of one class: what is missing by number and name, then the rest."""
    parts = []
    for kind, gone in by([one for one in same if one.missing], lambda one: one.missing).items():
        number = f"one {kind} fewer" if len(gone) == 1 else f"{len(gone)} {kind}s fewer"
        names = listed([one.text.removeprefix(f"{kind} ").removesuffix(" missing") for one in gone])
        parts.append(f"{number} ({names} missing)")
    rest = [one.text for one in same if not one.missing]
    parts.extend(rest[:_MOST_TOLD])
    more = len(rest) - _MOST_TOLD
    return "; ".join(parts) + (f"; and {more} more" if more > 0 else "")


def _unclear(family: Sequence[Alike], agreed: Agreement) -> str:
    largest = [f"{len(g.hosts)} hosts ({fold(g.hosts)})" for g in family[:_MOST_TOLD]]
    return (
        f"no clear majority among {agreed.hosts} hosts, so none is accused: {'; '.join(largest)}. "
        f"{told_unclear(family, agreed)}"
    )


def _tell_against_the_largest(
    family: Sequence[Alike], told: dict[tuple[str, ...], list[str]]
) -> None:
    """Add, for groups that no majority contradicts, what sets them apart from the largest."""
    lead = agree(family[:1])
    for group in family[1:]:
        lines = [one.text for one in differences(group.facts(), lead)]
        told[group.hosts] = list(dict.fromkeys([*told[group.hosts], *lines]))


def _folded(family: Sequence[Alike]) -> str:
    return fold(host for group in family for host in group.hosts)
