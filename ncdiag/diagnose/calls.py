"""What a call is, as far as all ranks must agree on it."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ncdiag.model.log import FlightEntry

# Which sizes all ranks share; operations that are not here differ between root and others, or
# by rank (all_to_all, scatter, gather), in sizes and even in types.
_SHARED = {
    "allreduce": "input",
    "reduce": "input",
    "broadcast": "output",
    "allgather": "output",
    "reducescatter": "input",
}
_VARIANT = re.compile(r"_|coalesced|base|intotensor|tensor|sparse|oop")


class Call(NamedTuple):
    """An operation, the number of elements and their type where these must agree."""

    op: str
    elements: int | None
    types: tuple[str, ...]

    def __str__(self) -> str:
        if self.elements is None:
            return self.op
        types = "/".join(self.types)
        return f"{self.op} of {self.elements} {types}".rstrip()


def operation(entry: FlightEntry) -> str:
    """The operation's name without the back-end's."""
    return entry.name.partition(":")[2] or entry.name


def calls_at(entries: Sequence[FlightEntry]) -> tuple[Call, ...]:
    """What was called under one number, several where they were coalesced."""
    return tuple(_call(entry) for entry in sorted(entries, key=lambda entry: entry.record_id))


def described(calls: Iterable[Call]) -> str:
    """The calls in words."""
    texts = dict.fromkeys(str(call) for call in calls)
    first = ", ".join(list(texts)[:3])
    return first if len(texts) <= 3 else f"{first} and {len(texts) - 3} more"


def _call(entry: FlightEntry) -> Call:
    op = operation(entry)
    shared = _SHARED.get(_VARIANT.sub("", op.lower()))
    if shared is None:
        return Call(op, None, ())
    sizes, types = (
        (entry.input_sizes or entry.output_sizes, entry.input_types or entry.output_types)
        if shared == "input"
        else (entry.output_sizes or entry.input_sizes, entry.output_types or entry.input_types)
    )
    elements = sum(math.prod(size) for size in sizes)
    return Call(op, elements, tuple(sorted(set(types))))
