"""Covers of slow links: the fewest components, none that a fast link contradicts."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ncdiag.diagnose.blame import Cover, Part, cover
from ncdiag.diagnose.table import Fabric
from ncdiag.model.verdict import Direction

SLOW = 0.3


def _fabric(
    leaves: Sequence[int], rails: int = 1, pairs: set[frozenset[int]] | None = None
) -> Fabric:
    """A full mesh, or only the given pairs, over hosts in leaves of these sizes."""
    leaf = np.repeat(np.arange(len(leaves)), leaves)
    hosts = len(leaf)
    ends = [
        (source, target, rail)
        for source in range(hosts)
        for target in range(hosts)
        for rail in range(rails)
        if source != target and (pairs is None or frozenset((source, target)) in pairs)
    ]
    source, target, rail = np.array(ends).T
    return Fabric(
        hosts=tuple(f"h{number}" for number in range(hosts)),
        leaves=tuple(f"leaf{number}" for number in range(len(leaves))),
        nics=(("eth0", "eth1")[:rails],) * hosts,
        leaf=leaf,
        source=source,
        target=target,
        rail=rail,
    )


def _cover(fabric: Fabric, share: Callable[[int, int, int], float]) -> Cover:
    rows = zip(fabric.source.tolist(), fabric.target.tolist(), fabric.rail.tolist(), strict=True)
    shares = np.array([share(*row) for row in rows])
    return cover(
        fabric,
        shares,
        slow=shares < 0.8,
        clear=shares >= 0.9,
        confirmed=shares < 0.8,
    )


def _found(result: Cover) -> set[tuple[Part, Direction, int]]:
    return {one.identity for one in result.suspects}


def test_a_healthy_mesh_has_nobody_to_blame() -> None:
    result = _cover(_fabric((4,)), lambda *_: 1.0)
    assert result.suspects == result.doubtful == ()
    assert not result.left.any()


@pytest.mark.parametrize("hosts", [3, 4, 9, 60])
def test_a_slow_sender_explains_all_its_links(hosts: int) -> None:
    result = _cover(_fabric((hosts,)), lambda source, *_: SLOW if source == 1 else 1.0)
    assert _found(result) == {(Part.HOST, Direction.SEND, 1)}
    assert result.suspects[0].links.sum() == hosts - 1
    assert result.suspects[0].rate == SLOW
    assert not result.left.any()


def test_one_fast_link_of_a_small_fleet_acquits_the_host() -> None:
    result = _cover(
        _fabric((6,)), lambda source, target, _: SLOW if source == 1 and target != 4 else 1.0
    )
    assert _found(result) == set()
    assert result.left.sum() == 4


def test_one_fast_link_of_a_hundred_does_not() -> None:
    result = _cover(
        _fabric((100,)), lambda source, target, _: SLOW if source == 1 and target != 4 else 1.0
    )
    assert _found(result) == {(Part.HOST, Direction.SEND, 1)}
    assert result.suspects[0].against.sum() == 1


def test_a_single_slow_link_is_nobodys_fault() -> None:
    result = _cover(_fabric((5,)), lambda *link: SLOW if link[:2] == (1, 2) else 1.0)
    assert _found(result) == set()
    assert result.left.sum() == 1


def test_a_link_that_is_slower_than_its_slow_host_is_left_for_itself() -> None:
    result = _cover(
        _fabric((6,)),
        lambda source, target, _: (
            0.1 if (source, target) == (1, 2) else 0.6 if source == 1 else 1.0
        ),
    )
    assert _found(result) == {(Part.HOST, Direction.SEND, 1)}
    assert result.left.sum() == 1


def test_a_link_that_is_slow_but_faster_than_the_others_acquits_the_host() -> None:
    result = _cover(
        _fabric((8,)),
        lambda source, target, _: (0.6 if target == 2 else 0.2) if source == 1 else 1.0,
    )
    assert _found(result) == set()
    assert result.left.sum() == 7


def test_a_few_slow_links_among_unclear_ones_are_not_most_of_a_host() -> None:
    result = _cover(
        _fabric((11,)),
        lambda source, target, _: (0.78 if target < 4 else 0.85) if source == 10 else 1.0,
    )
    assert _found(result) == set()
    assert result.left.sum() == 4


def test_links_through_an_unknown_figure_neither_accuse_nor_acquit() -> None:
    result = _cover(
        _fabric((5,)),
        lambda source, target, _: (
            np.nan if (source, target) == (1, 2) else SLOW if source == 1 else 1
        ),
    )
    assert _found(result) == {(Part.HOST, Direction.SEND, 1)}


def test_slow_senders_do_not_make_a_culprit_of_the_one_they_all_send_to() -> None:
    result = _cover(_fabric((4,)), lambda source, *_: SLOW if source < 3 else 1.0)
    assert _found(result) == {(Part.HOST, Direction.SEND, host) for host in range(3)}


def test_crossed_faults_of_three_hosts_are_doubtful() -> None:
    result = _cover(
        _fabric((3,)), lambda source, target, _: SLOW if source == 0 or target == 1 else 1.0
    )
    assert _found(result) == set()
    assert {one.identity for one in result.doubtful} == {
        (Part.HOST, Direction.SEND, 0),
        (Part.HOST, Direction.RECEIVE, 1),
    }


def test_a_nic_is_more_specific_than_its_host_and_a_rail_than_all_its_nics() -> None:
    fabric = _fabric((5,), rails=2)
    nic = _cover(fabric, lambda source, _, rail: SLOW if (source, rail) == (1, 1) else 1.0)
    assert _found(nic) == {(Part.NIC, Direction.SEND, 3)}
    host = _cover(fabric, lambda source, *_: SLOW if source == 1 else 1.0)
    assert _found(host) == {(Part.HOST, Direction.SEND, 1)}
    rail = _cover(fabric, lambda _s, _t, rail: SLOW if rail == 1 else 1.0)
    assert _found(rail) == {(Part.RAIL, Direction.BOTH, 1)}


def test_a_leaf_is_told_from_its_uplink_by_the_links_inside() -> None:
    fabric = _fabric((3, 3, 3))
    leaf = fabric.leaf

    def uplink(source: int, target: int, _: int) -> float:
        return SLOW if (leaf[source] == 1) != (leaf[target] == 1) else 1.0

    def whole(source: int, target: int, _: int) -> float:
        return SLOW if 1 in (leaf[source], leaf[target]) else 1.0

    assert {one[0] for one in _found(_cover(fabric, uplink))} == {Part.UPLINK}
    assert {one[0] for one in _found(_cover(fabric, whole))} == {Part.LEAF}


def test_a_path_between_two_of_three_leaves_is_the_pair() -> None:
    fabric = _fabric((3, 3, 3))
    leaf = fabric.leaf
    result = _cover(fabric, lambda s, t, _: SLOW if {int(leaf[s]), int(leaf[t])} == {0, 1} else 1.0)
    assert {one[0] for one in _found(result)} == {Part.LEAF_PAIR}


def test_two_slow_uplinks_of_three_can_be_any_two() -> None:
    fabric = _fabric((3, 3, 3))
    leaf = fabric.leaf
    result = _cover(fabric, lambda s, t, _: SLOW if leaf[s] != leaf[t] else 1.0)
    assert {one.family.part for one in result.suspects} == {Part.UPLINK}
    assert all(one.rivals for one in result.suspects)


def test_a_leaf_pair_whose_only_measured_host_is_slow_casts_doubt_on_that_host() -> None:
    crossing = {frozenset((0, 3)), frozenset((0, 4))}
    inside = {frozenset(pair) for pair in ((1, 2), (3, 4), (3, 5), (4, 5))}
    fabric = _fabric((3, 3), pairs=crossing | inside)
    result = _cover(fabric, lambda source, *_: SLOW if source == 0 else 1.0)
    assert _found(result) == set()
    assert [one.identity for one in result.doubtful] == [(Part.HOST, Direction.SEND, 0)]
    more = _fabric((3, 3), pairs=crossing | inside | {frozenset((1, 5))})
    result = _cover(more, lambda source, *_: SLOW if source == 0 else 1.0)
    assert _found(result) == {(Part.HOST, Direction.SEND, 0)}


def test_a_rivalry_that_two_sets_solve_accuses_no_host() -> None:
    # Two senders that met the same two receivers and nobody else: either side would explain it.
    square = {frozenset((source, target)) for source in (0, 1) for target in (2, 3)}
    fabric = _fabric((4,), pairs=square)
    result = _cover(fabric, lambda source, *_: SLOW if source < 2 else 1.0)
    assert _found(result) == set()
    assert result.left.sum() == 4
    assert len(result.doubtful) == 2


def test_a_quiet_figure_that_is_fast_acquits_a_large_component() -> None:
    fabric = _fabric((50,))
    shares = np.where(fabric.source == 1, SLOW, 1.0)
    quiet = np.zeros(fabric.links, dtype=bool)
    quiet[np.flatnonzero(fabric.source == 1)[:2]] = True
    shares[quiet] = 1.0
    result = cover(fabric, shares, slow=shares < 0.8, clear=shares >= 0.9, confirmed=quiet)
    assert result.suspects == ()
