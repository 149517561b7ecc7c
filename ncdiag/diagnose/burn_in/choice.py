"""Which of the good hosts to launch on, and which to keep as spares."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ncdiag.diagnose.burn_in.packing import choose_leaves

_DIGITS: Final = re.compile(r"(\d+)")

Key = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A good host; without a ``leaf`` it is under one of its own, if any host's leaf is known."""

    name: str
    leaf: str | None = None
    confidence: float = 1.0
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Names of hosts; ``leaves`` counts the chosen and the spares under each leaf."""

    chosen: tuple[str, ...]
    spares: tuple[str, ...]
    left: tuple[str, ...]
    leaves: Mapping[str, int]


def choose(candidates: Sequence[Candidate], need: int, spares: int) -> Choice:
    """Choose ``need`` hosts and ``spares`` more, or as many as there are.

    Degraded hosts come last, whatever their leaf. Then the hosts to launch on are under as few
    leaves as they can be, they and the spares together as well, and leaves are used whole; see
    :func:`choose_leaves`. Leaves alike are taken by their hosts' confidence, hosts of a leaf as
    well, then by name: the order of ``candidates`` does not matter.
    """
    taking = _Taking(candidates)
    fit = [one for one in candidates if not one.degraded]
    slow = [one for one in candidates if one.degraded]
    now = min(need, len(fit))
    taking.take(fit, now, min(spares, len(fit) - now))
    taking.take(slow, need - now, spares - len(taking.spares))
    return taking.choice()


def natural(name: str) -> Key:
    """A key by which gpu9 stands before gpu10."""
    return tuple(
        (int(part), "") if part.isdecimal() and part.isascii() else (-1, part)
        for part in _DIGITS.split(name)
    )


class _Taking:
    """The hosts taken so far, and the leaves they are under."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = candidates
        self._has_leaves = any(one.leaf is not None for one in candidates)
        self._used: dict[str, None] = {}
        self.chosen: list[Candidate] = []
        self.spares: list[Candidate] = []

    def take(self, pool: Iterable[Candidate], first: int, more: int) -> None:
        """Take ``first`` hosts to launch on and ``more`` spares: under leaves in use, then new."""
        by_leaf: defaultdict[str, list[Candidate]] = defaultdict(list)
        for one in sorted(pool, key=_best_first):
            by_leaf[self._leaf(one)].append(one)
        queue = [one for leaf in self._used for one in by_leaf.pop(leaf, ())]
        first, more = max(0, first), max(0, more)
        leaves = sorted(by_leaf, key=lambda leaf: (-_mean(by_leaf[leaf]), natural(leaf)))
        sizes = [len(by_leaf[leaf]) for leaf in leaves]
        rest = max(0, first - len(queue))
        for place in choose_leaves(sizes, rest, max(0, first + more - len(queue))):
            queue += by_leaf[leaves[place]]
        self.chosen += queue[:first]
        self.spares += queue[first : first + more]
        self._used |= dict.fromkeys(map(self._leaf, queue[: first + more]))

    def choice(self) -> Choice:
        """What was taken, hosts of a leaf side by side, and what was left."""
        taken = {one.name for one in (*self.chosen, *self.spares)}
        return Choice(
            chosen=_names(self.chosen),
            spares=_names(self.spares),
            left=_names(one for one in self._candidates if one.name not in taken),
            leaves=dict(
                sorted(
                    Counter(
                        one.leaf for one in (*self.chosen, *self.spares) if one.leaf is not None
                    ).items(),
                    key=lambda item: natural(item[0]),
                )
            ),
        )

    def _leaf(self, one: Candidate) -> str:
        if one.leaf is not None:
            return f"leaf {one.leaf}"
        return f"host {one.name}" if self._has_leaves else ""


def _best_first(one: Candidate) -> tuple[float, Key]:
    return -one.confidence, natural(one.name)


def _mean(hosts: Sequence[Candidate]) -> float:
    return round(sum(one.confidence for one in hosts) / len(hosts), 9)


def _names(hosts: Iterable[Candidate]) -> tuple[str, ...]:
    by_leaf = sorted(
        hosts, key=lambda one: (one.leaf is None, natural(one.leaf or ""), natural(one.name))
    )
    return tuple(one.name for one in by_leaf)
