"""Rounds of disjoint pairs: every pair once, nobody twice in a round."""

from collections import Counter

import numpy as np
import pytest

from ncdiag.measure.schedule import (
    SECOND_OPINIONS,
    full,
    full_round_count,
    full_rounds,
    left_over,
    quick,
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


def test_each_matching_is_measured_on_every_rail_in_turn() -> None:
    rounds = list(full(["a", "b", "c", "d"], dict.fromkeys("abcd", 2)))
    assert [(r.number, *r.rails) for r in rounds] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 1),
        (4, 0),
        (5, 1),
    ]
    for even, odd in zip(rounds[::2], rounds[1::2], strict=True):
        assert [p[:2] for p in even.pairs] == [p[:2] for p in odd.pairs]
    assert len({p for r in rounds for p in r.pairs}) == 12


def test_together_each_matching_is_one_round_of_all_its_rails() -> None:
    hosts = ["a", "b", "c", "d"]
    in_turn = list(full(hosts, dict.fromkeys(hosts, 2)))
    together = list(full(hosts, dict.fromkeys(hosts, 2), together=True))
    assert [(r.number, *r.rails) for r in together] == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]
    assert {p for r in together for p in r.pairs} == {p for r in in_turn for p in r.pairs}
    for planned in together:
        ends = [(host, p.rail) for p in planned.pairs for host in (p.first, p.second)]
        assert len(ends) == len(set(ends))


def test_a_host_with_one_nic_is_left_out_of_the_second_rail() -> None:
    rounds = list(full(["a", "b", "c"], {"a": 2, "b": 2, "c": 1}))
    assert [p for r in rounds if r.rails == (1,) for p in r.pairs] == [("a", "b", 1)]
    assert sum(len(r.pairs) for r in rounds if r.rails == (0,)) == 3


@pytest.mark.parametrize("count", [2, 7, 8, 33])
def test_quick_is_one_matching_that_depends_on_the_seed_only(count: int) -> None:
    hosts = [f"h{number}" for number in range(count)]
    (only,) = quick(hosts, {}, seed=4)
    seated = Counter(host for pair in only.pairs for host in pair[:2])
    over = left_over(hosts, seed=4)
    assert set(seated.values()) == {1}
    assert set(seated) == set(hosts) - {over}
    assert (over is None) == (count % 2 == 0)
    assert list(quick(hosts, {}, seed=4)) == [only]
    assert count < 8 or list(quick(hosts, {}, seed=5)) != [only]


def test_quick_measures_its_matching_on_each_rail() -> None:
    rounds = list(quick(["a", "b"], {"a": 2, "b": 2}, seed=0))
    assert [(r.number, *r.rails) for r in rounds] == [(0, 0), (1, 1)]


def _leaves(hosts: list[str]) -> dict[str, str | None]:
    return {host: f"leaf{number % 2}" for number, host in enumerate(hosts)}


def test_each_suspect_meets_two_proven_partners_it_has_not_met_on_another_leaf() -> None:
    hosts = [f"h{number}" for number in range(12)]
    suspects, proven = hosts[:3], hosts[3:]
    already = {frozenset(("h0", "h3")), frozenset(("h1", "h2"))}
    leaf_of = _leaves(hosts)
    rounds = list(
        second_opinions(
            suspects, proven, leaf_of=leaf_of, already=already, rails={}, first_number=5
        )
    )
    pairs = [pair for r in rounds for pair in r.pairs]
    assert [r.number for r in rounds] == [5, 6]
    assert Counter(pair.first for pair in pairs) == dict.fromkeys(suspects, SECOND_OPINIONS)
    assert len({frozenset(pair[:2]) for pair in pairs} - already) == len(pairs)
    for pair in pairs:
        assert pair.second in proven
        assert leaf_of[pair.first] != leaf_of[pair.second]
    for r in rounds:
        assert max(Counter(host for pair in r.pairs for host in pair[:2]).values()) == 1


def test_few_proven_partners_mean_more_rounds_and_fewer_opinions() -> None:
    rounds = list(
        second_opinions(["a", "b", "c"], ["p"], leaf_of={}, already=set(), rails={}, seed=1)
    )
    assert [len(r.pairs) for r in rounds] == [1, 1, 1]
    assert {r.pairs[0].first for r in rounds} == {"a", "b", "c"}


def test_nobody_proven_or_nobody_suspected_means_no_round() -> None:
    assert list(second_opinions(["a"], [], leaf_of={}, already=set(), rails={})) == []
    assert list(second_opinions([], ["p"], leaf_of={}, already=set(), rails={})) == []


def test_the_same_leaf_is_used_when_there_is_no_other() -> None:
    rounds = list(
        second_opinions(
            ["a"], ["p", "q"], leaf_of=dict.fromkeys("apq", "one"), already=set(), rails={}
        )
    )
    assert {r.pairs[0].second for r in rounds} == {"p", "q"}
