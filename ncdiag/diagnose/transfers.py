"""Sends and receives whose other end was not posted, or was posted otherwise."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ncdiag.diagnose.divergence import Divergence, DivergenceKind
from ncdiag.model.log import FlightDump, FlightEntry

_TRANSFER = re.compile(r"(send|recv) (\d{1,9})(->|<-)(\d{1,9})")


class _Transfer(NamedTuple):
    entry: FlightEntry
    rank: int
    verb: str
    source: int
    target: int

    @property
    def elements(self) -> int:
        sizes = self.entry.input_sizes if self.verb == "send" else self.entry.output_sizes
        return sum(math.prod(size) for size in sizes or self.entry.input_sizes)


def unmatched(dumps: Mapping[int, FlightDump]) -> Iterator[Divergence]:
    """Transfers that wait, one divergence a pair of ranks, direction and group."""
    waiting: dict[tuple[str, int, int], dict[str, list[_Transfer]]] = {}
    for rank, dump in dumps.items():
        for entry in dump.entries:
            if transfer := _waiting(rank, dump, entry):
                key = (entry.group, transfer.source, transfer.target)
                waiting.setdefault(key, {}).setdefault(transfer.verb, []).append(transfer)
    for (group, source, target), ends in waiting.items():
        if source in dumps and target in dumps and source != target:
            yield from _compared(dumps, group, ends.get("send", []), ends.get("recv", []))


def _waiting(rank: int, dump: FlightDump, entry: FlightEntry) -> _Transfer | None:
    if not entry.is_p2p or entry.state == "completed" or entry.completed_ns:
        return None
    found = _TRANSFER.search(entry.name)
    if not found:
        return None
    verb, first, _, second = found.groups()
    members = dump.groups.get(entry.group, ("", ()))[1]
    mine, other = (_global(int(number), members) for number in (first, second))
    if mine != rank or other is None:
        return None
    source, target = (mine, other) if verb == "send" else (other, mine)
    return _Transfer(entry, rank, verb, source, target)


def _global(number: int, members: Sequence[int]) -> int | None:
    """Names hold ranks within the group."""
    if not members:
        return number
    return members[number] if number < len(members) else None


def _compared(
    dumps: Mapping[int, FlightDump],
    group: str,
    sends: Sequence[_Transfer],
    receives: Sequence[_Transfer],
) -> Iterator[Divergence]:
    first = (sends or receives)[0]
    here = first.rank
    there = first.target if here == first.source else first.source
    seq, op = first.entry.p2p_seq, first.verb
    if not sends or not receives:
        wanted = "recv" if op == "send" else "send"
        kind, confidence, odd_op = DivergenceKind.UNMATCHED, 0.8, None
        explanation = (
            f"rank {here} waits in a {op} with rank {there} (transfer {seq} of group {group}), "
            f"and rank {there} has no open {wanted} for it"
        )
    elif sends[0].elements != receives[0].elements:
        kind, confidence, odd_op = DivergenceKind.ODD, 0.5, "recv"
        explanation = (
            f"rank {here} sends {sends[0].elements} elements to rank {there}, which waits for "
            f"{receives[0].elements} (group {group}): either may be wrong"
        )
    else:
        return
    yield Divergence(
        group=group,
        kind=kind,
        ranks=(there,),
        others=(here,),
        seq=seq,
        op=op,
        odd_op=odd_op,
        timeout_ms=first.entry.timeout_ms,
        explanation=explanation,
        confidence=confidence,
        places=(dumps[there].place, dumps[here].place),
    )
