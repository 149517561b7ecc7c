"""Which evidence still counts: what expired, was cleared, or came before an operator's word."""

from dataclasses import dataclass

import numpy as np

from ncdiag.isolate.policy import Policy
from ncdiag.model.isolation import EvidenceKind
from ncdiag.store.evidence_table import KINDS, Column, EvidenceTable

_OPERATOR = KINDS.index(EvidenceKind.OPERATOR)
# Clocks of a host and of whoever asked it differ; a boot is dated by both.
_BOOT_SLACK_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Live:
    """Columns beside those of the table, and one of each host.

    ``seen_s`` is never later than now; ``later`` marks pieces that are dated so. ``wiped`` marks
    what an operator's word ended, ``booted_s`` is when each host booted last, as far as known.
    """

    now_s: float
    seen_s: Column
    later: Column
    wiped: Column
    word_s: Column
    booted_s: Column


def see(table: EvidenceTable, now_s: float) -> Live:
    """What holds of each piece at ``now_s``, before any rule is asked."""
    seen_s = np.clip(np.nan_to_num(table.seen_s, nan=0.0), 0.0, now_s)
    word_s = np.full(len(table.hosts), -np.inf)
    words = (table.kind == _OPERATOR) & table.clears
    np.maximum.at(word_s, table.host[words], seen_s[words])
    booted_s = np.full(len(table.hosts), -np.inf)
    known = np.isfinite(table.uptime_s)
    np.maximum.at(booted_s, table.host[known], (seen_s - table.uptime_s)[known])
    return Live(
        now_s=now_s,
        seen_s=seen_s,
        later=table.seen_s > now_s,
        wiped=seen_s <= word_s[table.host],
        word_s=word_s,
        booted_s=booted_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """The accusing pieces by kind and class, and the clean runs by kind."""

    keys: tuple[tuple[EvidenceKind, str], ...]
    rows: tuple[Column, ...]
    clean: dict[EvidenceKind, Column]


def group(table: EvidenceTable, live: Live) -> Groups:
    """The groups by name, each with the places of its pieces."""
    accusing = np.flatnonzero(~table.clears & ~live.wiped)
    codes = table.class_[accusing].astype(np.int64) * len(KINDS) + table.kind[accusing]
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    clean = np.flatnonzero(table.clears & ~live.wiped)
    return Groups(
        keys=tuple(
            (KINDS[code % len(KINDS)], table.classes[code // len(KINDS)]) for code in found.tolist()
        ),
        rows=tuple(np.split(accusing[order], starts[1:])) if len(found) else (),
        clean={kind: clean[table.kind[clean] == place] for place, kind in enumerate(KINDS)},
    )


def ends_s(
    table: EvidenceTable, live: Live, rows: Column, policy: Policy, key: tuple[EvidenceKind, str]
) -> Column:
    """When each of ``rows`` stops counting; never, where it is sticky: infinity."""
    rule = policy.rule(*key)
    own = table.until_s[rows]
    by_age = live.seen_s[rows] + rule.counts_for_s
    found = np.where(np.isnan(own), np.inf if rule.sticky else by_age, own)
    if rule.cleared_by_boot and not rule.sticky:
        booted = live.seen_s[rows] < live.booted_s[table.host[rows]] - _BOOT_SLACK_S
        found = np.where(booted, -np.inf, found)
    ended: Column = found
    return ended
