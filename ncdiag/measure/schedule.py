"""Which pairs are measured in which round; pure, lazy, and the same for the same seed.

All pairs of a round share no host, so they can be measured at the same time.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

# Partners that a suspect meets in `quick` besides its first: a host is isolated only on evidence
# with two different partners, and the first may itself be the bad one.
SECOND_OPINIONS = 2


def full_rounds(hosts: int) -> Iterator[NDArray[np.int32]]:
    """Every pair of ``hosts`` once, as one ``(pairs, 2)`` array of host indices a round.

    The circle method: one host stands still, the others move on by one seat each round. An odd
    number gets an empty seat, and whoever sits opposite rests. Needs memory for one round only.
    The smaller index stands first.
    """
    if hosts < 2:
        return
    seats = hosts + hosts % 2
    step = np.arange(1, seats // 2, dtype=np.int32)
    for turn in range(seats - 1):
        first = np.concatenate(([turn], (turn + step) % (seats - 1)))
        second = np.concatenate(([seats - 1], (turn - step) % (seats - 1)))
        pairs = np.stack((np.minimum(first, second), np.maximum(first, second)), axis=1)
        yield pairs[pairs[:, 1] < hosts].astype(np.int32)


def full_round_count(hosts: int) -> int:
    """Matchings that :func:`full_rounds` yields: n-1 for an even number of hosts, else n."""
    return 0 if hosts < 2 else hosts - 1 + hosts % 2


def quick_matching(hosts: int, seed: int) -> NDArray[np.int32]:
    """One perfect matching of host indices, drawn by ``seed`` so that leaves mix: ``(pairs, 2)``.

    The smaller index stands first. Of an odd number one host is in no pair: it meets its partners
    through :func:`second_opinions`, when it is known who is fit to be one.
    """
    order = np.array(_drawn(range(hosts), seed), dtype=np.int32)
    return np.sort(order[: hosts - hosts % 2].reshape(-1, 2), axis=1)


def second_opinions(
    suspects: Sequence[str],
    proven: Sequence[str],
    *,
    leaf_of: Mapping[str, str | None],
    already: Collection[frozenset[str]] = (),
    seed: int = 0,
) -> list[list[tuple[str, str]]]:
    """Rounds of disjoint (suspect, partner) in which each suspect meets two proven partners.

    ``already`` holds the pairs that have met and need not meet again. Partners on another leaf are
    preferred, and those with the fewest guests so far. With few proven hosts there are more rounds,
    and a suspect that has met all of them gets fewer partners. A host without any result, such as
    the one left over by :func:`quick_matching`, may stand among the ``suspects`` too.
    """
    met = set(already)
    guests = dict.fromkeys(_drawn(proven, seed), 0)
    missing = {host: SECOND_OPINIONS for host in suspects if host not in guests}
    matchings: list[list[tuple[str, str]]] = []
    while True:
        matching = _matching(missing, guests, leaf_of, met)
        if not matching:
            return matchings
        for suspect, partner in matching:
            met.add(frozenset((suspect, partner)))
            guests[partner] += 1
            missing[suspect] -= 1
        matchings.append(matching)


def _matching(
    missing: Mapping[str, int],
    guests: Mapping[str, int],
    leaf_of: Mapping[str, str | None],
    met: Collection[frozenset[str]],
) -> list[tuple[str, str]]:
    """Return one matching of suspects that still lack partners with proven hosts."""
    free = dict(guests)
    matching = []
    for suspect in sorted(missing, key=lambda host: -missing[host]):
        fit = [host for host in free if frozenset((suspect, host)) not in met]
        if not missing[suspect] or not fit:
            continue
        leaf = leaf_of.get(suspect)
        partner = min(fit, key=lambda host: (leaf_of.get(host) == leaf, free[host]))
        del free[partner]
        matching.append((suspect, partner))
    return matching


def _drawn(hosts: Sequence[T], seed: int) -> list[T]:
    """Return ``hosts`` in an order drawn by ``seed``."""
    order = list(hosts)
    random.Random(seed).shuffle(order)  # noqa: S311 (a reproducible order, no secret)
    return order
