"""The odd ones among things that should be alike.

What a data sheet says is no evidence here; what the others of the same file say is. A few that
differ from a clear majority are odd; where there is no clear majority nobody can be accused, and
the difference is told as such.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
Key = TypeVar("Key")

# The smallest number whose agreement counts: two alike may be a pair that was meant so, and a pair
# that disagrees has no third to settle it.
LEAST_ALIKE = 3
# Odd ones are at most one of this many: more is a second design, not a fault.
ONE_ODD_OF = 3
_MOST_LISTED = 8


@dataclass(frozen=True, slots=True)
class Split(Generic[Item, Value]):
    """Items by value, where not all are alike.

    ``odd`` are the few that differ from ``usual``; it is empty where no majority is clear, and
    then nobody can be accused. ``agree`` of ``total`` items have the usual value, or a better one.
    """

    usual: Value
    agree: int
    total: int
    odd: tuple[tuple[Item, Value], ...]
    groups: Mapping[Value, tuple[Item, ...]]


def split(
    pairs: Iterable[tuple[Item, Value]], *, least_alike: int = LEAST_ALIKE
) -> Split[Item, Value] | None:
    """Split ``pairs`` of item and value; ``None`` where all are alike or fewer than two are."""
    known = list(pairs)
    counts = Counter(value for _, value in known)
    if len(counts) < 2:
        return None
    usual, agree = counts.most_common(1)[0]
    odd = tuple((item, value) for item, value in known if value != usual)
    sure = agree >= least_alike and _few(len(odd), len(known))
    return Split(usual, agree, len(known), odd if sure else (), grouped(known))


def below_the_usual(pairs: Iterable[tuple[Item, float]]) -> Split[Item, float] | None:
    """Split ``pairs`` of which only low figures are suspicious; ``None`` where none is odd.

    Several figures may each be usual (every second GPU of a board with one link fewer): odd is
    then what lies below all of them.
    """
    known = list(pairs)
    groups = grouped(known)
    if len(groups) < 2:
        return None
    most = max(groups, key=lambda value: len(groups[value]))
    usual = [value for value, items in groups.items() if len(items) >= LEAST_ALIKE]
    majority = bool(usual) and _few(len(known) - len(groups[most]), len(known))
    floor = most if majority else min(usual, default=most)
    odd = tuple((item, value) for item, value in known if value < floor)
    if majority and not odd:
        return None
    sure = bool(usual) and _few(len(odd), len(known))
    return Split(floor, len(known) - len(odd), len(known), odd if sure else (), groups)


def grouped(pairs: Iterable[tuple[Item, Key]]) -> dict[Key, tuple[Item, ...]]:
    """Return the items of each key, in the order they come."""
    found: dict[Key, list[Item]] = {}
    for item, key in pairs:
        found.setdefault(key, []).append(item)
    return {key: tuple(items) for key, items in found.items()}


def by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, tuple[Item, ...]]:
    """Group ``items`` by ``key``."""
    return grouped((item, key(item)) for item in items)


def listed(names: Sequence[str]) -> str:
    """Write some names, and how many more there are."""
    shown = ", ".join(names[:_MOST_LISTED])
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _few(odd: int, total: int) -> bool:
    return odd * ONE_ODD_OF <= total
