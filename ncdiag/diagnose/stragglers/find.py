"""Names slow ranks by two rules: so many times the median, and out of line beyond chance."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ncdiag.diagnose.stragglers.chance import MAD_TO_SIGMA, Floats, threshold
from ncdiag.model.straggler import (
    IterationTable,
    SlowRank,
    StragglerReport,
    StragglerVerdict,
    TimeKind,
)

# What half the ranks share is the norm; of two nobody is the odd one.
LEAST_RANKS: Final = 3
# The scatter of so few ranks says nothing.
LEAST_ROBUST_RANKS: Final = 4
# The median of fewer iterations is not near enough to normal for the tail to be trusted.
LEAST_ITERATIONS: Final = 5
# Clocks are read in steps; ranks that agree within this are alike.
_LEAST_DEVIATION: Final = 1e-4
_WINDOW: Final = 10
_MOST_WINDOWS: Final = 10
# Ranks that wait for each other every iteration agree this well, or far better than iterations do.
_SYNCHRONOUS: Final = 0.005
_TOGETHER: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``false_alarms`` is how many healthy ranks the robust rule may name on average in a table.

    ``median_factor`` is the other rule's. A rank that is slower by less than ``least_slower`` is
    never named: it costs a job less than finding out why.
    """

    false_alarms: float = 0.05
    median_factor: float = 1.5
    least_slower: float = 0.02


@dataclass(frozen=True, slots=True)
class _Group:
    """Like ranks: their columns in the table, and how much longer than most each takes."""

    name: str | None
    columns: Floats
    relative: Floats  # (iterations, ranks): time over the median rank's of the same iteration
    ratios: Floats  # of each rank, the median over iterations; above 1 is slow
    scores: Floats


def find_stragglers(
    table: IterationTable, kind: TimeKind, settings: Settings | None = None
) -> StragglerReport:
    """Every slow rank of ``table``, the slowest first; see :class:`TimeKind` for what slow is."""
    settings = settings or Settings()
    groups = list(_groups(table, kind))
    judged = sum(len(group.ratios) for group in groups)
    slow = sorted(
        (one for group in groups for one in _slow(table, group, judged, settings, kind)),
        key=lambda one: (-one.ratio, one.rank),
    )
    reason = _undecided(table, groups, kind) if not slow else None
    robust = [group for group in groups if _is_robust(group)]
    known = table.seconds[np.isfinite(table.seconds)]
    verdict = StragglerVerdict.FOUND if slow else StragglerVerdict.NONE
    return StragglerReport(
        kind=kind,
        verdict=StragglerVerdict.UNDECIDED if reason else verdict,
        ranks=len(table.ranks),
        iterations=len(table.seconds),
        groups=len(set(table.groups.values())) or 1,
        median_s=float(np.median(known)) if known.size else None,
        slow=tuple(slow),
        slow_hosts=tuple(dict.fromkeys(one.host for one in slow if one.host is not None)),
        expected_false_alarms=settings.false_alarms
        * sum(len(group.ratios) for group in robust)
        / max(judged, 1),
        reason=reason,
        notes=(*table.notes, *_notes(table, groups)),
    )


def _groups(table: IterationTable, kind: TimeKind) -> Iterator[_Group]:
    """The groups that are large enough to tell an odd one, without ranks that have no times."""
    columns: dict[str | None, list[int]] = defaultdict(list)
    timed = np.flatnonzero(np.isfinite(table.seconds).sum(axis=0))
    for column in timed.tolist():
        columns[table.groups.get(table.ranks[column])].append(column)
    for name, chosen in sorted(columns.items(), key=lambda item: item[0] or ""):
        if len(chosen) >= LEAST_RANKS:
            yield _group(name, np.array(chosen), table.seconds[:, chosen], kind)


def _group(name: str | None, columns: Floats, seconds: Floats, kind: TimeKind) -> _Group:
    seconds = seconds[np.isfinite(seconds).any(axis=1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = seconds / np.nanmedian(seconds, axis=1, keepdims=True)
        if kind is TimeKind.COLLECTIVE:
            relative = 1.0 / relative
    relative = np.where(np.isfinite(relative), relative, np.nan)
    timed = np.isfinite(relative).any(axis=0)
    columns, relative = columns[timed], relative[:, timed]
    if not relative.size:
        return _Group(name, columns, relative, np.zeros(0), np.zeros(0))
    ratios = np.nanmedian(relative, axis=0)
    away = ratios - np.median(ratios)
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(away)))
    return _Group(name, columns, relative, ratios, away / max(deviation, _LEAST_DEVIATION))


def _is_robust(group: _Group) -> bool:
    return len(group.ratios) >= LEAST_ROBUST_RANKS and len(group.relative) >= LEAST_ITERATIONS


def _slow(
    table: IterationTable, group: _Group, judged: int, settings: Settings, kind: TimeKind
) -> Iterator[SlowRank]:
    far = np.inf
    if _is_robust(group):
        share = settings.false_alarms * len(group.ratios) / judged
        far = threshold(len(group.ratios), share)
    for number in np.flatnonzero(group.ratios > 1.0 + settings.least_slower):
        ratio, score = float(group.ratios[number]), float(group.scores[number])
        rules = []
        if ratio > settings.median_factor and kind is not TimeKind.COLLECTIVE:
            rules.append("median")
        if score > far:
            rules.append("robust")
        if not rules:
            continue
        rank = table.ranks[int(group.columns[number])]
        slow, total = _windows(group.relative[:, number], ratio)
        yield SlowRank(
            rank=rank,
            ratio=ratio,
            score=score,
            windows=slow,
            windows_total=total,
            rules=tuple(rules),
            host=table.hosts.get(rank),
            place=table.places.get(rank),
            group=group.name,
        )


def _windows(relative: Floats, ratio: float) -> tuple[int, int]:
    """In how many stretches of iterations a rank was at least half as slow as on the whole."""
    known = relative[np.isfinite(relative)]
    parts = np.array_split(known, max(1, min(_MOST_WINDOWS, len(known) // _WINDOW)))
    slow = sum(bool(np.median(part) > 1.0 + (ratio - 1.0) / 2) for part in parts)
    return slow, len(parts)


def _undecided(table: IterationTable, groups: Sequence[_Group], kind: TimeKind) -> str | None:
    """Why nothing can be said of a table in which no rank is slow; ``None`` where it can."""
    if not any(group.ratios.size for group in groups):
        return f"no group has {LEAST_RANKS} ranks with times, of which one could be the odd one out"
    if kind is TimeKind.ITERATION and all(_waits(table, group) for group in groups):
        return (
            "all ranks take the same time in every iteration, as they do when each waits for the "
            "slowest: time the computing alone (--kind compute), or collectives (--kind collective)"
        )
    if not any(map(_is_robust, groups)):
        return (
            f"too little to tell: {len(table.seconds)} iterations; the robust rule needs "
            f"{LEAST_ITERATIONS} and {LEAST_ROBUST_RANKS} ranks in a group"
        )
    return None


def _waits(table: IterationTable, group: _Group) -> bool:
    """Whether these ranks look as if each iteration ended for all at the same time."""
    if not group.ratios.size:
        return True
    between_ranks = float(np.nanmedian(np.abs(group.relative - 1.0)))
    medians = np.nanmedian(table.seconds[:, group.columns.astype(np.intp)], axis=1)
    medians = medians[np.isfinite(medians)]
    over_time = float(np.median(np.abs(medians / np.median(medians) - 1.0)))
    return between_ranks < _SYNCHRONOUS or between_ranks * _TOGETHER < over_time


def _notes(table: IterationTable, groups: Sequence[_Group]) -> Iterator[str]:
    left_out = len(table.ranks) - sum(len(group.ratios) for group in groups)
    if groups and left_out:
        yield (
            f"{left_out} of {len(table.ranks)} ranks were not judged: they have no times, or "
            f"their group has fewer than {LEAST_RANKS} ranks"
        )
