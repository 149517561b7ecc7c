"""The fewest components that explain the slow links: essential ones first, then what is left.

A slow link that only one component can explain makes that component essential. So three hosts that
send slowly do not make a culprit of the fourth, to which all three are slow. Where components
rival each other for the same links, the smallest set counts; where there are several smallest sets,
the data cannot tell, and no host is accused that is not in all of them.
"""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ncdiag.diagnose.blame.parts import Family, Part, families
from ncdiag.diagnose.blame.propose import Observed, Proposals, Rule, explained_at, propose
from ncdiag.diagnose.table import Fabric, Floats, Ints, Mask
from ncdiag.model.verdict import Direction

__all__ = ["Cover", "Rule", "Suspect", "cover"]

# Components that are tried in all combinations; beyond that the larger ones go first, and
# no host among them is accused.
EXACT = 12
# A component is blamed for this many partners (hosts) or links (switches) that nothing else
# explains; a single one is a link like any other.
OWN_EVIDENCE = 2


@dataclass(frozen=True, slots=True)
class Suspect:
    """A component that is held responsible for ``links``, all near its ``rate``.

    ``against`` are links that are too fast to go through it. ``rivals`` are groups of the same
    family that would do as well; ``disputed`` means that something else altogether would.
    """

    family: Family
    group: int
    rate: float
    links: Mask
    against: Mask
    rivals: tuple[int, ...] = ()
    disputed: bool = False

    @property
    def identity(self) -> tuple[Part, Direction, int]:
        """What the component is, whatever it is held responsible for."""
        return self.family.part, self.family.direction, self.group

    def partners(self, fabric: Fabric, links: Mask) -> int:
        """Count the hosts at the other end of ``links``."""
        end = fabric.target if self.family.direction is Direction.SEND else fabric.source
        return len(np.unique(end[links]))


@dataclass(frozen=True, slots=True)
class Cover:
    """Suspects, those whom something else would acquit, and slow links without a suspect."""

    suspects: tuple[Suspect, ...]
    doubtful: tuple[Suspect, ...]
    left: Mask


@dataclass(slots=True)
class _Choice:
    """A component chosen among proposals."""

    number: int
    rivals: tuple[int, ...] = ()
    disputed: bool = False


@dataclass(slots=True)
class _State:
    """What is chosen so far, and which slow links remain."""

    remaining: Mask
    suspects: list[Suspect] = field(default_factory=list)


def cover(
    fabric: Fabric,
    share: Floats,
    *,
    slow: Mask,
    clear: Mask,
    confirmed: Mask,
    rule: Rule | None = None,
) -> Cover:
    """Explain the ``slow`` links.

    ``share`` is each link's share of its yardstick, ``nan`` where nothing is known. ``clear`` links
    contradict whatever they pass through, and twice so if ``confirmed`` (measured in quiet).
    """
    rule = rule or Rule()
    seen = Observed(fabric, families(fabric), share, slow, clear, confirmed)
    state = _State(remaining=slow.copy())
    while state.remaining.any():
        proposals = propose(seen, state.remaining, rule)
        choices = _choose(seen, proposals)
        if not choices:
            break
        for choice in choices:
            suspect = _suspect(seen, proposals, choice, rule)
            state.suspects.append(suspect)
            state.remaining &= ~suspect.links
    suspects, doubtful = _with_own_evidence(fabric, state.suspects)
    left = slow.copy()
    for suspect in suspects:
        left &= ~suspect.links
    return Cover(suspects=tuple(suspects), doubtful=tuple(doubtful), left=left)


def _choose(seen: Observed, proposals: Proposals) -> list[_Choice]:
    """Return the essential components, or the smallest set that explains what rivals share."""
    if not len(proposals.rows):
        return []
    keep, doubted = _maximal(seen, proposals)
    by = np.where((proposals.by >= 0) & keep[proposals.by], proposals.by, -1)
    by = by[(by >= 0).any(axis=1)]
    alone = by[(by >= 0).sum(axis=1) == 1]
    essential = np.unique(alone[alone >= 0]).tolist()
    if essential:
        return [_Choice(number, disputed=bool(doubted[number])) for number in essential]
    if not len(by):
        return []
    return _smallest(seen, proposals, by, doubted)


def _maximal(seen: Observed, proposals: Proposals) -> tuple[Mask, Mask]:
    """Tell which components explain what no other explains as well, and which are doubted.

    Of two that explain the same links the more specific one is kept, and a thin one never wins. But
    a host that explains no more than a switch would is doubted.
    """
    by, count = proposals.by, len(proposals.rate)
    is_host = [family.part.is_host for family in seen.families]
    sizes = np.bincount(by[by >= 0], minlength=count)
    keep = (sizes > 0) & ~proposals.thin
    doubted = np.zeros(count, dtype=bool)
    for place in range(by.shape[1]):
        rows = np.flatnonzero(by[:, place] >= 0)
        if not len(rows):
            continue
        rows = rows[np.argsort(by[rows, place], kind="stable")]
        mine, starts = np.unique(by[rows, place], return_index=True)
        for other in range(by.shape[1]):
            if other == place:
                continue
            low = np.minimum.reduceat(by[rows, other], starts)
            high = np.maximum.reduceat(by[rows, other], starts)
            inside = (low == high) & (low >= 0)
            larger = sizes[low] > sizes[mine]
            same = sizes[low] == sizes[mine]
            better = larger | (same & (other < place))
            keep[mine[inside & better & ~proposals.thin[low]]] = False
            if is_host[place] and not is_host[other]:
                doubted[mine[inside & same]] = True
    return keep, doubted


def _smallest(seen: Observed, proposals: Proposals, by: Ints, doubted: Mask) -> list[_Choice]:
    """Return a smallest set of components that explains every row of ``by``."""
    needs = [frozenset(row[row >= 0].tolist()) for row in np.unique(by, axis=0)]
    numbers = sorted({number for need in needs for number in need})

    def hosts(chosen: tuple[int, ...]) -> int:
        return sum(_family(seen, proposals, number).part.is_host for number in chosen)

    exact = len(numbers) <= EXACT
    sets = all_smallest(numbers, needs) if exact else [_greedy(needs)]
    chosen = min(sets, key=hosts)
    agreed = set.intersection(*map(set, sets)) if exact else set()
    everywhere = {number for one in sets for number in one}
    choices = []
    for number in chosen:
        place = proposals.family_of(number)
        rivals = {
            int(other - proposals.offsets[place])
            for other in everywhere - agreed
            if proposals.family_of(other) == place and number not in agreed
        }
        disputed = number not in agreed or bool(doubted[number])
        choices.append(_Choice(number, tuple(sorted(rivals)), disputed))
    return choices


def all_smallest(numbers: list[int], needs: list[frozenset[int]]) -> list[tuple[int, ...]]:
    """Return the smallest sets of ``numbers`` that have one of each of ``needs``."""
    for size in range(1, len(numbers) + 1):
        found = [
            chosen
            for chosen in combinations(numbers, size)
            if all(not need.isdisjoint(chosen) for need in needs)
        ]
        if found:
            return found
    return []


def _greedy(needs: list[frozenset[int]]) -> tuple[int, ...]:
    chosen: list[int] = []
    while needs:
        numbers, counts = np.unique([n for need in needs for n in need], return_counts=True)
        best = int(numbers[np.argmax(counts)])
        chosen.append(best)
        needs = [need for need in needs if best not in need]
    return tuple(chosen)


def _family(seen: Observed, proposals: Proposals, number: int) -> Family:
    return seen.families[proposals.family_of(number)]


def _suspect(seen: Observed, proposals: Proposals, choice: _Choice, rule: Rule) -> Suspect:
    place = proposals.family_of(choice.number)
    family = seen.families[place]
    group = int(choice.number - proposals.offsets[place])
    rate = float(proposals.rate[choice.number])
    members = family.group == group
    links = explained_at(seen, members, rate, rule)
    against = members & ~links & (seen.clear | (seen.share > rule.high * rate))
    return Suspect(family, group, rate, links, against, choice.rivals, choice.disputed)


def _with_own_evidence(
    fabric: Fabric, suspects: list[Suspect]
) -> tuple[list[Suspect], list[Suspect]]:
    """Part those for whom enough links speak that nobody else explains from the doubtful ones.

    Two that have only each other's links to show are both doubtful, so all weak ones go at once.
    """
    kept = [one for one in suspects if not _is_disputed_host(one)]
    doubtful = [one for one in suspects if _is_disputed_host(one)]
    while kept:
        explained = np.sum([one.links for one in kept], axis=0)
        weak = [one for one in kept if _own_evidence(fabric, one, explained == 1) < OWN_EVIDENCE]
        if not weak:
            break
        doubtful += weak
        kept = [one for one in kept if not any(one is other for other in weak)]
    return kept, doubtful


def _is_disputed_host(suspect: Suspect) -> bool:
    return suspect.disputed and suspect.family.part.is_host


def _own_evidence(fabric: Fabric, suspect: Suspect, alone: Mask) -> int:
    own = suspect.links & alone
    if suspect.family.part.is_host:
        return suspect.partners(fabric, own)
    return int(own.sum())
