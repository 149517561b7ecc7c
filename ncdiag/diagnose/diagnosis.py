"""Everything concluded from a sweep's measurements."""

from itertools import islice

import numpy as np

from ncdiag.diagnose.cases import Charges, charge
from ncdiag.diagnose.contention import contention
from ncdiag.diagnose.culprits import culprit, fleet_culprit, link_culprit
from ncdiag.diagnose.damage import damaged_share, told_once
from ncdiag.diagnose.damage_cases import charge_damage
from ncdiag.diagnose.hosts import host_verdicts
from ncdiag.diagnose.investigate import Findings, investigate
from ncdiag.diagnose.notes import notes
from ncdiag.diagnose.table import Floats, Mask
from ncdiag.diagnose.thresholds import (
    MAX_LISTED_LINK_CULPRITS,
    MAX_LISTED_UNTESTED,
    Thresholds,
)
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.measurement import LinkKey, PairKey
from ncdiag.model.verdict import (
    Culprit,
    Diagnosis,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    Verdict,
)


def diagnose(evidence: SweepEvidence, thresholds: Thresholds) -> Diagnosis:
    """Judge links, hosts and fleet, and name the culprits; pure, and bounded by the evidence."""
    found = investigate(evidence, thresholds)
    reachable = len(evidence.hosts) - len(evidence.unreachable)
    charges = charge_damage(found, charge(found, two_hosts=reachable == 2))
    culprits = _culprits(found, charges, thresholds)
    hosts = host_verdicts(evidence, found, charges, thresholds)
    untested, count = _untested(evidence, set(found.judged.table.keys))
    return Diagnosis(
        verdict=_verdict(found, charges, culprits, hosts, thresholds),
        links=_link_verdicts(found, charges) + _untested_links(untested),
        hosts=hosts,
        culprits=culprits,
        contention=contention(found),
        untested=tuple(dict.fromkeys((pair.first, pair.second) for pair in untested)),
        untested_pairs=count,
        isolate=_named(hosts, HostStatus.FAULTY),
        good=_named(hosts, HostStatus.HEALTHY, HostStatus.DEGRADED),
        notes=notes(evidence, found, charges, thresholds),
    )


def _culprits(found: Findings, charges: Charges, thresholds: Thresholds) -> tuple[Culprit, ...]:
    """Return the fleet, then components, then single links; damage and the slowest first."""
    fleet = [fleet_culprit(found)] if charges.fleet else []
    components = [culprit(found, case, thresholds) for case in charges.proven]
    components.sort(key=lambda one: (not one.damaged, -one.explains))
    rows = np.flatnonzero(charges.single)
    order = np.argsort(damaged_share(found, found.judged.sticks.share)[rows], kind="stable")
    slowest = told_once(found, rows[order][: 2 * MAX_LISTED_LINK_CULPRITS]).tolist()
    slowest = slowest[:MAX_LISTED_LINK_CULPRITS]
    return (*fleet, *components, *(link_culprit(found, row, thresholds) for row in slowest))


def _link_verdicts(found: Findings, charges: Charges) -> tuple[LinkVerdict, ...]:
    """One verdict a measured link, in the order in which they were first measured."""
    table, sticks = found.judged.table, found.judged.sticks
    efficiency = np.where(np.isnan(table.expected), np.nan, damaged_share(found, sticks.efficiency))
    columns = zip(
        table.keys,
        table.shown,
        table.expectations,
        _statuses(found, charges.accused),
        _or_none(efficiency),
        _or_none(sticks.fleet_gbit_per_s),
        _or_none(damaged_share(found, sticks.ratio)),
        table.tests.tolist(),
        strict=True,
    )
    return tuple(
        LinkVerdict(
            source=key.source,
            target=key.target,
            rail=key.rail,
            status=status,
            measured_gbit_per_s=shown.measured_gbit_per_s,
            expected_gbit_per_s=None if expected is None else expected.gbit_per_s,
            expected_from=None if expected is None else expected.derivation,
            efficiency=efficiency,
            fleet_gbit_per_s=fleet,
            fleet_ratio=ratio,
            bytes=shown.bytes,
            tests=tests,
            min_gbit_per_s=shown.min_gbit_per_s,
            idle=shown.idle,
            error=shown.error,
            round=shown.round,
            engine=shown.engine,
        )
        for key, shown, expected, status, efficiency, fleet, ratio, tests in columns
    )


def _statuses(found: Findings, accused: Mask) -> list[LinkStatus]:
    """Each link's status: what is slow only beside others, so far as known, accuses nobody."""
    judged = found.judged
    codes = np.select(
        [
            judged.error,
            judged.inconclusive,
            ~accused & found.waiting,
            judged.faulty,
            judged.degraded,
        ],
        [0, 1, 1, 2, 3],
        4,
    )
    names = (
        LinkStatus.ERROR,
        LinkStatus.INCONCLUSIVE,
        LinkStatus.FAULTY,
        LinkStatus.DEGRADED,
        LinkStatus.HEALTHY,
    )
    return [names[code] for code in codes.tolist()]


def _or_none(figures: Floats) -> list[float | None]:
    return [
        None if unknown else figure
        for figure, unknown in zip(figures.tolist(), np.isnan(figures).tolist(), strict=True)
    ]


def _untested(evidence: SweepEvidence, tested: set[LinkKey]) -> tuple[list[PairKey], int]:
    """Planned pairs without a result though both hosts can be reached: the first, and how many."""
    open_ = (
        pair
        for pair in evidence.planned()
        if pair.first not in evidence.unreachable
        and pair.second not in evidence.unreachable
        and tested.isdisjoint(pair.directions)
    )
    listed = list(islice(open_, MAX_LISTED_UNTESTED))
    return listed, len(listed) + sum(1 for _ in open_)


def _untested_links(pairs: list[PairKey]) -> tuple[LinkVerdict, ...]:
    return tuple(
        LinkVerdict(
            source=link.source, target=link.target, rail=link.rail, status=LinkStatus.UNTESTED
        )
        for pair in pairs
        for link in pair.directions
    )


def _named(verdicts: tuple[HostVerdict, ...], *statuses: HostStatus) -> tuple[str, ...]:
    return tuple(verdict.name for verdict in verdicts if verdict.status in statuses)


def _verdict(
    found: Findings,
    charges: Charges,
    culprits: tuple[Culprit, ...],
    hosts: tuple[HostVerdict, ...],
    thresholds: Thresholds,
) -> Verdict:
    """Faulty with any culprit; healthy only if nothing below the line was left undecided."""
    if culprits:
        return Verdict.FAULTY
    judged = found.judged
    undecided = judged.error | charges.unclear
    undecided |= (
        (judged.inconclusive | (found.waiting & ~charges.accused))
        & ~(judged.sticks.share >= thresholds.faulty_below)
        & ~found.excused
    )
    unknown = {HostStatus.UNREACHABLE, HostStatus.INCONCLUSIVE}
    if undecided.any() or any(host.status in unknown for host in hosts):
        return Verdict.INCONCLUSIVE
    return Verdict.HEALTHY
