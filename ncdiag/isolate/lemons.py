"""Lemons: hosts that keep failing, each time for a while and perhaps each time otherwise.

The score of a host is the sum, over every class of evidence and every day on which it was seen, of
the weight of that class, halved for every half-life that has passed since. A fault that goes on
counts once a day, however often it was looked at. What many hosts show on one day is none of
theirs: a file server, a switch, a room or a new driver.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from ncdiag.isolate.live import Live
from ncdiag.isolate.policy import LemonRule
from ncdiag.store.evidence_table import KINDS, Column, EvidenceTable

DAY_S: Final = 86400.0
OUT: Final = "out"
# As often was Meta's own score right, or more (arXiv 2410.21680).
LEMON_CONFIDENCE: Final = 0.85
# More hosts than both show a cause that they share: crashes of jobs alone come to half a per cent.
_FEW_HOSTS: Final = 3
_SMALL_SHARE: Final = 0.05


def scores(
    table: EvidenceTable,
    live: Live,
    rule: LemonRule,
    outs: Mapping[str, Iterable[float]],
) -> tuple[Column, Column]:
    """The score of each host of ``table``, and on how many days anything counted.

    Only conclusive evidence counts, and nothing from before an operator's word that cleared the
    host. ``outs`` says when ncdiag isolated whom.
    """
    rows = np.flatnonzero(table.conclusive & ~table.clears & ~live.wiped)
    weights = _weights(table, rule, rows)
    counts = (weights > 0) & ~_shared(table, live, rows)
    rows, weights = rows[counts], weights[counts]
    host, seen_s = table.host[rows].astype(np.int64), live.seen_s[rows]
    class_ = table.class_[rows].astype(np.int64)
    more = _outs(table, live, outs)
    host = np.concatenate((host, np.array([place for place, _ in more], np.int64)))
    seen_s = np.concatenate((seen_s, np.array([when for _, when in more], float)))
    class_ = np.concatenate((class_, np.full(len(more), len(table.classes), np.int64)))
    out_weights = np.full(len(more), rule.weights.get(OUT, 0.0))
    weights = np.concatenate((weights, out_weights))
    day = np.floor(seen_s / DAY_S).astype(np.int64)
    # The newest of each host, class and day; the heaviest, where kinds of one class differ.
    order = np.lexsort((weights, seen_s, day, class_, host))
    last = np.ones(len(order), bool)
    keys = np.stack((host, class_, day))[:, order]
    last[:-1] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    once = order[last]
    decayed = weights[once] * np.exp2(-(live.now_s - seen_s[once]) / rule.half_life_s)
    count = len(table.hosts)
    score = np.bincount(host[once], weights=decayed, minlength=count)
    days = np.unique(np.stack((host[once], day[once])), axis=1)[0]
    return score, np.bincount(days, minlength=count)


def _weights(table: EvidenceTable, rule: LemonRule, rows: Column) -> Column:
    lookup = np.array(
        [[rule.weight(kind, class_) for class_ in table.classes] for kind in KINDS], float
    ).reshape(len(KINDS), len(table.classes))
    found: Column = lookup[table.kind[rows], table.class_[rows]]
    return found


def _shared(table: EvidenceTable, live: Live, rows: Column) -> Column:
    """Which of ``rows`` are of a class that many hosts show on the same day."""
    day = np.floor(live.seen_s[rows] / DAY_S).astype(np.int64)
    what = day * len(table.classes) + table.class_[rows]
    by_host = np.unique(what * len(table.hosts) + table.host[rows])
    seen, hosts = np.unique(by_host // max(len(table.hosts), 1), return_counts=True)
    many = seen[hosts > max(_FEW_HOSTS, _SMALL_SHARE * len(table.hosts))]
    found: Column = np.isin(what, many)
    return found


def _outs(
    table: EvidenceTable, live: Live, outs: Mapping[str, Iterable[float]]
) -> Sequence[tuple[int, float]]:
    places = {name: place for place, name in enumerate(table.hosts)}
    return [
        (places[host], min(max(when, 0.0), live.now_s))
        for host in sorted(outs)
        if host in places
        for when in sorted(outs[host])
        if when > live.word_s[places[host]]
    ]
