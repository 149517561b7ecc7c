"""The case against each host: what its evidence of one class amounts to under a rule."""

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from ncdiag.isolate.live import Live
from ncdiag.isolate.policy import Rule
from ncdiag.store.evidence_table import Column, EvidenceTable

# No number of runs makes anything certain.
_SUREST = 0.999
_ROUNDING = 1e-6


class Standing(IntEnum):
    """How far it goes, the least first."""

    NOTHING = 0
    INCONCLUSIVE = 1
    UNSURE = 2
    WATCHED = 3
    FEW_PARTNERS = 4
    UNCONFIRMED = 5
    IN_GRACE = 6
    ISOLATE = 7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassEvidence:
    """All evidence of one class, by its places in ``table``.

    ``rows`` accuse, and count until ``ends_s``; ``clean`` speak for a host.
    """

    table: EvidenceTable
    live: Live
    rule: Rule
    rows: Column
    ends_s: Column
    clean: Column

    def only(self, wanted: Column) -> "ClassEvidence":
        """The same with only those accusing pieces that are ``wanted``."""
        return replace(self, rows=self.rows[wanted], ends_s=self.ends_s[wanted])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cases:
    """One class, with a row for each host of the table.

    ``accusing`` of ``runs`` (the newest that count) speak against the host. ``until_s`` is when the
    last of it stops counting, infinity where it never does.
    """

    standing: Column
    confidence: Column
    accusing: Column
    runs: Column
    partners: Column
    until_s: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Runs:
    """The newest runs of each host, a row a host and run, the newest of a host first."""

    host: Column
    run: Column
    accuses: Column


def judge(seen: ClassEvidence) -> Cases:
    """The case against each host.

    What was seen within the rule's grace period counts only towards ``IN_GRACE``.
    """
    table, rule = seen.table, seen.rule
    standing = np.zeros(len(table.hosts), np.uint8)
    host = table.host[seen.rows]
    conclusive = table.conclusive[seen.rows]
    sure = conclusive & (table.confidence[seen.rows] >= rule.confidence - _ROUNDING)
    standing[host[~conclusive]] = Standing.INCONCLUSIVE
    standing[host[conclusive & ~sure]] = Standing.UNSURE
    if not rule.isolates:
        standing[host[sure]] = Standing.WATCHED
    seen = seen.only(sure)
    if rule.sticky or not rule.cleared_by_clean_runs:
        seen = replace(seen, clean=seen.clean[:0])
    whole = _count(seen, standing)
    early = table.uptime_s[seen.rows] < rule.grace_s  # NaN is not
    if rule.sticky or not early.any():
        return whole
    later = _count(seen.only(~early), standing)
    held = (whole.standing == Standing.ISOLATE) & (later.standing != Standing.ISOLATE)
    whole.standing[held] = Standing.IN_GRACE
    return whole


def _count(seen: ClassEvidence, at_least: Column) -> Cases:
    table, rule = seen.table, seen.rule
    hosts = len(table.hosts)
    runs = _newest_runs(seen)
    accused = runs.host[runs.accuses]
    accusing = np.bincount(accused, minlength=hosts)
    keys = accused.astype(np.int64) * len(table.runs) + runs.run[runs.accuses]
    seen = seen.only(np.isin(_keys(table, seen.rows), keys))
    until_s = np.full(hosts, -np.inf)
    np.maximum.at(until_s, table.host[seen.rows], seen.ends_s)
    partners = _partners(table, seen.rows, rule.partners)
    standing = at_least.copy()
    if rule.isolates:
        some = accusing > 0
        standing[some] = Standing.UNCONFIRMED
        confirmed = some & (accusing >= rule.confirmations)
        standing[confirmed] = Standing.FEW_PARTNERS
        standing[confirmed & (partners >= rule.partners)] = Standing.ISOLATE
    return Cases(
        standing=standing,
        confidence=_together(table, seen.rows),
        accusing=accusing,
        runs=np.bincount(runs.host, minlength=hosts),
        partners=partners,
        until_s=until_s,
    )


def _keys(table: EvidenceTable, rows: Column) -> Column:
    """One number for each host and run."""
    found: Column = table.host[rows].astype(np.int64) * len(table.runs) + table.run[rows]
    return found


def _newest_runs(seen: ClassEvidence) -> _Runs:
    """The rule's number of newest runs; accusing ones count where they lie close together."""
    table, live, rule = seen.table, seen.live, seen.rule
    rows, clean = seen.rows, seen.clean
    newest = np.full(len(table.hosts), -np.inf)
    np.maximum.at(newest, table.host[rows], live.seen_s[rows])
    # Clean runs before all that could still count change nothing.
    clean = clean[live.seen_s[clean] >= newest[table.host[clean]] - rule.within_s]
    clean = clean[np.isfinite(newest[table.host[clean]])]
    rows = rows[live.seen_s[rows] >= newest[table.host[rows]] - rule.within_s]
    accusing_keys, accusing_s = _latest(_keys(table, rows), live.seen_s[rows])
    clean_keys, clean_s = _latest(_keys(table, clean), live.seen_s[clean])
    other = ~np.isin(clean_keys, accusing_keys)  # a run that accuses is not clean
    keys = np.concatenate((accusing_keys, clean_keys[other]))
    seen_s = np.concatenate((accusing_s, clean_s[other]))
    accuses = np.arange(len(keys)) < len(accusing_keys)
    host, run = np.divmod(keys, max(len(table.runs), 1))
    order = np.lexsort((run, ~accuses, -seen_s, host))
    first = order[_place_within(host[order]) < rule.of]
    return _Runs(host=host[first], run=run[first], accuses=accuses[first])


def _latest(keys: Column, seen_s: Column) -> tuple[Column, Column]:
    """Each key once, with the latest time."""
    found, inverse = np.unique(keys, return_inverse=True)
    latest = np.full(len(found), -np.inf)
    np.maximum.at(latest, inverse, seen_s)
    return found, latest


def _place_within(sorted_keys: Column) -> Column:
    """The place of each row among those with the same key, which stand together."""
    count = len(sorted_keys)
    if not count:
        return np.empty(0, np.intp)
    starts = np.flatnonzero(np.concatenate(([True], sorted_keys[1:] != sorted_keys[:-1])))
    sizes = np.diff(np.append(starts, count))
    places: Column = np.arange(count) - np.repeat(starts, sizes)
    return places


def _partners(table: EvidenceTable, rows: Column, wanted: int) -> Column:
    """How many different partners each host was measured with, exact up to ``wanted``."""
    found = np.zeros(len(table.hosts), np.int32)
    if not wanted or not len(rows):
        return found
    pairs = np.unique(table.host[rows].astype(np.int64) * len(table.sets) + table.partners[rows])
    host, sets = pairs // len(table.sets), pairs % len(table.sets)
    used, inverse = np.unique(sets, return_inverse=True)
    sizes = np.array([len(table.sets[one]) for one in used.tolist()], np.int32)[inverse]
    np.maximum.at(found, host, sizes)
    few = found[host] < wanted
    together: dict[int, set[str]] = {}
    for one, members in zip(host[few].tolist(), sets[few].tolist(), strict=True):
        together.setdefault(one, set()).update(table.sets[members])
    for one, names in together.items():
        found[one] = len(names)
    return found


def _together(table: EvidenceTable, rows: Column) -> Column:
    """How sure all runs together are, which are taken to err independently."""
    keys, inverse = np.unique(_keys(table, rows), return_inverse=True)
    sure = np.zeros(len(keys))
    np.maximum.at(sure, inverse, np.minimum(table.confidence[rows], _SUREST))
    doubts = np.zeros(len(table.hosts))
    np.add.at(doubts, keys // max(len(table.runs), 1), np.log1p(-sure))
    found: Column = np.abs(np.expm1(doubts))
    return found
