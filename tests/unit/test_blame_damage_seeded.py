"""Fleets in which data arrives wrong now and then: nobody innocent is isolated, the guilty named.

A fault damages data on its links with some probability at each measurement, whatever their rate; a
damaged link is measured again, and mostly comes out whole. The generator knows nothing of the code
under test.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from ncdiag.diagnose.cases import Charges, charge
from ncdiag.diagnose.damage_cases import charge_damage
from ncdiag.diagnose.investigate import investigate_table
from ncdiag.diagnose.table import Fabric, LinkTable
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.verdict import CulpritKind

GRAPHS = 400
RATE = 0.478


@dataclass(frozen=True)
class Fleet:
    """A full mesh; ``wrong`` counts the measurements of each link in which data was damaged."""

    seed: int
    fabric: Fabric
    wrong: np.ndarray
    guilty: frozenset[int] = frozenset()

    def partners(self, host: int) -> set[int]:
        """The partners with which data of ``host`` was damaged."""
        source, target = self.fabric.source[self.wrong > 0], self.fabric.target[self.wrong > 0]
        return {*target[source == host].tolist(), *source[target == host].tolist()}

    @property
    def pairs(self) -> set[frozenset[int]]:
        """Pairs between which data was damaged."""
        rows = np.flatnonzero(self.wrong)
        ends = zip(self.fabric.source[rows], self.fabric.target[rows], strict=True)
        return {frozenset(map(int, pair)) for pair in ends}


def _fabric(random: np.random.Generator, hosts: int, *, leaves: int = 0, rails: int = 1) -> Fabric:
    source, target, rail = (
        axis.ravel() for axis in np.meshgrid(*map(np.arange, (hosts, hosts, rails)), indexing="ij")
    )
    real = source != target
    return Fabric(
        hosts=tuple(f"h{number}" for number in range(hosts)),
        leaves=tuple(f"leaf{number}" for number in range(leaves)),
        nics=(("eth0", "eth1")[:rails],) * hosts,
        leaf=random.integers(0, leaves, hosts) if leaves else np.full(hosts, -1),
        source=source[real],
        target=target[real],
        rail=rail[real],
    )


def _charges(fleet: Fleet, slow: np.ndarray | None = None) -> Charges:
    random = np.random.default_rng((fleet.seed, 1))
    links = fleet.fabric.links
    share = np.ones(links) if slow is None else np.where(slow, 0.3, 1.0)
    figures = RATE * share * random.normal(1, 0.02, links)
    damaged = fleet.wrong > 0
    figures[damaged] = np.nan
    again = (share < 1) & ~damaged
    nothing = np.zeros(links, dtype=bool)
    table = LinkTable(
        fabric=fleet.fabric,
        keys=(),
        shown=(),
        expectations=(),
        expected=np.full(links, RATE),
        together=figures,
        alone=np.where(again, figures, np.nan),
        judged=figures,
        busy=nothing,
        together_busy=nothing,
        tests=np.ones(links, dtype=np.int64) + damaged,
        tries=(again | damaged).astype(np.int64),
        wrong=fleet.wrong.astype(np.int64),
    )
    found = investigate_table(table, np.ones(links, dtype=bool), Thresholds())
    assert not (found.judged.error | found.judged.inconclusive)[damaged].any()
    assert found.judged.faulty[damaged].all()
    assert not found.judged.sticks.typical < 0.95
    charges = charge_damage(found, charge(found))
    assert charges.accused[damaged].all()
    return charges


def _isolated(charges: Charges) -> set[int]:
    return {case.host for case in charges.proven if case.host is not None}


def _with_bad_hosts(seed: int, *, bad: int, leaves: int = 0, both: bool = False) -> Fleet:
    """``bad`` hosts that damage what passes through them, often or seldom."""
    random = np.random.default_rng(seed)
    fabric = _fabric(random, int(random.integers(4 * bad, 40)), leaves=leaves)
    guilty = random.choice(len(fabric.hosts), bad, replace=False)
    chance = random.uniform(0.1, 1.0)
    through = np.isin(fabric.source, guilty) | np.isin(fabric.target, guilty)
    hit = through & (random.random(fabric.links) < chance)
    if both:  # as an engine tells it that measures both directions at once
        matrix = np.zeros((len(fabric.hosts),) * 2, dtype=bool)
        matrix[fabric.source, fabric.target] = hit
        hit = (matrix | matrix.T)[fabric.source, fabric.target]
    return Fleet(seed, fabric, hit.astype(np.int64), frozenset(guilty.tolist()))


@pytest.mark.parametrize("both", [False, True], ids=["one-way", "both-ways"])
def test_one_damaged_pair_isolates_nobody_and_is_named(*, both: bool) -> None:
    for seed in range(GRAPHS):
        random = np.random.default_rng(seed)
        fabric = _fabric(
            random, int(random.integers(2, 40)), leaves=seed % 4, rails=1 + seed // 4 % 2
        )
        row = int(random.integers(fabric.links))
        ends = {fabric.source[row], fabric.target[row]}
        hit = np.arange(fabric.links) == row
        if both:
            hit = np.isin(fabric.source, list(ends)) & np.isin(fabric.target, list(ends))
        charges = _charges(Fleet(seed, fabric, hit.astype(np.int64)))
        assert _isolated(charges) == set(), seed
        assert (charges.single == hit).all(), seed
        assert charges.doubted == frozenset(), seed


@pytest.mark.parametrize("both", [False, True], ids=["one-way", "both-ways"])
def test_a_host_that_damages_data_with_several_partners_is_named_alone(*, both: bool) -> None:
    named = 0
    for seed in range(GRAPHS):
        fleet = _with_bad_hosts(seed, bad=1, both=both)
        (host,) = fleet.guilty
        charges = _charges(fleet)
        clear = len(fleet.partners(host)) > 1
        assert _isolated(charges) == ({host} if clear else set()), seed
        assert not (charges.single.any() and clear), seed
        named += clear
    assert named > 0.9 * GRAPHS


@pytest.mark.parametrize("bad", [2, 3])
def test_of_several_hosts_that_damage_data_no_other_is_isolated(bad: int) -> None:
    named = missed = 0
    for seed in range(GRAPHS):
        fleet = _with_bad_hosts(seed, bad=bad)
        isolated = _isolated(_charges(fleet))
        assert isolated <= fleet.guilty, seed
        # Fewer may as well be chance, of damage that is spread over the fleet.
        clear = {one for one in fleet.guilty if len(fleet.partners(one)) > 3 * bad}
        named += len(clear)
        missed += len(clear - isolated)
    assert named > GRAPHS
    assert missed <= 0.02 * named


@pytest.mark.parametrize("bad", [1, 2])
def test_with_leaves_a_host_is_named_where_its_uplink_would_not_do_so(bad: int) -> None:
    named = clear = 0
    for seed in range(GRAPHS):
        fleet = _with_bad_hosts(seed, bad=bad, leaves=3)
        isolated, leaf = _isolated(_charges(fleet)), fleet.fabric.leaf
        assert isolated <= fleet.guilty, seed
        inside = [
            one
            for one in fleet.guilty
            if len(fleet.partners(one)) > 3 * bad
            and any(leaf[end] == leaf[one] for end in fleet.partners(one))
        ]
        clear += len(inside)
        named += len(isolated & set(inside))
    assert clear > GRAPHS / 2
    assert named >= 0.98 * clear


def test_an_uplink_that_damages_data_isolates_hardly_anybody_behind_it() -> None:
    wrong = []
    for seed in range(GRAPHS):
        random = np.random.default_rng(seed)
        fabric = _fabric(random, int(random.integers(8, 40)), leaves=2)
        crossing = fabric.leaf[fabric.source] != fabric.leaf[fabric.target]
        hit = crossing & (random.random(fabric.links) < random.choice([0.02, 0.1, 0.5, 1.0]))
        inside = np.bincount(fabric.leaf, minlength=2)
        if inside.min() < 3:
            continue
        if _isolated(_charges(Fleet(seed, fabric, hit.astype(np.int64)))):
            wrong.append(seed)
    assert wrong == []


def test_damage_all_over_the_fleet_isolates_nobody() -> None:
    """A protocol that the hardware does not support damages what it likes."""
    wrong = []
    for seed in range(GRAPHS):
        random = np.random.default_rng(seed)
        fabric = _fabric(random, int(random.integers(6, 40)))
        hit = random.random(fabric.links) < random.choice([0.05, 0.2, 0.6, 1.0])
        fleet = Fleet(seed, fabric, hit.astype(np.int64))
        if len(fleet.pairs) > 5 and _isolated(_charges(fleet)):
            wrong.append(seed)
    assert len(wrong) <= 0.01 * GRAPHS, wrong


@pytest.mark.parametrize("rails", [1, 2])
def test_damaged_with_one_and_slow_with_another_partner_names_the_host(rails: int) -> None:
    for seed in range(100):
        random = np.random.default_rng(seed)
        fabric = _fabric(random, int(random.integers(4, 20)), rails=rails)
        host, one, other = random.choice(len(fabric.hosts), 3, replace=False).tolist()
        hit = (fabric.source == host) & (fabric.target == one)
        slow = (fabric.source == host) & (fabric.target == other)
        fleet = Fleet(seed, fabric, hit.astype(np.int64))
        charges = _charges(fleet, slow)
        assert _isolated(charges) == {host}, seed
        assert not charges.single.any()
        assert not charges.unclear.any()
        (case,) = charges.proven
        assert case.kind is CulpritKind.HOST
        assert (case.links == hit | slow).all()
        apart = fabric.source == other
        assert _isolated(_charges(fleet, apart)) == {other}, seed


def test_a_host_slow_with_all_is_not_made_guilty_of_more_by_its_partner() -> None:
    for seed in range(100):
        random = np.random.default_rng(seed)
        fabric = _fabric(random, int(random.integers(5, 20)))
        host, one = random.choice(len(fabric.hosts), 2, replace=False).tolist()
        hit = (fabric.source == one) & (fabric.target == host)
        charges = _charges(Fleet(seed, fabric, hit.astype(np.int64)), fabric.source == host)
        assert _isolated(charges) == {host}, seed
        (case,) = charges.proven
        assert case.links[hit].all()


def test_damage_does_not_take_long_in_a_hall() -> None:
    """All of a thousand hosts at once: the fewest that explain it are not searched for for ever."""
    random = np.random.default_rng(1)
    fabric = _fabric(random, 200)
    fleet = Fleet(1, fabric, np.ones(fabric.links, dtype=np.int64))
    found = _charges_of_all_damaged(fleet)
    assert _isolated(found) == set()
    assert found.single.all()


def _charges_of_all_damaged(fleet: Fleet) -> Charges:
    figures = np.full(fleet.fabric.links, np.nan)
    nothing = np.zeros(fleet.fabric.links, dtype=bool)
    table = LinkTable(
        fabric=fleet.fabric,
        keys=(),
        shown=(),
        expectations=(),
        expected=figures,
        together=figures,
        alone=figures,
        judged=figures,
        busy=nothing,
        together_busy=nothing,
        tests=fleet.wrong,
        tries=fleet.wrong,
        wrong=fleet.wrong,
    )
    found = investigate_table(table, ~nothing, Thresholds())
    return charge_damage(found, charge(found))
