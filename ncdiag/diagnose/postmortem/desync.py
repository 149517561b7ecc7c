"""Ranks that are behind or ahead of the others in one process group."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from ncdiag.diagnose.collectives import Divergence, DivergenceKind, analyse
from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Suspect, SuspectKind
from ncdiag.model.log import GroupProgress

_PARTED = frozenset(
    {DivergenceKind.BEHIND, DivergenceKind.AHEAD, DivergenceKind.ODD, DivergenceKind.UNMATCHED}
)


def desyncs(case: Case) -> list[Draft]:
    """Drafts of what flight recorders and watchdogs prove."""
    evidence = case.evidence
    if evidence.dumps:
        found = analyse(evidence.dumps, evidence.progress)
        missed = {each.group for each in found if each.kind is DivergenceKind.NO_DUMP}
        return [_of_divergence(each) for each in found if _tells(each, missed)]
    return list(_of_progress(evidence.progress))


def _tells(divergence: Divergence, missed: Collection[str]) -> bool:
    """Whether it is a finding of its own: a standstill is not where a dump is missing."""
    explained = divergence.kind is DivergenceKind.STUCK and divergence.group in missed
    return bool(divergence.places) and not explained


def _of_divergence(divergence: Divergence) -> Draft:
    parted = divergence.kind in _PARTED
    attributes = {"op": divergence.op or "", "seq": _text(divergence.seq)}
    if not parted:
        attributes["timeout_ms"] = _text(divergence.timeout_ms)
    attributes["group"] = divergence.description or divergence.group
    draft = derived(
        C.TORCH_DESYNC if parted else C.TORCH_WATCHDOG_TIMEOUT,
        divergence.places[0],
        divergence.explanation,
        attributes={key: value for key, value in attributes.items() if value},
        ranks=divergence.ranks if divergence.accuses else (),
    )
    draft.confidence = divergence.confidence
    draft.notes.append(divergence.explanation)
    if not parted:
        named = (str(rank) for rank in draft.ranks)
        draft.suspects += [Suspect(kind=SuspectKind.RANK, name=rank) for rank in named]
    return draft


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _of_progress(progress: Iterable[GroupProgress]) -> Iterator[Draft]:
    """Compare the ranks of each named or numbered group; lines without a group prove nothing."""
    groups: dict[str, dict[int, GroupProgress]] = {}
    for record in progress:
        rank = record.rank if record.rank is not None else record.group_rank
        if record.group is None or rank is None:
            continue
        ranks = groups.setdefault(_key(record.group), {})
        ranks[rank] = merged(ranks[rank], record) if rank in ranks else record
    for name, ranks in groups.items():
        if draft := _compare(name, ranks):
            yield draft


def _key(group: str) -> str:
    """A group by its name, the same on all ranks, else by its number."""
    return group.strip()


def merged(old: GroupProgress, new: GroupProgress) -> GroupProgress:
    """What both records say of a rank; the earliest time-out and the latest progress."""
    return GroupProgress(
        rank=old.rank if old.rank is not None else new.rank,
        group=old.group,
        place=old.place,
        group_rank=old.group_rank if old.group_rank is not None else new.group_rank,
        timed_out=old.timed_out if old.timed_out is not None else new.timed_out,
        op=old.op or new.op,
        timeout_ms=old.timeout_ms or new.timeout_ms,
        enqueued=_latest(old.enqueued, new.enqueued),
        started=_latest(old.started, new.started),
        completed=_latest(old.completed, new.completed),
    )


def _latest(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return max(known, default=None)


def _compare(name: str, ranks: dict[int, GroupProgress]) -> Draft | None:
    """The ranks that are not where the others wait."""
    waits = {rank: w for rank, r in ranks.items() if (w := _waits_at(r)) is not None}
    if not waits:
        return None
    seq, op = _common(ranks, waits)
    behind = {rank: "behind" for rank, r in ranks.items() if _enqueued(r) < seq}
    ahead = {rank: "ahead" for rank in waits if waits[rank] > seq and rank not in behind}
    odd = {
        rank: f"in {ranks[rank].op}"
        for rank in waits
        if waits[rank] == seq and op and ranks[rank].op and ranks[rank].op != op
    }
    apart = {**behind, **ahead, **odd}
    if not apart:
        return None
    first = min(ranks.values(), key=lambda record: (record.place.path, record.place.line))
    attributes = {"seq": str(seq)} | ({"op": op} if op else {})
    told = [f"rank {rank} is {what}" for rank, what in sorted(apart.items())]
    text = f"group {name}: the others wait in {op or 'work'} {seq}, {listed(told)}"
    draft = derived(C.TORCH_DESYNC, first.place, text, attributes=attributes, ranks=sorted(apart))
    draft.notes.append(text[0].upper() + text[1:] + ".")
    return draft


def _waits_at(record: GroupProgress) -> int | None:
    """The work that a rank waits for: the one that timed out, else what it enqueued last."""
    if record.timed_out is not None:
        return record.timed_out
    if record.enqueued is None or record.completed is None or record.enqueued < 0:
        return None
    return record.completed + 1 if record.enqueued > record.completed else None


def _enqueued(record: GroupProgress) -> int:
    """The last work that a rank is known to have enqueued; what waits was enqueued."""
    known = [number for number in (record.enqueued, record.timed_out) if number is not None]
    return max(known, default=1 << 62)


def _common(ranks: dict[int, GroupProgress], waits: dict[int, int]) -> tuple[int, str]:
    """The work that most ranks wait for, the earliest of equals, and what they call it."""
    counts = Counter(waits.values())
    seq = min(counts, key=lambda number: (-counts[number], number))
    ops = Counter(ranks[rank].op or "" for rank, number in waits.items() if number == seq)
    return seq, ops.most_common(1)[0][0]
