import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.diagnose.burn_in import packing
from ncdiag.diagnose.burn_in.choice import Candidate, choose
from ncdiag.diagnose.burn_in.packing import choose_leaves, fewest_leaves

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def of(text: str, confidence: float = 0.9, *, degraded: bool = False) -> list[Candidate]:
    """``a:1-3 b:4`` as hosts h1 to h3 under leaf a and h4 under b; ``-`` is no leaf."""
    found = []
    for part in text.split():
        leaf, _, numbers = part.partition(":")
        first, _, last = numbers.partition("-")
        found += [
            Candidate(f"h{number}", None if leaf == "-" else leaf, confidence, degraded)
            for number in range(int(first), int(last or first) + 1)
        ]
    return found


def least_left(sizes: list[int], first: int, all_: int) -> tuple[int, int, int]:
    """By trying all: the fewest leaves for all, then for the first, then the fewest left over."""
    sets = [
        (len(some), fewest_leaves([sizes[place] for place in some], first), held - all_)
        for number in range(1, len(sizes) + 1)
        for some in combinations(range(len(sizes)), number)
        if (held := sum(sizes[place] for place in some)) >= all_
    ]
    return min(sets)


@given(SIZES, st.data())
def test_no_other_leaves_are_fewer_or_used_more_whole(
    sizes: list[int], data: st.DataObject
) -> None:
    all_ = data.draw(st.integers(1, sum(sizes)))
    first = data.draw(st.integers(1, all_))
    chosen = choose_leaves(sizes, first, all_)
    held = [sizes[place] for place in chosen]
    assert len(set(chosen)) == len(chosen)
    assert (len(held), fewest_leaves(held, first), sum(held) - all_) == least_left(
        sizes, first, all_
    )
    assert held == sorted(held, reverse=True)


@given(SIZES, st.data())
def test_large_fleets_get_as_few_leaves_and_less_than_one_left_over(
    sizes: list[int], data: st.DataObject
) -> None:
    all_ = data.draw(st.integers(1, sum(sizes)))
    first = data.draw(st.integers(1, all_))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "EXACT_STEPS", 0)
        chosen = choose_leaves(sizes, first, all_)
    held = [sizes[place] for place in chosen]
    leaves, leaves_of_first, _ = least_left(sizes, first, all_)
    assert len(set(chosen)) == len(held) == leaves
    assert fewest_leaves(held, first) == leaves_of_first == fewest_leaves(sizes, first)
    assert 0 <= sum(held) - all_ < max(sizes)


@pytest.mark.parametrize(
    ("hosts", "need", "spares", "chosen", "kept"),
    [
        ("a:1-4 b:5-8", 4, 0, "h1 h2 h3 h4", ""),
        ("a:1-3 b:4-7", 4, 0, "h4 h5 h6 h7", ""),
        ("a:1-3 b:4-8", 3, 0, "h1 h2 h3", ""),  # whole rather than a part of b
        ("a:1-3 b:4-8", 4, 1, "h4 h5 h6 h7", "h8"),  # the spare under the same leaf
        ("a:1-2 b:3-6", 4, 1, "h3 h4 h5 h6", "h1"),
        ("a:1-5 b:6-10 c:11-18", 8, 2, "h11 h12 h13 h14 h15 h16 h17 h18", "h1 h2"),
        ("-:1-4", 2, 1, "h1 h2", "h3"),
        ("-:1 a:2-3", 2, 1, "h2 h3", "h1"),
        ("a:1-2", 4, 1, "h1 h2", ""),  # too few: all there are
        ("", 1, 1, "", ""),
        ("a:9-11", 2, 1, "h9 h10", "h11"),  # gpu9 before gpu10
    ],
)
def test_hosts_are_packed(hosts: str, need: int, spares: int, chosen: str, kept: str) -> None:
    found = choose(of(hosts), need, spares)
    assert " ".join(found.chosen) == chosen
    assert " ".join(found.spares) == kept


def test_the_surer_hosts_of_a_leaf_and_the_surer_of_leaves_alike_go_first() -> None:
    hosts = [*of("a:1-2", 0.8), *of("b:3-4", 0.9), *of("c:5", 0.7), *of("c:6-7", 0.99)]
    assert choose(hosts, 2, 0).chosen == ("h3", "h4")
    assert choose(hosts, 3, 0).chosen == ("h5", "h6", "h7")
    assert choose(of("a:1", 0.5) + of("a:2-3", 0.9), 2, 1).spares == ("h1",)


def test_degraded_hosts_come_last_and_rather_as_spares() -> None:
    hosts = [*of("a:1-4", degraded=True), *of("b:5-6 c:7-8")]
    assert choose(hosts, 4, 0).chosen == ("h5", "h6", "h7", "h8")
    assert choose(hosts, 4, 2).spares == ("h1", "h2")
    assert choose(hosts, 5, 1).chosen == ("h1", "h5", "h6", "h7", "h8")
    assert choose(hosts, 3, 1).left == ("h1", "h2", "h3", "h4")
    # Those under leaves in use go before those that need another leaf.
    nearby = [*hosts, *of("c:9", degraded=True)]
    assert choose(nearby, 5, 1).chosen == ("h5", "h6", "h7", "h8", "h9")


def test_the_leaves_count_chosen_and_spares() -> None:
    found = choose(of("leaf10:1-2 leaf9:3-4 -:5"), 4, 1)
    assert found.leaves == {"leaf9": 2, "leaf10": 2}
    assert list(found.leaves) == ["leaf9", "leaf10"]


def test_ten_thousand_hosts_are_packed_under_as_few_leaves_as_there_can_be() -> None:
    chance = random.Random(1)
    hosts = [
        Candidate(f"gpu{number}", f"leaf{number // 16}", chance.choice((0.8, 0.9)))
        for number in range(10_000)
        if chance.random() > 0.05
    ]
    found = choose(hosts, 8192, 100)
    by_name = {one.name: one.leaf for one in hosts}
    sizes = list(Counter(by_name.values()).values())
    assert len(found.chosen) == 8192
    assert len(found.spares) == 100
    assert len(found.leaves) == fewest_leaves(sizes, 8292)
    assert len({by_name[name] for name in found.chosen}) == fewest_leaves(sizes, 8192)


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.integers(0, 30).map("h{}".format),
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from([0.5, 0.9]),
        st.booleans(),
    ),
    unique_by=lambda one: one.name,
    max_size=12,
)


@given(CANDIDATES, st.integers(1, 12), st.integers(0, 4), st.randoms())
def test_the_order_does_not_matter_and_everybody_is_in_one_list(
    hosts: list[Candidate], need: int, spares: int, chance: random.Random
) -> None:
    found = choose(hosts, need, spares)
    assert len(found.chosen) == min(need, len(hosts))
    assert len(found.spares) == min(spares, len(hosts) - len(found.chosen))
    everybody = [*found.chosen, *found.spares, *found.left]
    assert Counter(everybody) == Counter(one.name for one in hosts)
    slow = {one.name for one in hosts if one.degraded}
    assert not slow & {*found.chosen} or slow >= {*found.spares, *found.left}
    assert not slow & {*found.spares} or slow >= {*found.left}
    shuffled = chance.sample(hosts, len(hosts))
    assert choose(shuffled, need, spares) == found
