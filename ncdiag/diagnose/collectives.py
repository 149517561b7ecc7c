"""Which rank of which process group is behind, ahead, or the odd one out.

No rank is taken for right beforehand: sides are compared with one another, by their size and by
what each is waiting for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ncdiag.diagnose.calls import Call, calls_at, described, operation
from ncdiag.diagnose.divergence import Divergence, DivergenceKind
from ncdiag.diagnose.standing import Group, Standing, groups_of, newest_dumps
from ncdiag.diagnose.transfers import unmatched
from ncdiag.model.log import FlightDump, GroupProgress

__all__ = ["Divergence", "DivergenceKind", "analyse"]

_Kind = DivergenceKind
# In these some ranks are done as soon as they sent: that others are not proves little.
_ONE_SIDED = frozenset({"broadcast", "reduce", "scatter", "gather"})
MAX_PLACES = 16


def analyse(
    dumps: Sequence[FlightDump], progress: Sequence[GroupProgress] = ()
) -> list[Divergence]:
    """Divergences of all groups, causes before their echoes; none where nobody waits."""
    by_rank = newest_dumps(dumps)
    groups = groups_of(by_rank, progress)
    found = [each for group in groups for each in _judge(group, by_rank)]
    found.extend(unmatched(by_rank))
    found = _echoes(found, groups)
    return sorted(found, key=lambda each: (not each.accuses, -each.confidence))


def folded(ranks: Iterable[int]) -> str:
    """Ranks as ``0-3,7``."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _judge(group: Group, dumps: dict[int, FlightDump]) -> list[Divergence]:
    standings = group.standings
    waited = group.frontier
    parted = _first_not_common(group)
    late = 0 if group.keeps_states else 1
    found = []
    if odd := _odd(group):
        found = [odd]
    elif parted is not None and (waited is None or parted <= waited + late):
        found = [_parted(group, parted)]
    if waited is None:
        return found
    waiting = [r for r, each in standings.items() if each.waiting is not None]
    absent = _without_dump(group, dumps) if dumps else ()
    found = found or [_standstill(group, waited, absent)]
    if absent:
        found.append(_no_dump(group, waited, absent, waiting))
    return found


def _first_not_common(group: Group) -> int | None:
    """The first collective that some called and others did not, if it needs everybody.

    Whether those who called it count it as done does not matter: aborted calls are marked so, too.
    """
    enqueued = {standing.enqueued for standing in group.standings.values()}
    if len(enqueued) < 2:
        return None
    low = min(enqueued)
    seq = low + 1
    if low < 0:
        called = (seq for each in group.standings.values() for seq in each.calls)
        seq = min(called, default=seq)
    waits = any(each.waiting is not None and each.waiting <= seq for each in _callers(group, seq))
    one_sided = (_op(list(group.standings.values()), seq) or "") in _ONE_SIDED
    return seq if waits or not one_sided else None


def _callers(group: Group, seq: int) -> list[Standing]:
    return [each for each in group.standings.values() if each.enqueued >= seq]


def _divergence(
    group: Group,
    kind: DivergenceKind,
    seq: int,
    ranks: Iterable[int],
    others: Iterable[int],
    *,
    explanation: str,
    confidence: float,
) -> Divergence:
    ranks, others = tuple(sorted(ranks)), tuple(sorted(others))
    standings = group.standings
    callers = [standings[rank] for rank in others + ranks if rank in standings]
    entries = [entry for standing in callers for entry in standing.calls.get(seq, ())]
    odd = [e for rank in ranks if rank in standings for e in standings[rank].calls.get(seq, ())]
    return Divergence(
        group=group.name,
        description=group.description,
        kind=kind,
        ranks=ranks,
        others=others,
        seq=seq,
        op=_op(callers, seq),
        odd_op=operation(odd[0]) if odd and kind is _Kind.ODD else None,
        timeout_ms=next((e.timeout_ms for e in entries if e.timeout_ms is not None), None),
        explanation=explanation,
        confidence=confidence,
        at=_at(standings[ranks[0]], seq) if ranks and ranks[0] in standings else None,
        places=tuple(
            standings[rank].place for rank in (ranks + others)[:MAX_PLACES] if rank in standings
        ),
    )


def _at(standing: Standing, seq: int) -> str | None:
    """Where the program made its call ``seq``, or the last before it."""
    numbers = [number for number in standing.calls if number <= seq]
    if not numbers:
        return None
    frames = standing.calls[max(numbers)][0].frames
    own = (frame for frame in frames if "/torch/" not in frame)
    return next(own, frames[0] if frames else None)


def _op(standings: Sequence[Standing], seq: int) -> str | None:
    for standing in standings:
        if entries := standing.calls.get(seq):
            return operation(entries[0])
    return next((standing.op for standing in standings if standing.op), None)


def _what(group: Group, seq: int) -> str:
    op = _op(list(group.standings.values()), seq)
    return f"{op or 'the call'} (collective {seq} of group {group.label})"


def _who(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {folded(ranks)}"


def _have(ranks: Sequence[int], one: str, many: str) -> str:
    return f"{_who(ranks)} {one if len(ranks) == 1 else many}"


def _parted(group: Group, seq: int) -> Divergence:
    """Some called ``seq``, the others did not: two sides, and the smaller one is named."""
    callers = [each.rank for each in _callers(group, seq)]
    lacking = [rank for rank in group.standings if rank not in callers]
    what = _what(group, seq)
    last = max(0, *(group.standings[rank].enqueued for rank in lacking))
    # Where nobody waits, a dump may just have been made later than another.
    waits = group.frontier is not None or not group.keeps_states
    sure = 1.0 if waits else 0.7
    if len(callers) < len(lacking):
        text = (
            f"only {_have(callers, 'is', 'are')} in {what}; {_have(lacking, 'has', 'have')} called "
            f"no more than {last}: either {_who(callers)} called one more than the others, or "
            "these all stopped before it"
        )
        return _divergence(
            group, _Kind.AHEAD, seq, callers, lacking, explanation=text, confidence=0.6 * sure
        )
    text = (
        f"{_have(lacking, 'has', 'have')} not called {what}, which {_have(callers, 'has', 'have')} "
        f"called: stopped in the program after {last}, or one call left out"
    ) + _called_at(group, seq, lacking[0], "last ")
    confidence = sure * (0.85 if len(lacking) < len(callers) else 0.5)
    return _divergence(
        group, _Kind.BEHIND, seq, lacking, callers, explanation=text, confidence=confidence
    )


def _odd(group: Group) -> Divergence | None:
    """The first number under which ranks called different things; the fewer are named."""
    numbers = sorted({seq for each in group.standings.values() for seq in each.calls})
    for seq in numbers:
        sides: dict[tuple[Call, ...], list[int]] = {}
        for rank, standing in group.standings.items():
            if entries := standing.calls.get(seq):
                sides.setdefault(calls_at(entries), []).append(rank)
        if len(sides) > 1:
            return _sides(group, seq, sorted(sides.items(), key=lambda side: -len(side[1])))
    return None


def _sides(
    group: Group, seq: int, sides: Sequence[tuple[tuple[Call, ...], list[int]]]
) -> Divergence:
    told = "; ".join(f"{_who(ranks)}: {described(calls)}" for calls, ranks in sides[:4])
    text = f"in collective {seq} of group {group.label} the calls differ: {told}"
    (most, many), (_, second) = sides[:2]
    odd = [rank for _, ranks in sides[1:] for rank in ranks]
    if len(many) == len(second):
        text += "; no side is larger"
        return _divergence(group, _Kind.ODD, seq, many + odd, (), explanation=text, confidence=0.4)
    text += _shift(group, seq, most, many, odd) + _called_at(group, seq, odd[0])
    return _divergence(group, _Kind.ODD, seq, odd, many, explanation=text, confidence=0.9)


def _shift(
    group: Group, seq: int, most: tuple[Call, ...], many: Sequence[int], odd: Sequence[int]
) -> str:
    """Whether one side's calls are the other's, moved by one."""
    if len(odd) != 1:
        return ""
    here = group.standings[odd[0]].calls
    there = group.standings[many[0]].calls
    mine, my_next = (calls_at(here.get(number, ())) for number in (seq, seq + 1))
    if my_next == most:
        return f"; rank {odd[0]} calls {described(most)} next: it may have called one too many"
    if mine == calls_at(there.get(seq + 1, ())):
        return f"; the others call {described(mine)} next: rank {odd[0]} may have left one out"
    return ""


def _called_at(group: Group, seq: int, rank: int, what: str = "") -> str:
    at = _at(group.standings[rank], seq)
    return f"; rank {rank} {what}called from {at}" if at else ""


def _standstill(group: Group, seq: int, absent: Sequence[int]) -> Divergence:
    """All called ``seq`` alike; some or all are still in it."""
    ranks = list(group.standings)
    waiting = [r for r, s in group.standings.items() if s.waiting is not None and s.waiting <= seq]
    done = [rank for rank in ranks if rank not in waiting]
    what = _what(group, seq)
    # Back-ends that keep no state count a call that failed as done.
    states = {e.state for rank in done for e in group.standings[rank].calls.get(seq, ())}
    if not done or states == {"scheduled"}:
        text = f"{_have(ranks, 'has', 'have')} called {what} alike and it does not end: " + (
            f"{_have(absent, 'has', 'have')} left no dump" if absent else "the network or a GPU"
        )
        return _divergence(group, _Kind.STUCK, seq, ranks, (), explanation=text, confidence=0.5)
    text = (
        f"all called {what}; {_have(done, 'is', 'are')} done with it and {_who(waiting)} not: "
        "look at the GPU, the host and the links of those"
    )
    op = _op(list(group.standings.values()), seq) or ""
    confidence = 0.6 if len(waiting) < len(done) and op not in _ONE_SIDED else 0.4
    return _divergence(
        group, _Kind.UNFINISHED, seq, waiting, done, explanation=text, confidence=confidence
    )


def _without_dump(group: Group, dumps: dict[int, FlightDump]) -> tuple[int, ...]:
    """Members that left no dump; of the default group of unknown size, gaps in the numbers."""
    members: Iterable[int] = group.members
    if not members and group.is_default:
        members = range(max(group.standings) + 1)
    return tuple(rank for rank in members if rank not in dumps and rank not in group.standings)


def _no_dump(group: Group, seq: int, absent: Sequence[int], waiting: Sequence[int]) -> Divergence:
    text = (
        f"{_have(waiting, 'waits', 'wait')} in {_what(group, seq)} and "
        f"{_have(absent, 'is', 'are')} without a dump: ended before, or the file is elsewhere"
    )
    confidence = 0.6 if len(absent) < len(waiting) else 0.3
    return _divergence(
        group, _Kind.NO_DUMP, seq, absent, waiting, explanation=text, confidence=confidence
    )


def _echoes(found: list[Divergence], groups: Sequence[Group]) -> list[Divergence]:
    """Mark what is explained by another group, in which those who do not come are blocked."""
    blocked_in: dict[str, set[int]] = {}
    for group in groups:
        stuck = {rank for rank, each in group.standings.items() if each.waiting is not None}
        blocked_in.setdefault(group.name, set()).update(stuck)
    marked = [_echo(each, found, blocked_in) for each in found]
    waits = {each.group: each.waiting_in for each in marked if each.waiting_in}
    return [_uncircled(each, waits) for each in marked]


def _echo(
    each: Divergence, found: Sequence[Divergence], blocked_in: dict[str, set[int]]
) -> Divergence:
    """Of those who do not come, the ones that are blocked elsewhere cannot."""
    if each.kind not in (_Kind.BEHIND, _Kind.AHEAD, _Kind.UNMATCHED):
        return each
    late, early = each.ranks, each.others
    if each.kind is _Kind.AHEAD:
        late, early = early, late
    where = {
        rank: other.group
        for other in reversed(found)
        if other.group != each.group
        for rank in late
        if rank in blocked_in.get(other.group, set())
    }
    if not where:
        return each
    blocked, free = tuple(sorted(where)), tuple(rank for rank in late if rank not in where)
    text = (
        f"{_have(blocked, 'has', 'have')} not come to collective {each.seq} of group {each.group}, "
        f"being blocked in group {', '.join(sorted(set(where.values())))}"
    )
    each = replace(each, ranks=late, others=early, explanation=text)
    if each.kind is _Kind.AHEAD:
        each = replace(each, kind=_Kind.BEHIND)
    if not free:
        return replace(each, waiting_in=where[blocked[0]])
    text += f"; {_have(free, 'has', 'have')} not come either and {_have(free, 'waits', 'wait')}"
    return replace(each, ranks=free, explanation=f"{text} for nobody")


def _uncircled(each: Divergence, waits: dict[str, str]) -> Divergence:
    """Groups that wait for one another in a circle explain nothing of each other."""
    seen = [each.group]
    while (following := waits.get(seen[-1])) and following not in seen:
        seen.append(following)
    if each.waiting_in is None or following != each.group:
        return each
    return replace(
        each,
        waiting_in=None,
        confidence=0.7,
        explanation=f"{each.explanation}, which waits for the others in turn: the order of calls "
        f"in groups {', '.join(sorted(seen))} differs between ranks",
    )
