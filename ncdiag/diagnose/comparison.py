"""What changed between two sweeps of a fleet: link by link, host by host, culprit by culprit.

What one of them could not measure has not changed: it is set apart, and neither better nor worse.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from ncdiag.model.errors import ExitCode
from ncdiag.model.units import format_share
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepReport,
    Verdict,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines between the same and another figure; shares of the earlier one."""

    # Two sweeps of one healthy link agree within 3 %, as gloo with iperf3 does; 5 % is what a
    # change of MTU makes. An eighth is beyond both, and what a lost lane of eight costs.
    changed_by: float = 0.12
    # The median of the fleet is steadier than any one link.
    fleet_changed_by: float = 0.05


class Change(StrEnum):
    """How something stands now, seen from before."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NEW = "new"  # only the later sweep has it
    GONE = "gone"  # only the earlier one has
    UNDECIDED = "undecided"  # one of them could not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkChange:
    """One direction of a pair on one rail; ``ratio`` is the later figure over the earlier one."""

    source: str
    target: str
    rail: int
    change: Change
    before_status: LinkStatus | None = None
    after_status: LinkStatus | None = None
    before_gbit_per_s: float | None = None
    after_gbit_per_s: float | None = None
    ratio: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChange:
    """One host; a status is ``None`` in the sweep that does not know it."""

    name: str
    change: Change
    before_status: HostStatus | None = None
    after_status: HostStatus | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CulpritChange:
    """One culprit: new, gone (measured again and good), the same, or undecided.

    ``reason`` is that of the sweep that named it last.
    """

    kind: CulpritKind
    name: str
    change: Change
    before_efficiency: float | None = None
    after_efficiency: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of the two sweeps: when it was, what it measured with, and how it ended."""

    started: str
    engine: str
    verdict: Verdict
    hosts: int
    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that changed; ``links`` and ``hosts`` hold what is not the same.

    ``compared`` counts the links that both sweeps measured, ``fleet_ratio`` is the median of their
    later figures over their earlier ones.
    """

    change: Change
    before: Run
    after: Run
    compared: int
    fleet_ratio: float | None
    links: tuple[LinkChange, ...] = ()
    hosts: tuple[HostChange, ...] = ()
    culprits: tuple[CulpritChange, ...] = ()
    notes: tuple[str, ...] = ()
    counts: Mapping[Change, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """1 where something got worse, 3 where it could not be decided, else 0."""
        if self.change is Change.WORSE:
            return ExitCode.WRONG
        return ExitCode.UNDECIDED if self.change is Change.UNDECIDED else ExitCode.DONE


_HOST_RANKS = {HostStatus.HEALTHY: 0, HostStatus.DEGRADED: 1, HostStatus.FAULTY: 2}
_Key = tuple[str, str, int]


def compare(before: SweepReport, after: SweepReport, lines: Lines | None = None) -> Comparison:
    """What changed from ``before`` to ``after``."""
    lines = lines or Lines()
    alike = before.plan.engine == after.plan.engine
    links = _links(before, after, lines, by_efficiency=not alike)
    hosts = _hosts(before, after)
    culprits = _culprits(before, after)
    ratios = [one.ratio for one in links if one.ratio is not None]
    ratio = median(ratios) if ratios else None
    counts = {change: sum(one.change is change for one in links) for change in Change}
    return Comparison(
        change=_overall(links, hosts, culprits),
        before=_run(before),
        after=_run(after),
        compared=len(ratios),
        fleet_ratio=ratio,
        links=tuple(one for one in links if one.change is not Change.SAME),
        hosts=tuple(one for one in hosts if one.change is not Change.SAME),
        culprits=culprits,
        notes=_notes(before, after, ratio, lines, compared=len(ratios)),
        counts=counts,
    )


def _links(
    before: SweepReport, after: SweepReport, lines: Lines, *, by_efficiency: bool
) -> list[LinkChange]:
    """Every link of either sweep, the worst first."""
    earlier, later = _by_key(before), _by_key(after)
    changes = [
        _link(key, earlier.get(key), later.get(key), lines, by_efficiency=by_efficiency)
        for key in earlier | later
    ]
    return sorted(
        changes, key=lambda one: (1.0 if one.ratio is None else one.ratio, one.source, one.target)
    )


def _by_key(report: SweepReport) -> dict[_Key, LinkVerdict]:
    """The links that a sweep has tried; a pair that was only planned is none."""
    return {
        (link.source, link.target, link.rail): link
        for link in report.diagnosis.links
        if link.status is not LinkStatus.UNTESTED
    }


def _link(
    key: _Key,
    before: LinkVerdict | None,
    after: LinkVerdict | None,
    lines: Lines,
    *,
    by_efficiency: bool,
) -> LinkChange:
    ratio = _ratio(before, after, by_efficiency=by_efficiency)
    source, target, rail = key
    return LinkChange(
        source=source,
        target=target,
        rail=rail,
        change=_link_change(before, after, ratio, lines),
        before_status=before.status if before else None,
        after_status=after.status if after else None,
        before_gbit_per_s=before.measured_gbit_per_s if before else None,
        after_gbit_per_s=after.measured_gbit_per_s if after else None,
        ratio=ratio,
        error=(after.error if after else None) or (before.error if before else None),
    )


def _link_change(
    before: LinkVerdict | None, after: LinkVerdict | None, ratio: float | None, lines: Lines
) -> Change:
    if before is None:
        return Change.NEW
    if after is None:
        return Change.GONE
    if ratio is None:
        return Change.UNDECIDED
    if ratio < 1 - lines.changed_by:
        return Change.WORSE
    return Change.BETTER if ratio > 1 / (1 - lines.changed_by) else Change.SAME


def _ratio(
    before: LinkVerdict | None, after: LinkVerdict | None, *, by_efficiency: bool
) -> float | None:
    """Later over earlier; ``None`` unless both are figures of the link and not of a busy CPU."""
    if before is None or after is None:
        return None
    if LinkStatus.INCONCLUSIVE in {before.status, after.status}:
        return None
    one, other = (
        link.efficiency if by_efficiency else link.measured_gbit_per_s for link in (before, after)
    )
    return other / one if one and other is not None else None


def _hosts(before: SweepReport, after: SweepReport) -> list[HostChange]:
    earlier, later = _hosts_by_name(before), _hosts_by_name(after)
    return [_host(name, earlier.get(name), later.get(name)) for name in earlier | later]


def _hosts_by_name(report: SweepReport) -> dict[str, HostVerdict]:
    return {host.name: host for host in report.diagnosis.hosts}


def _host(name: str, before: HostVerdict | None, after: HostVerdict | None) -> HostChange:
    told = after or before
    return HostChange(
        name=name,
        change=_host_change(before, after),
        before_status=before.status if before else None,
        after_status=after.status if after else None,
        reason=told.reason if told else "",
    )


def _host_change(before: HostVerdict | None, after: HostVerdict | None) -> Change:
    if before is None:
        return Change.NEW
    if after is None:
        return Change.GONE
    if before.status is after.status:
        return Change.SAME
    one, other = _HOST_RANKS.get(before.status), _HOST_RANKS.get(after.status)
    if one is None or other is None:
        return Change.UNDECIDED
    return Change.WORSE if other > one else Change.BETTER


def _culprits(before: SweepReport, after: SweepReport) -> tuple[CulpritChange, ...]:
    """New ones first, then those that stay, then those that were named before."""
    earlier, later = _culprits_by_name(before), _culprits_by_name(after)
    changes = []
    for key in later | earlier:
        was, now = earlier.get(key), later.get(key)
        if was is not None and now is None:
            change = Change.GONE if _is_cleared(was, after) else Change.UNDECIDED
        else:
            change = Change.NEW if was is None else Change.SAME
        told = now or was
        changes.append(
            CulpritChange(
                kind=key[0],
                name=key[1],
                change=change,
                before_efficiency=was.efficiency if was else None,
                after_efficiency=now.efficiency if now else None,
                reason=told.reason if told else "",
            )
        )
    order = [Change.NEW, Change.SAME, Change.UNDECIDED, Change.GONE]
    return tuple(sorted(changes, key=lambda one: order.index(one.change)))


def _culprits_by_name(report: SweepReport) -> dict[tuple[CulpritKind, str], Culprit]:
    return {(one.kind, one.name): one for one in report.diagnosis.culprits}


def _is_cleared(culprit: Culprit, after: SweepReport) -> bool:
    """Whether the later sweep has measured what the earlier one blamed, and found it good."""
    if culprit.kind is CulpritKind.LINK:
        status = {str_of(link): link.status for link in after.diagnosis.links}
        return status.get(culprit.name) is LinkStatus.HEALTHY
    if culprit.kind in {CulpritKind.HOST, CulpritKind.NIC}:
        host = _hosts_by_name(after).get(culprit.name.partition(":")[0])
        host = host or _hosts_by_name(after).get(culprit.name)
        return host is not None and host.status is HostStatus.HEALTHY
    return after.diagnosis.verdict is not Verdict.INCONCLUSIVE


def str_of(link: LinkVerdict) -> str:
    """A link as a culprit is named."""
    return f"{link.source}->{link.target}"


def _overall(
    links: list[LinkChange], hosts: list[HostChange], culprits: tuple[CulpritChange, ...]
) -> Change:
    changes = {one.change for one in links} | {one.change for one in hosts}
    if Change.WORSE in changes or any(one.change is Change.NEW for one in culprits):
        return Change.WORSE
    undecided = changes | {one.change for one in culprits}
    if Change.UNDECIDED in undecided or not any(one.ratio is not None for one in links):
        return Change.UNDECIDED
    return Change.BETTER if Change.BETTER in changes else Change.SAME


def _run(report: SweepReport) -> Run:
    return Run(
        started=report.started,
        engine=report.plan.engine,
        verdict=report.diagnosis.verdict,
        hosts=report.plan.hosts,
        links=len(_by_key(report)),
    )


def _notes(
    before: SweepReport, after: SweepReport, ratio: float | None, lines: Lines, *, compared: int
) -> tuple[str, ...]:
    notes = []
    if before.plan.engine != after.plan.engine:
        notes.append(
            f"measured with {before.plan.engine}, then with {after.plan.engine}: shares of what "
            "each should reach are compared, not figures"
        )
    if not compared:
        notes.append("no link was measured in both sweeps")
    if before.started > after.started:
        notes.append("the first sweep is the later one: better and worse are seen from it")
    if ratio is not None and abs(ratio - 1) > lines.fleet_changed_by:
        notes.append(
            f"the fleet as a whole reaches {format_share(ratio)} of what it reached before"
        )
    return tuple(notes)
