"""Names slow ranks by two rules: so many times the median, and out of line beyond chance."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ncdiag.diagnose.stragglers.chance import Floats, threshold
from ncdiag.diagnose.stragglers.figures import now_and_then, relative_logs, scores
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
_SHORTEST_S: Final = 1e-12
_LONGEST_S: Final = 1e12
_WINDOW: Final = 10
_MOST_WINDOWS: Final = 10
# Ranks that wait for each other every iteration agree this well, or far better than iterations do.
_SYNCHRONOUS: Final = 0.005
_TOGETHER: Final = 3.0
# Ranks that are too fast by chance are as many as are too slow; so many more are no chance.
_MORE_THAN_CHANCE: Final = 3.0
_LEAST_FAST: Final = 5
# When more of the ranks than this are slow they are rather of another kind.
_MOST_SLOW: Final = 0.2
_SHOWN: Final = 5
_LOG_FAR: Final = 700.0


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
    often: Floats  # the share of iterations in which a rank is slow now and then


def find_stragglers(
    table: IterationTable, kind: TimeKind, settings: Settings | None = None
) -> StragglerReport:
    """Every slow rank of ``table``, the slowest first; see :class:`TimeKind` for what slow is."""
    # What no clock of a computer tells is missing: zero, less than that, thousands of years.
    sound = (table.seconds > _SHORTEST_S) & (table.seconds < _LONGEST_S)
    table = replace(table, seconds=np.where(sound, table.seconds, np.nan))
    settings = settings or Settings()
    groups = list(_groups(table, kind))
    judged = sum(len(group.ratios) for group in groups)
    slow = sorted(
        (one for group in groups for one in _slow(table, group, judged, settings, kind)),
        key=lambda one: (-one.ratio, one.rank),
    )
    reason = _undecided(table, groups, kind) if not slow else None
    robust = sum(len(group.ratios) for group in groups if _is_robust(group))
    stated = settings.false_alarms * robust / max(judged, 1)
    fast = sum(_fast(group, judged, settings) for group in groups)
    too_fast = fast >= max(_LEAST_FAST, _MORE_THAN_CHANCE * stated)
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
        expected_false_alarms=float(fast) if too_fast else stated,
        reason=reason,
        notes=(
            *table.notes,
            *_notes(table, groups),
            *_doubts(fast if too_fast else 0, len(slow), judged),
            *_comes_and_goes(table, groups, {one.rank for one in slow}),
        ),
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
    logs = relative_logs(seconds)
    timed, known = np.isfinite(logs).any(axis=0), np.isfinite(logs).any(axis=1)
    columns, logs = columns[timed], logs[known][:, timed]
    if not logs.size:
        return _Group(name, columns, logs, *(np.zeros(0),) * 3)
    if kind is TimeKind.COLLECTIVE:
        logs = -logs
    figures = np.nanmedian(logs, axis=0)
    centre = np.median(figures)
    logs, figures = logs - centre, figures - centre
    return _Group(
        name,
        columns,
        np.exp(np.clip(logs, -_LOG_FAR, _LOG_FAR)),
        np.exp(np.clip(figures, -_LOG_FAR, _LOG_FAR)),
        scores(logs, figures),
        now_and_then(logs, figures),
    )


def _is_robust(group: _Group) -> bool:
    return len(group.ratios) >= LEAST_ROBUST_RANKS and len(group.relative) >= LEAST_ITERATIONS


def _far(group: _Group, judged: int, settings: Settings) -> float:
    """The score from which on the robust rule names a rank of this group."""
    if not _is_robust(group):
        return float("inf")
    return threshold(len(group.ratios), settings.false_alarms * len(group.ratios) / judged)


def _slow(
    table: IterationTable, group: _Group, judged: int, settings: Settings, kind: TimeKind
) -> Iterator[SlowRank]:
    far = _far(group, judged, settings)
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


def _fast(group: _Group, judged: int, settings: Settings) -> int:
    """How many ranks are as far out on the other side, where no fault puts them."""
    fast = group.ratios < 1.0 / (1.0 + settings.least_slower)
    return int(np.sum(fast & (group.scores < -_far(group, judged, settings))))


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
    seconds = table.seconds[:, group.columns.astype(np.intp)]
    medians = np.nanmedian(seconds[np.isfinite(seconds).any(axis=1)], axis=1)
    over_time = float(np.median(np.abs(medians / np.median(medians) - 1.0)))
    return between_ranks < _SYNCHRONOUS or between_ranks * _TOGETHER < over_time


def _notes(table: IterationTable, groups: Sequence[_Group]) -> Iterator[str]:
    left_out = len(table.ranks) - sum(len(group.ratios) for group in groups)
    if groups and left_out:
        yield (
            f"{left_out} of {len(table.ranks)} ranks were not judged: they have no times, or "
            f"their group has fewer than {LEAST_RANKS} ranks"
        )


def _doubts(fast: int, slow: int, judged: int) -> Iterator[str]:
    if fast:
        yield (
            f"{fast} ranks are as far out on the fast side, where no fault puts them: ranks differ "
            "by more than noise explains, so as many of the slow ones may be healthy"
        )
    if slow > max(1, _MOST_SLOW * judged):
        yield (
            f"{slow} of {judged} ranks are slow: rather ranks of another kind than faults; "
            "--map with a group for each kind, or --pipeline-stages, compares like with like"
        )


def _comes_and_goes(
    table: IterationTable, groups: Sequence[_Group], named: Collection[int]
) -> Iterator[str]:
    found = [
        (table.ranks[int(group.columns[number])], float(group.often[number]))
        for group in groups
        for number in np.flatnonzero(group.often)
    ]
    found = [(rank, share) for rank, share in found if rank not in named]
    for rank, share in found[:_SHOWN]:
        place = table.places.get(rank) or table.hosts.get(rank)
        where = f" on {place}" if place else ""
        often = f"{100 * share:.0f} % of its iterations"
        yield f"rank {rank}{where} is slow in {often}, and named by no rule"
    if len(found) > _SHOWN:
        yield f"so are {len(found) - _SHOWN} more ranks"
