"""Rounds of disjoint pairs: every pair once, nobody twice in a round."""

from collections import Counter

import numpy as np
import pytest

from ncdiag.measure.schedule import (
    SECOND_OPINIONS,
    full_round_count,
    full_rounds,
    quick_matching,
    second_opinions,
)


def _assert_complete(hosts: int) -> None:
    """Mark every pair in a triangle of bits, and every host of a round in a row of bits."""
    met = np.zeros(hosts * (hosts - 1) // 2, dtype=bool)
    rounds = 0
    for pairs in full_rounds(hosts):
        rounds += 1
        low, high = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
        assert (low < high).all()
        seated = np.zeros(hosts, dtype=bool)
        seated[low] = True
        seated[high] = True
        assert seated.sum() == 2 * len(pairs) == 2 * (hosts // 2)
        ids = high * (high - 1) // 2 + low
        assert not met[ids].any()
        met[ids] = True
    assert met.all()
    assert rounds == full_round_count(hosts) == (hosts - 1 if hosts % 2 == 0 else hosts)


@pytest.mark.parametrize("hosts", range(2, 201))
def test_every_pair_meets_once_and_no_host_sits_twice_in_a_round(hosts: int) -> None:
    _assert_complete(hosts)


def test_ten_thousand_hosts_are_paired_lazily_and_completely() -> None:
    _assert_complete(10_000)


@pytest.mark.parametrize("hosts", [0, 1])
def test_fewer_than_two_hosts_have_no_round(hosts: int) -> None:
    assert list(full_rounds(hosts)) == []
    assert full_round_count(hosts) == 0


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 33])
def test_quick_is_one_matching_that_depends_on_the_seed_only(count: int) -> None:
    pairs = quick_matching(count, seed=4)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(set(pairs.flat)) == pairs.size == 2 * (count // 2)
    assert set(pairs.flat) <= set(range(count))
    assert np.array_equal(pairs, quick_matching(count, seed=4))
    assert count < 7 or not np.array_equal(pairs, quick_matching(count, seed=5))


def _leaves(hosts: list[str]) -> dict[str, str | None]:
    return {host: f"leaf{number % 2}" for number, host in enumerate(hosts)}


def test_each_suspect_meets_two_proven_partners_it_has_not_met_on_another_leaf() -> None:
    hosts = [f"h{number}" for number in range(12)]
    suspects, proven = hosts[:3], hosts[3:]
    already = {frozenset(("h0", "h3")), frozenset(("h1", "h2"))}
    leaf_of = _leaves(hosts)
    rounds = second_opinions(suspects, proven, leaf_of=leaf_of, already=already)
    pairs = [pair for matching in rounds for pair in matching]
    assert len(rounds) == 2
    assert Counter(suspect for suspect, _ in pairs) == dict.fromkeys(suspects, SECOND_OPINIONS)
    assert len({frozenset(pair) for pair in pairs} - already) == len(pairs)
    for suspect, partner in pairs:
        assert partner in proven
        assert leaf_of[suspect] != leaf_of[partner]
    for matching in rounds:
        assert max(Counter(host for pair in matching for host in pair).values()) == 1
    assert rounds == second_opinions(suspects, proven, leaf_of=leaf_of, already=already)


def test_few_proven_partners_mean_more_rounds_and_fewer_opinions() -> None:
    rounds = second_opinions(["a", "b", "c"], ["p"], leaf_of={}, seed=1)
    assert [len(matching) for matching in rounds] == [1, 1, 1]
    assert {suspect for [(suspect, _)] in rounds} == {"a", "b", "c"}


def test_nobody_proven_or_nobody_suspected_means_no_round() -> None:
    assert second_opinions(["a"], [], leaf_of={}) == []
    assert second_opinions([], ["p"], leaf_of={}) == []


def test_the_same_leaf_is_used_when_there_is_no_other() -> None:
    rounds = second_opinions(["a"], ["p", "q"], leaf_of=dict.fromkeys("apq", "one"))
    assert {partner for [(_, partner)] in rounds} == {"p", "q"}


def test_guests_are_spread_over_the_proven_hosts() -> None:
    suspects = [f"s{number}" for number in range(8)]
    proven = [f"p{number}" for number in range(16)]
    rounds = second_opinions(suspects, proven, leaf_of={})
    guests = Counter(partner for matching in rounds for _, partner in matching)
    assert len(guests) == 16
