"""Which pairs have to be measured again with the fabric otherwise quiet."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ncdiag.diagnose.investigate import Findings, investigate, loose_groups
from ncdiag.diagnose.table import Ints, Mask
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.measurement import PairKey


def suspects(evidence: SweepEvidence, thresholds: Thresholds) -> list[PairKey]:
    """Pairs to measure again in quiet, the most telling first; empty when nothing is left to ask.

    Asked for are links that are slow, failed, damaged data or were measured beside a busy CPU, and
    those of which round and quiet figure disagree. Of a component that many links accuse only a
    sample is taken; each pair is asked for at most ``quiet_tries`` times. Call again with the new
    results.
    """
    found = investigate(evidence, thresholds)
    rows = np.concatenate(
        [_sample(found, group, thresholds) for group in _groups(found, thresholds)]
        + [_to_repeat(found, thresholds)]
    )
    return _in_turns(found, rows.tolist())


def suspected_hosts(evidence: SweepEvidence, thresholds: Thresholds) -> set[str]:
    """Hosts at either end of a link that is not healthy, so far as measured."""
    found = investigate(evidence, thresholds)
    fabric, rows = found.judged.table.fabric, ~found.judged.healthy
    ends = np.union1d(fabric.source[rows], fabric.target[rows])
    return {fabric.hosts[end] for end in ends.tolist()}


def _groups(found: Findings, thresholds: Thresholds) -> Iterable[Ints]:
    """Rows of links that can be asked for each other."""
    for suspect in (*found.suspects, *found.doubtful):
        yield np.flatnonzero(suspect.links)
    yield np.flatnonzero(found.fleet)
    share = np.where(found.usable & ~found.excused, found.judged.sticks.share, np.nan)
    waiting = found.single & ~found.judged.confirmed & ~np.isnan(share)
    if waiting.any():
        yield from (
            group.rows
            for group in loose_groups(found.judged.table.fabric, share, waiting, thresholds)
        )


def _sample(found: Findings, rows: Ints, thresholds: Thresholds) -> Ints:
    """Return the rows to ask for so that enough of the group have been measured in quiet."""
    tries = found.judged.table.tries
    wanted = rows[(tries[rows] == 0) & found.usable[rows]]
    missing = thresholds.quiet_sample - int((tries[rows] > 0).sum())
    if missing <= 0:
        return np.empty(0, dtype=np.int64)
    pairs = _in_turns(found, wanted.tolist())[:missing]
    chosen = {link for pair in pairs for link in pair.directions}
    keys = found.judged.table.keys
    return np.array([row for row in wanted.tolist() if keys[row] in chosen], dtype=np.int64)


def _to_repeat(found: Findings, thresholds: Thresholds) -> Ints:
    """Return rows whose figure is missing, doubtful, or contradicts the one before."""
    judged, table = found.judged, found.judged.table
    together = judged.sticks.of_together(table)
    reached = (together >= thresholds.reached) & ~table.together_busy
    contradicts = judged.confirmed & reached & (judged.faulty | judged.degraded)
    repeat = judged.error | judged.inconclusive | contradicts
    # Nothing acquits a link of damage, but how often it shows helps whoever looks for the cause.
    repeat |= judged.damaged & (table.tries == 0)
    repeat &= found.usable & (table.tries < thresholds.quiet_tries)
    return np.flatnonzero(repeat & ~_tried_often(found, thresholds))


def _tried_often(found: Findings, thresholds: Thresholds) -> Mask:
    """Return links of hosts whose failures were already repeated for a whole sample of pairs."""
    judged, fabric = found.judged, found.judged.table.fabric
    failed = (judged.error | judged.inconclusive | judged.damaged) & (judged.table.tries > 0)
    hosts = len(fabric.hosts)
    count = np.bincount(fabric.source[failed], minlength=hosts)
    count += np.bincount(fabric.target[failed], minlength=hosts)
    often = count >= 2 * thresholds.quiet_sample
    tired: Mask = often[fabric.source] | often[fabric.target]
    return tired


def _in_turns(found: Findings, rows: Iterable[int]) -> list[PairKey]:
    """Return the pairs of ``rows``, once each, so that every host involved gets its turn."""
    keys = found.judged.table.keys
    place = {name: number for number, name in enumerate(found.judged.table.fabric.hosts)}
    pairs = dict.fromkeys(
        key if place[key.first] < place[key.second] else PairKey(key.second, key.first, key.rail)
        for key in (PairKey(*keys[row]) for row in rows)
    )
    seen: Counter[str] = Counter()
    turns = []
    for pair in pairs:
        turns.append((seen[pair.first] + seen[pair.second], pair))
        seen.update((pair.first, pair.second))
    return [pair for _, pair in sorted(turns, key=lambda turn: turn[0])]
