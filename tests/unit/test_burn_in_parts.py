"""The pure parts of a burn-in: budgets, who is odd, and who makes a collective fail."""

from collections.abc import Sequence

import pytest

from ncdiag.measure.burn_in.narrow import narrow
from ncdiag.measure.burn_in.odd import ON_GPUS, FarOff, far_off, references
from ncdiag.measure.burn_in.plan import SHARES, Level, allot, measuring_s
from ncdiag.model.burn_in import Stage

STAGES = list(Stage)


@pytest.mark.parametrize("level", list(Level))
def test_every_stage_of_every_level_has_its_share(level: Level) -> None:
    assert list(SHARES[level]) == STAGES
    assert sum(share.weight for share in SHARES[level].values()) > 0


@pytest.mark.parametrize("budget_s", [60.0, 180.0, 86400.0])
def test_stages_that_use_up_their_share_stay_within_the_budget(budget_s: float) -> None:
    left_s = measuring_s(budget_s)
    assert left_s < budget_s
    for number, stage in enumerate(STAGES):
        given_s = allot(Level.QUICK, stage, STAGES[number + 1 :], left_s)
        assert given_s is not None
        assert given_s >= SHARES[Level.QUICK][stage].least_s
        left_s -= given_s
    assert left_s == pytest.approx(0, abs=1e-6)


def test_what_a_stage_leaves_over_goes_to_those_after_it() -> None:
    lavish = allot(Level.QUICK, Stage.PAIRS, [Stage.COLLECTIVE, Stage.LOAD], 160)
    frugal = allot(Level.QUICK, Stage.PAIRS, [Stage.COLLECTIVE, Stage.LOAD], 80)
    assert lavish is not None
    assert frugal is not None
    assert lavish == 2 * frugal


def test_a_stage_that_does_not_fit_is_given_nothing() -> None:
    assert allot(Level.QUICK, Stage.LOAD, [], 7.9) is None
    assert allot(Level.QUICK, Stage.HEALTH, STAGES[2:], 4.0) == 4.0


def test_one_far_below_an_even_fleet_is_odd_and_a_wide_scatter_accuses_nobody() -> None:
    even = {f"h{n}": 100.0 + n for n in range(8)}
    rule = FarOff(share=0.8)
    assert far_off(even, rule) == []
    assert far_off(even | {"h3": 60.0, "h5": 20.0}, rule) == ["h5", "h3"]
    wide = {f"h{n}": value for n, value in enumerate((40.0, 55, 70, 85, 100, 115, 130, 145))}
    assert far_off(wide, rule) == []


def test_of_three_hosts_none_is_odd() -> None:
    assert far_off({"a": 1.0, "b": 100.0, "c": 100.0}, FarOff(share=0.8)) == []


def test_times_are_odd_when_they_are_long() -> None:
    times = {"a": 1.0, "b": 1.1, "c": 0.9, "d": 1.0, "e": 3.0, "f": 0.1}
    assert far_off(times, FarOff(share=0.5, lower_is_worse=False)) == ["e"]


def test_a_slow_host_among_hosts_that_differ_by_some_per_cent_is_a_suspect() -> None:
    values = dict(zip("abcdefg", (93.0, 96.0, 99.0, 100.0, 102.0, 105.0, 107.0), strict=True))
    assert far_off({**values, "h": 72.0}, ON_GPUS) == ["h"]
    assert far_off({**values, "h": 85.0}, ON_GPUS) == []


def test_references_are_usual_hosts_and_no_suspects() -> None:
    values = {"a": 10.0, "b": 11.0, "c": 9.0, "d": 30.0, "e": 10.2}
    assert references(values, {"a"}) == ["e", "b"]
    assert references({}, set()) == []


class Fabric:
    """Collectives that fail where a bad host takes part, or both of a bad pair."""

    def __init__(self, *bad: str, pair: tuple[str, str] | None = None, trials: int = 99) -> None:
        self.bad, self.pair, self.left = set(bad), pair, trials
        self.worked: list[set[str]] = []

    def works(self, hosts: Sequence[str]) -> bool | None:
        assert len(hosts) > 1
        if self.left == 0:
            return None
        self.left -= 1
        works = not self.bad & set(hosts) and not (self.pair and set(self.pair) <= set(hosts))
        if works:
            self.worked.append(set(hosts))
        return works


HOSTS = [f"h{n}" for n in range(1, 10)]


@pytest.mark.parametrize("bad", [["h1"], ["h9"], ["h4", "h5"], ["h1", "h5", "h9"]])
def test_hosts_that_make_a_collective_fail_are_found(bad: list[str]) -> None:
    fabric = Fabric(*bad)
    found = narrow(HOSTS, fabric.works)
    assert sorted(found.blamed) == bad
    assert found.undecided == []
    assert sorted(found.proven) == [host for host in HOSTS if host not in bad]
    for name, partners in found.blamed.items():
        assert len({name, *partners}) == 3
        assert not set(partners) & set(bad)
        assert any(set(partners) <= part for part in fabric.worked), "they work with each other"


def test_a_pair_that_fails_only_together_blames_nobody() -> None:
    found = narrow(HOSTS, Fabric(pair=("h1", "h9")).works)
    assert found.blamed == {}
    assert found.together == [tuple(HOSTS)]


def test_without_time_nobody_is_blamed_and_nobody_lost() -> None:
    for trials in range(8):
        found = narrow(HOSTS, Fabric("h4", trials=trials).works)
        assert found.blamed == {}
        assert sorted(found.proven + found.undecided) == HOSTS
    assert "h4" in found.undecided


def test_of_two_hosts_that_fail_together_none_is_blamed() -> None:
    found = narrow(["a", "b"], Fabric("a").works)
    assert found.blamed == {}
    assert sorted(found.undecided) == ["a", "b"]
