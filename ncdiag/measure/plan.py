"""What a sweep sets out to do, and its rounds: the same whenever they are asked for.

All hosts of the hosts file take part, whether they can be reached or not, so that the rounds do
not depend on who is up and a resumed sweep finds them again; the sweep passes over pairs that
cannot be measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ncdiag.measure.journal import Plan
from ncdiag.measure.schedule import Round, full, full_round_count, quick
from ncdiag.model.measurement import Measurement, PairKey

QUICK = "quick"
TOGETHER = "together"


def planned_rounds(plan: Plan, rails: Sequence[int]) -> Iterator[Round]:
    """Every round that is known beforehand, each matching on one rail after the other or on all.

    ``full`` meets every pair. ``quick`` begins with one matching; what follows depends on its
    results (see :func:`ncdiag.measure.record.SweepRecord.second_opinions`).
    """
    names = [host.name for host in plan.hosts]
    together = plan.rails == TOGETHER
    if plan.mode == QUICK:
        return quick(names, rail_counts(plan, rails), plan.seed, together=together)
    return full(names, rail_counts(plan, rails), together=together)


def rail_counts(plan: Plan, rails: Sequence[int]) -> Mapping[str, int]:
    """The number of rails of each host, as far as rounds go: all hosts are given all rails."""
    return dict.fromkeys((host.name for host in plan.hosts), max(rails) + 1)


def plan_size(plan: Plan, rails: Sequence[int]) -> tuple[int, int]:
    """The number of rounds of :func:`planned_rounds`, and of pairs in all of them together."""
    hosts, count = len(plan.hosts), max(rails) + 1
    turns = 1 if plan.rails == TOGETHER else count
    if plan.mode == QUICK:
        return turns, hosts // 2 * count
    return full_round_count(hosts) * turns, hosts * (hosts - 1) // 2 * count


def measured_pairs(measurements: Iterable[Measurement]) -> list[PairKey]:
    """The pairs of an ``imported`` plan: those that were measured, each once."""
    found: dict[tuple[frozenset[str], int], PairKey] = {}
    for one in measurements:
        ends = frozenset((one.source, one.target))
        found.setdefault((ends, one.rail), PairKey(one.source, one.target, one.rail))
    return list(found.values())
