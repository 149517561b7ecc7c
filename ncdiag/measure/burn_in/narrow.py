"""Which hosts make a collective fail, found by trials with parts of them; pure.

A collective that fails or hangs names nobody by itself: whoever is told of waits for another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Trial = Callable[[Sequence[str]], bool | None]
"""Whether a collective over some hosts works; ``None`` where there is no time to try."""


@dataclass(slots=True)
class Narrowed:
    """``blamed`` failed with two partners each, both of a part that worked as a whole.

    ``proven`` worked in some part; ``undecided`` could not be told.

    ``together`` are groups whose halves work and which fail as a whole.
    """

    proven: list[str] = field(default_factory=list)
    blamed: dict[str, tuple[str, str]] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)
    together: list[tuple[str, ...]] = field(default_factory=list)


def narrow(hosts: Sequence[str], works: Trial) -> Narrowed:
    """Halve ``hosts``, which fail together, until single ones are left; then try those again."""
    found = Narrowed()
    singles: list[str] = []
    partners: tuple[str, ...] = ()
    failing = [tuple(hosts)]
    while failing:
        group = failing.pop()
        halves = (group[: len(group) // 2], group[len(group) // 2 :])
        outcomes = [None if len(half) == 1 else works(half) for half in halves]
        for half, outcome in zip(halves, outcomes, strict=True):
            if len(half) == 1:
                singles += half
            elif outcome is None:
                found.undecided += half
            elif outcome:
                found.proven += half
                partners = partners or half[:2]
            else:
                failing.append(half)
        if all(outcomes):
            found.together.append(group)
    for name in singles:
        _try_single(name, partners, found, works)
    return found


def _try_single(name: str, partners: tuple[str, ...], found: Narrowed, works: Trial) -> None:
    """Try one host with two partners that work with each other, one after the other."""
    outcomes = [works((name, partner)) for partner in partners]
    if outcomes == [False, False]:
        found.blamed[name] = (partners[0], partners[1])
    elif outcomes == [True, True]:
        found.proven.append(name)
    else:
        found.undecided.append(name)
