"""Whose fault it is that data arrives wrong: the fewest hosts that all damaged pairs have part in.

Damage comes and goes, so what arrived whole speaks for nobody, other than with slow links: only who
has part in it tells. Whoever is accused has part in it with two partners that nobody else explains.
Nobody is accused for what one uplink would explain as well, nor for damage that is spread over a
fleet, which has another cause than its hosts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, lgamma

import numpy as np

from ncdiag.diagnose.blame.cover import EXACT, OWN_EVIDENCE, all_smallest
from ncdiag.diagnose.table import Fabric, Ints, Mask

# What is no less likely than this to look so by chance may as well have another cause.
BY_CHANCE = 0.02
# From more than so many hosts and pairs on, each by itself, damage may be spread over a fleet.
_FEW_CAUSES = 2
# Hosts that share an uplink, so that it is not one of them.
_SHARED = 2


@dataclass(frozen=True, slots=True)
class Damagers:
    """Hosts that are accused of damage, and those that may as well be innocent."""

    accused: tuple[int, ...]
    doubted: frozenset[int]


@dataclass(slots=True)
class _Pairs:
    """Damaged pairs as two columns of host numbers; ``open`` are those that nobody explains yet."""

    first: Ints
    second: Ints
    open: Mask
    hosts: int

    def degree(self, among: Mask) -> Ints:
        """Count the partners of each host."""
        ends = np.concatenate((self.first[among], self.second[among]))
        return np.bincount(ends, minlength=self.hosts)

    def touching(self, chosen: Mask) -> Mask:
        """Return the pairs that one of the ``chosen`` hosts explains."""
        found: Mask = chosen[self.first] | chosen[self.second]
        return found

    def greedy_size(self) -> int:
        """Return how many hosts are enough to explain all open pairs; fewer may be."""
        left, size = self.open.copy(), 0
        while left.any():
            best = int(np.argmax(self.degree(left)))
            left &= (self.first != best) & (self.second != best)
            size += 1
        return size


@dataclass(slots=True)
class _Evidence:
    """The partners of each host that speak against it."""

    fabric: Fabric
    pairs: _Pairs
    slow: Mapping[int, set[int]] = field(default_factory=dict)

    def partners(self, host: int, without: Mask | None = None) -> set[int]:
        """Partners by damage or slowness, less those that are accused themselves."""
        pairs = self.pairs
        found = set(pairs.second[pairs.first == host].tolist())
        found |= set(pairs.first[pairs.second == host].tolist())
        found |= self.slow.get(host, set())
        return {one for one in found if without is None or not without[one]}

    def chance_if_spread(self, host: int) -> float:
        """Return how likely this host has so many damaged pairs, were they drawn from all."""
        pairs, fabric = self.pairs, self.fabric
        ends = np.sort(np.stack((fabric.source, fabric.target)), axis=0)
        measured = np.unique(ends[0] * pairs.hosts + ends[1])
        of_host = (measured // pairs.hosts == host) | (measured % pairs.hosts == host)
        hit = int(((pairs.first == host) | (pairs.second == host)).sum())
        return _at_least(hit, int(of_host.sum()), len(pairs.first), len(measured))


def blame_damage(fabric: Fabric, damaged: Mask, slow: Mapping[int, set[int]]) -> Damagers:
    """Name the hosts that damage data.

    ``slow`` holds, for each host, the partners with which it is slow for no other reason: one of
    them and one damaged pair are evidence with two partners as well.
    """
    ends = np.stack((fabric.source[damaged], fabric.target[damaged]))
    first, second = np.unique(np.sort(ends, axis=0), axis=1)
    pairs = _Pairs(first, second, np.ones(len(first), dtype=bool), len(fabric.hosts))
    evidence = _Evidence(fabric, pairs, slow)
    degree = pairs.degree(pairs.open)
    viable = degree >= OWN_EVIDENCE
    for host in np.flatnonzero(degree == 1).tolist():
        viable[host] = len(evidence.partners(host)) >= OWN_EVIDENCE
    chosen = _needed(pairs, viable)
    accused = _convicted(evidence, chosen)
    doubted = viable & ~accused & (pairs.degree(~pairs.touching(accused)) > 0)
    return Damagers(_numbers(accused), frozenset(_numbers(doubted)))


def _needed(pairs: _Pairs, viable: Mask) -> Mask:
    """Return the hosts without which the fewest that explain every pair cannot do."""
    chosen = np.zeros_like(viable)
    pairs.open = pairs.touching(viable)
    while pairs.open.any():
        alone = pairs.open & (viable[pairs.first] ^ viable[pairs.second])
        needed = viable & (pairs.degree(alone) > 0)
        # Whoever has more partners than hosts are enough cannot be replaced by all of them.
        needed |= viable & (pairs.degree(pairs.open) > pairs.greedy_size())
        if not needed.any():
            return chosen | _in_all_smallest(pairs)
        chosen |= needed
        pairs.open &= ~pairs.touching(chosen)
    return chosen


def _in_all_smallest(pairs: _Pairs) -> Mask:
    """Return the hosts that all smallest sets agree on; none where there are too many to try."""
    agreed = np.zeros(pairs.hosts, dtype=bool)
    numbers = np.flatnonzero(pairs.degree(pairs.open)).tolist()
    if len(numbers) <= EXACT:
        ends = zip(pairs.first[pairs.open].tolist(), pairs.second[pairs.open].tolist(), strict=True)
        sets = all_smallest(numbers, [frozenset(pair) for pair in ends])
        agreed[list(set.intersection(*map(set, sets)))] = True
    return agreed


def _convicted(evidence: _Evidence, chosen: Mask) -> Mask:
    """Part those for whom nobody and nothing else can account; weak ones go all at once."""
    accused = chosen.copy()
    while accused.any():
        left = ~evidence.pairs.touching(accused)
        weak = [host for host in _numbers(accused) if _is_weak(evidence, host, accused, left)]
        if not weak:
            break
        accused[weak] = False
    return accused


def _is_weak(evidence: _Evidence, host: int, accused: Mask, left: Mask) -> bool:
    own = evidence.partners(host, without=accused)
    if len(own) < OWN_EVIDENCE:
        return True
    several = accused.sum() + left.sum() > _FEW_CAUSES
    if several and evidence.chance_if_spread(host) * evidence.pairs.hosts > BY_CHANCE:
        return True
    return _may_be_an_uplink(evidence, host)


def _may_be_an_uplink(evidence: _Evidence, host: int) -> bool:
    """Whether one uplink that all of a host's damage crosses explains it as well.

    It does if it explains other damage too, and if that it hit no other host may be chance.
    """
    pairs, leaf = evidence.pairs, evidence.fabric.leaf
    first, second = leaf[pairs.first], leaf[pairs.second]
    own = (pairs.first == host) | (pairs.second == host)
    partners = evidence.partners(host)
    for uplink in {int(leaf[host]), *(int(leaf[one]) for one in partners)} - {-1}:
        inside = leaf == uplink
        crossed = (first == uplink) ^ (second == uplink)
        neighbours = int((inside if inside[host] else ~inside).sum())
        if neighbours < _SHARED or any(inside[one] == inside[host] for one in partners):
            continue
        others = crossed & ~own
        if others.any() or float(neighbours) ** (1 - len(partners)) > BY_CHANCE:
            return True
    return False


def _at_least(hit: int, marked: int, drawn: int, all_: int) -> float:
    """Return the chance that of ``drawn`` out of ``all_`` at least ``hit`` are ``marked``."""
    most = min(marked, drawn)
    return sum(
        exp(_ways(marked, one) + _ways(all_ - marked, drawn - one) - _ways(all_, drawn))
        for one in range(max(hit, drawn - all_ + marked), most + 1)
    )


def _ways(all_: int, drawn: int) -> float:
    return lgamma(all_ + 1) - lgamma(drawn + 1) - lgamma(all_ - drawn + 1)


def _numbers(hosts: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(hosts).tolist())
