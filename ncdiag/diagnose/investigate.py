"""From judged links to suspects: the fleet as a whole, components, single links, contention."""

from dataclasses import dataclass

import numpy as np

from ncdiag.diagnose.blame import Cover, Rule, Suspect, cover
from ncdiag.diagnose.judge import Judgement, judge, outlier_line
from ncdiag.diagnose.table import Fabric, Floats, Ints, LinkTable, Mask, tabulate
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.evidence import SweepEvidence

# A fleet that is slow alike has next to no fast link; on two hosts nothing can be said of a fleet.
_FAST_IN_SLOW_FLEET = 0.01
_FLEET_HOSTS = 3
# Shared capacity gives each round another share, and some rounds a full one: what is slow only
# beside others is grouped by where it runs, whatever its rate.
_LOOSE = Rule(low=0.0, high=np.inf, contradictions=0.5)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of links that share a component; without ``suspect``, one link or the whole fleet."""

    suspect: Suspect | None
    rows: Ints


@dataclass(frozen=True, slots=True)
class Findings:
    """What the figures point at, whether it was measured again in quiet or not.

    ``usable`` are links whose hosts can be reached. ``fleet`` are links that are slow as
    everything is. ``single`` are slow links without a suspect that explains them. ``contended`` are
    groups of links that are slow together and, so far as measured, fast alone; ``excused`` links
    have no quiet figure of their own, but enough of their group have.
    """

    judged: Judgement
    usable: Mask
    fleet: Mask
    suspects: tuple[Suspect, ...]
    doubtful: tuple[Suspect, ...]
    single: Mask
    contended: tuple[Group, ...]
    excused: Mask

    @property
    def waiting(self) -> Mask:
        """Links that were slow with their round and were not measured in quiet."""
        judged = self.judged
        found: Mask = (judged.faulty | judged.degraded) & ~judged.confirmed
        return found


def investigate(evidence: SweepEvidence, thresholds: Thresholds) -> Findings:
    """Find everything that the measurements point at."""
    table = tabulate(evidence, thresholds)
    lost = np.array([name in evidence.unreachable for name in table.fabric.hosts], dtype=bool)
    usable = ~(lost[table.fabric.source] | lost[table.fabric.target])
    return investigate_table(table, usable, thresholds)


def investigate_table(table: LinkTable, usable: Mask, thresholds: Thresholds) -> Findings:
    """Find everything that the ``usable`` links of ``table`` point at."""
    judged = judge(table, thresholds)
    contended, excused = _contention(judged, usable, thresholds)
    fleet = _slow_as_all(judged, usable & ~excused, thresholds)
    first, second = _blame(judged, fleet, usable & ~excused, thresholds)
    doubtful = {one.identity: one for one in first.doubtful + second.doubtful}
    again = [one for one in second.suspects if one.identity in doubtful]
    return Findings(
        judged=judged,
        usable=usable,
        fleet=fleet,
        suspects=first.suspects
        + tuple(one for one in second.suspects if one.identity not in doubtful),
        doubtful=tuple(doubtful.values()),
        single=np.logical_or.reduce([second.left, *(one.links for one in again)]),
        contended=contended,
        excused=excused,
    )


def pair_count(fabric: Fabric, rows: Ints) -> int:
    """Count the different pairs of hosts among the links ``rows``."""
    ends = np.sort(np.stack((fabric.source[rows], fabric.target[rows])), axis=0)
    return int(np.unique(ends, axis=1).shape[1])


def share_a_host(fabric: Fabric, rows: Ints) -> bool:
    """Whether one host is at an end of all the links ``rows``: then it may be that one alone."""
    ends = np.concatenate((fabric.source[rows], fabric.target[rows]))
    return bool(np.bincount(ends, minlength=1).max() == len(rows))


def _blame(
    judged: Judgement, fleet: Mask, usable: Mask, thresholds: Thresholds
) -> tuple[Cover, Cover]:
    """Explain faulty links, then what is left of them together with the degraded ones.

    In a fleet that is slow as a whole only the fleet's own median tells who is slower still.
    """
    sticks, line = judged.sticks, outlier_line(judged.sticks, thresholds)
    usable = usable & ~judged.damaged  # who damages data is another question
    slow, share, clear = judged.faulty & usable & ~fleet, sticks.share, judged.clear
    if fleet.any():
        share = sticks.ratio
        slow &= share < thresholds.faulty_below
        clear = share >= thresholds.halfway(thresholds.faulty_below)
    first = cover(
        judged.table.fabric,
        np.where(usable & (clear | ~judged.inconclusive), share, np.nan),
        slow=slow,
        clear=clear & usable,
        confirmed=judged.confirmed,
    )
    explained = slow & ~first.left
    below = (judged.degraded | judged.faulty) & usable & ~fleet & (sticks.ratio < line)
    second = cover(
        judged.table.fabric,
        np.where(usable & ~explained & ~judged.inconclusive, sticks.ratio, np.nan),
        slow=(first.left | below) & ~explained,
        clear=judged.healthy & usable & (sticks.ratio >= thresholds.halfway(line)),
        confirmed=judged.confirmed,
    )
    return first, second


def _slow_as_all(judged: Judgement, usable: Mask, thresholds: Thresholds) -> Mask:
    """Return links that miss their expectation no more than the whole fleet does."""
    sticks, fabric = judged.sticks, judged.table.fabric
    known = usable & ~np.isnan(sticks.efficiency)
    hosts = np.union1d(fabric.source[known], fabric.target[known])
    fast = known & (sticks.efficiency >= thresholds.halfway(thresholds.faulty_below))
    quiet = known & judged.confirmed
    alike = (
        sticks.typical < thresholds.reached
        and len(hosts) >= _FLEET_HOSTS
        and fast.sum() <= _FAST_IN_SLOW_FLEET * known.sum()
        and (fast & quiet).sum() <= _FAST_IN_SLOW_FLEET * quiet.sum()
    )
    line = max(thresholds.faulty_below, outlier_line(sticks, thresholds))
    found = known & judged.faulty & (sticks.ratio >= line)
    alike = alike and not share_a_host(fabric, np.flatnonzero(found))
    return found if alike else np.zeros_like(found)


def _contention(
    judged: Judgement, usable: Mask, thresholds: Thresholds
) -> tuple[tuple[Group, ...], Mask]:
    """Group what was slow with its round and is fast alone; see :class:`Findings`."""
    table, share = judged.table, judged.sticks.of_together(judged.table)
    fast_alone = judged.confirmed & judged.healthy
    unknown = table.together_busy | (judged.confirmed & ~judged.healthy) | ~usable
    slow = (share < thresholds.faulty_below) & ~unknown
    excused = np.zeros_like(slow)
    if not (slow & fast_alone).any():
        return (), excused
    contended = []
    for group in loose_groups(table.fabric, np.where(unknown, np.nan, share), slow, thresholds):
        tried = fast_alone[group.rows]
        if tried.any():
            contended.append(group)
        if tried.sum() >= thresholds.quiet_sample:
            excused[group.rows[~judged.confirmed[group.rows]]] = True
    return tuple(contended), excused


def loose_groups(fabric: Fabric, share: Floats, slow: Mask, thresholds: Thresholds) -> list[Group]:
    """Group ``slow`` links by what they run through, each link that fits nowhere by itself."""
    known = ~np.isnan(share)
    if slow.sum() >= (1 - _FAST_IN_SLOW_FLEET) * known.sum() and slow.sum() > 1:
        return [Group(None, np.flatnonzero(slow))]
    found = cover(
        fabric,
        share,
        slow=slow,
        clear=share >= thresholds.halfway(thresholds.faulty_below),
        confirmed=np.zeros_like(slow),
        rule=_LOOSE,
    )
    groups = [Group(suspect, np.flatnonzero(suspect.links)) for suspect in found.suspects]
    return groups + [Group(None, np.array([row])) for row in np.flatnonzero(found.left)]
