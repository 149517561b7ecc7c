"""Which pairs are measured in which round; pure, lazy, and the same for the same seed.

All pairs of a round share no host, so they can be measured at the same time.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ncdiag.model.measurement import PairKey

# Partners that a suspect meets in `quick` besides its first: a host is isolated only on evidence
# with two different partners, and the first may itself be the bad one.
SECOND_OPINIONS = 2


@dataclass(frozen=True, slots=True)
class Round:
    """Pairs measured at the same time; rounds count from 0.

    They share no host, but where the rails of a pair are measured together: then no NIC.
    """

    number: int
    pairs: tuple[PairKey, ...]

    @property
    def rails(self) -> tuple[int, ...]:
        """The rails that are measured in it."""
        return tuple(sorted({pair.rail for pair in self.pairs}))


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


def full(
    hosts: Sequence[str], rails: Mapping[str, int], *, together: bool = False
) -> Iterator[Round]:
    """Rounds in which every pair of hosts meets once on each rail that both have.

    ``rails`` is the number of NICs of each host (one where it is not named). Each matching is
    measured on rail 0, then on rail 1 and so on, as rounds of their own, or on all ``together``.
    """
    matchings = (
        [(hosts[first], hosts[second]) for first, second in pairs.tolist()]
        for pairs in full_rounds(len(hosts))
    )
    return _on_each_rail(matchings, rails, 0, together=together)


def quick(
    hosts: Sequence[str], rails: Mapping[str, int], seed: int, *, together: bool = False
) -> Iterator[Round]:
    """One perfect matching, drawn by ``seed`` so that leaves mix, on each rail.

    Of an odd number one host is left over (see :func:`left_over`); it meets its partner through
    :func:`second_opinions`, when it is known who is fit to be one.
    """
    order = _drawn(hosts, seed)
    place = {host: number for number, host in enumerate(hosts)}
    pairs = [
        (min(pair, key=place.__getitem__), max(pair, key=place.__getitem__))
        for pair in zip(order[::2], order[1::2], strict=False)
    ]
    return _on_each_rail([pairs], rails, 0, together=together)


def left_over(hosts: Sequence[str], seed: int) -> str | None:
    """Name the host without a partner in :func:`quick` (``None`` for an even number)."""
    return _drawn(hosts, seed)[-1] if len(hosts) % 2 else None


def second_opinions(
    suspects: Sequence[str],
    proven: Sequence[str],
    *,
    leaf_of: Mapping[str, str | None],
    already: Collection[frozenset[str]],
    rails: Mapping[str, int],
    first_number: int = 0,
    seed: int = 0,
    together: bool = False,
) -> Iterator[Round]:
    """Rounds in which each suspect meets two partners that are already known to be good.

    ``already`` holds the pairs that have met and need not meet again. Partners on another leaf are
    preferred, and those with the fewest guests so far. With few proven hosts there are more rounds,
    and a suspect that has met all of them gets fewer partners. ``suspects`` may hold the host
    that :func:`quick` left over.
    """
    suspects = [host for host in dict.fromkeys(suspects) if host not in set(proven)]
    hosts_order = _drawn(proven, seed)
    met = set(already)
    guests = dict.fromkeys(hosts_order, 0)
    missing = dict.fromkeys(suspects, SECOND_OPINIONS)
    matchings: list[list[tuple[str, str]]] = []
    while True:
        matching = _matching(missing, guests, leaf_of, met)
        if not matching:
            return _on_each_rail(matchings, rails, first_number, together=together)
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


def _drawn(hosts: Sequence[str], seed: int) -> list[str]:
    """Return ``hosts`` in an order drawn by ``seed``."""
    order = list(hosts)
    random.Random(seed).shuffle(order)  # noqa: S311 (a reproducible order, no secret)
    return order


def _on_each_rail(
    matchings: Iterator[list[tuple[str, str]]] | list[list[tuple[str, str]]],
    rails: Mapping[str, int],
    first_number: int,
    *,
    together: bool,
) -> Iterator[Round]:
    """Turn each matching into one round a rail, or one of all, leaving out who has no NIC there."""
    number = first_number
    most = max(rails.values(), default=1)
    for matching in matchings:
        of_rails = [
            tuple(
                PairKey(first, second, rail)
                for first, second in matching
                if rail < min(rails.get(first, 1), rails.get(second, 1))
            )
            for rail in range(most)
        ]
        for pairs in (sum(of_rails, ()),) if together else of_rails:
            if pairs:
                yield Round(number, pairs)
                number += 1
