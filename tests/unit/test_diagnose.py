"""Whole sweeps over made-up fabrics, from figures with noise to verdict, culprits and lists."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from ncdiag.diagnose.diagnosis import diagnose
from ncdiag.diagnose.suspects import suspected_hosts, suspects
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.measure.schedule import Round, full, quick, second_opinions
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.host import Host
from ncdiag.model.measurement import Expectation, LinkKey, Measurement, PairKey, Purpose
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    LinkStatus,
    Verdict,
)

RATE = 0.478
THRESHOLDS = Thresholds()


def _nothing_shared(_crossing: int) -> float:
    return 1.0


@dataclass
class Fabric:
    """A fabric with faults: the share of the rate that each part lets through.

    ``uplink`` maps a leaf to a share; ``together`` gives the share left for pairs that leave
    their leaf when so many of them do in one round. ``blips`` spoil figures of rounds,
    ``first_quiet`` the first one measured in quiet.
    """

    leaves: Sequence[int] = (4, 4)
    rails: int = 1
    rate_known: bool = True
    send: dict[str, float] = field(default_factory=dict)
    receive: dict[str, float] = field(default_factory=dict)
    nic: dict[tuple[str, int], float] = field(default_factory=dict)
    link: dict[tuple[str, str], float] = field(default_factory=dict)
    uplink: dict[str, float] = field(default_factory=dict)
    rail: dict[int, float] = field(default_factory=dict)
    everything: float = 1.0
    together: Callable[[int], float] = _nothing_shared
    down: Sequence[str] = ()
    error: set[tuple[str, str]] = field(default_factory=set)
    idle: dict[str, float] = field(default_factory=dict)
    noise: float = 0.015
    seed: int = 1
    leaf_known: bool = True
    blips: dict[tuple[str, str], float] = field(default_factory=dict)
    first_quiet: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.leaf_of = {}
        for leaf, size in enumerate(self.leaves, start=1):
            for _ in range(size):
                self.leaf_of[f"h{len(self.leaf_of) + 1}"] = f"leaf{leaf}"
        self.names = list(self.leaf_of)
        self.random = random.Random(self.seed)
        self.measurements: list[Measurement] = []
        self.quiet_pairs: list[PairKey] = []

    def share(self, link: LinkKey) -> float:
        """What the slowest part on the way lets through."""
        source, target, rail = link
        parts = [
            self.everything,
            self.send.get(source, 1),
            self.receive.get(target, 1),
            self.nic.get((source, rail), 1),
            self.nic.get((target, rail), 1),
            self.link.get((source, target), 1),
            self.rail.get(rail, 1),
        ]
        if self.leaf_of[source] != self.leaf_of[target]:
            parts += [self.uplink.get(self.leaf_of[end], 1) for end in (source, target)]
        return min(parts)

    def measure(self, pairs: Sequence[PairKey], number: int, purpose: Purpose) -> None:
        crossing = sum(self.leaf_of[pair.first] != self.leaf_of[pair.second] for pair in pairs)
        for pair in pairs:
            if pair.first in self.down or pair.second in self.down:
                continue
            for link in pair.directions:
                self.measurements.append(self._measured(link, number, purpose, crossing))

    def _measured(self, link: LinkKey, number: int, purpose: Purpose, crossing: int) -> Measurement:
        one = Measurement(
            source=link.source,
            target=link.target,
            rail=link.rail,
            round=number,
            purpose=purpose,
            engine="made-up",
        )
        if link[:2] in self.error:
            return replace(one, error="timed out")
        share = self.share(link)
        if self.leaf_of[link.source] != self.leaf_of[link.target]:
            share = min(share, self.together(crossing))
        if purpose is Purpose.ROUND:
            share *= self.blips.get(link[:2], 1)
        else:
            share *= self.first_quiet.pop(link[:2], 1)
        rate = RATE * share * max(0.0, self.random.gauss(1, self.noise))
        idle = min(self.idle.get(end, 0.7) for end in link[:2])
        return replace(one, measured_gbit_per_s=rate, min_gbit_per_s=rate, idle=idle)

    def planned(self) -> Iterator[PairKey]:
        for one in self.rounds():
            yield from one.pairs

    def rounds(self) -> Iterator[Round]:
        return full(self.names, dict.fromkeys(self.names, self.rails))

    def evidence(self) -> SweepEvidence:
        expected = Expectation(gbit_per_s=RATE, derivation="rate 500 Mbit/s")
        return SweepEvidence(
            hosts=[
                Host(name=name, address=name, leaf=leaf if self.leaf_known else None)
                for name, leaf in self.leaf_of.items()
            ],
            unreachable=dict.fromkeys(self.down, "timed out"),
            nics={name: [f"eth{rail}" for rail in range(self.rails)] for name in self.names},
            measurements=self.measurements,
            expectation=lambda _link: expected if self.rate_known else None,
            planned=self.planned,
        )

    def quiet(self) -> None:
        """Measure again whatever is asked for, until nothing is."""
        for _ in range(20):
            asked = suspects(self.evidence(), THRESHOLDS)
            if not asked:
                return
            self.quiet_pairs += asked
            for pair in asked:
                self.measure([pair], 1000, Purpose.QUIET)
        pytest.fail("suspects are asked for without end")

    def sweep(self) -> Diagnosis:
        for one in self.rounds():
            self.measure(one.pairs, one.number, Purpose.ROUND)
        self.quiet()
        return diagnose(self.evidence(), THRESHOLDS)

    def quick_sweep(self) -> Diagnosis:
        rails = dict.fromkeys(self.names, self.rails)
        for one in quick(self.names, rails, self.seed):
            self.measure(one.pairs, one.number, Purpose.ROUND)
        suspected = suspected_hosts(self.evidence(), THRESHOLDS)
        met = {one.source for one in self.measurements}
        proven = [name for name in self.names if name in met - suspected]
        opinions = second_opinions(
            [name for name in self.names if name not in proven and name not in self.down],
            proven,
            leaf_of=self.leaf_of,
            already={frozenset((one.source, one.target)) for one in self.measurements},
            rails=rails,
            first_number=1,
            seed=self.seed,
        )
        for one in opinions:
            self.measure(one.pairs, one.number, Purpose.ROUND)
        self.quiet()
        return diagnose(replace(self.evidence(), planned=lambda: iter(())), THRESHOLDS)


def _named(diagnosis: Diagnosis) -> set[tuple[str, str, str]]:
    return {(one.kind.value, one.name, one.direction.value) for one in diagnosis.culprits}


def _status(diagnosis: Diagnosis, name: str) -> HostStatus:
    return next(host.status for host in diagnosis.hosts if host.name == name)


def _only(diagnosis: Diagnosis) -> Culprit:
    assert len(diagnosis.culprits) == 1, diagnosis.culprits
    return diagnosis.culprits[0]


RATES = pytest.mark.parametrize("rate_known", [True, False], ids=["rate", "no-rate"])
SEEDS = pytest.mark.parametrize("seed", range(5))


@RATES
@SEEDS
def test_a_healthy_fabric_is_healthy(*, rate_known: bool, seed: int) -> None:
    found = Fabric(rate_known=rate_known, seed=seed).sweep()
    assert found.verdict is Verdict.HEALTHY
    assert found.culprits == found.contention == found.isolate == ()
    assert len(found.good) == 8
    assert len(found.links) == 56
    assert all(link.status is LinkStatus.HEALTHY for link in found.links)
    assert bool(found.notes) != rate_known


@RATES
@SEEDS
def test_a_slow_sender_a_slow_pair_and_a_dead_host_are_told_apart(
    *, rate_known: bool, seed: int
) -> None:
    fabric = Fabric(
        rate_known=rate_known,
        seed=seed,
        send={"h3": 0.2},
        link={("h5", "h6"): 0.1},
        down=["h8"],
    )
    found = fabric.sweep()
    assert _named(found) == {("host", "h3", "send"), ("link", "h5->h6", "send")}
    assert found.isolate == ("h3",)
    assert found.good == ("h1", "h2", "h4", "h5", "h6", "h7")
    assert _status(found, "h8") is HostStatus.UNREACHABLE
    assert found.verdict is Verdict.FAULTY
    host = next(one for one in found.culprits if one.kind is CulpritKind.HOST)
    assert host.explains == 6
    assert host.contradicts == 0
    assert host.efficiency == pytest.approx(0.2, abs=0.02)
    assert host.confidence > 0.95
    assert "ncdiag sweep --nodes h3," in host.next
    assert len(set(fabric.quiet_pairs)) == len(fabric.quiet_pairs) == 7


@RATES
@pytest.mark.parametrize("seed", range(20))
def test_quick_names_the_slow_sender_and_acquits_its_partners(
    *, rate_known: bool, seed: int
) -> None:
    found = Fabric(
        rate_known=rate_known,
        seed=seed,
        send={"h3": 0.2},
        link={("h5", "h6"): 0.1},
        down=["h8"],
    ).quick_sweep()
    assert ("host", "h3", "send") in _named(found)
    assert found.isolate == ("h3",)
    assert {one.name for one in found.culprits} <= {"h3", "h5->h6"}
    assert "h3" not in found.good


@RATES
@SEEDS
@pytest.mark.parametrize(
    ("fault", "direction"),
    [
        ({"receive": {"h6": 0.3}}, Direction.RECEIVE),
        ({"send": {"h6": 0.3}}, Direction.SEND),
        ({"send": {"h6": 0.3}, "receive": {"h6": 0.5}}, Direction.BOTH),
    ],
)
def test_a_host_is_named_in_the_direction_in_which_it_is_slow(
    *, rate_known: bool, seed: int, fault: dict[str, dict[str, float]], direction: Direction
) -> None:
    found = Fabric(rate_known=rate_known, seed=seed, **fault).sweep()
    assert _named(found) == {("host", "h6", direction.value)}
    assert found.isolate == ("h6",)
    assert len(found.good) == 7


@RATES
@SEEDS
def test_a_slow_path_between_two_leaves_is_the_switches_and_isolates_nobody(
    *, rate_known: bool, seed: int
) -> None:
    found = Fabric(rate_known=rate_known, seed=seed, uplink={"leaf1": 0.3}).sweep()
    assert _named(found) == {("switch", "leaf1|leaf2", "both")}
    assert _only(found).explains == 32
    assert "cannot tell which end" in _only(found).reason
    assert found.isolate == ()
    assert len(found.good) == 8


@RATES
@SEEDS
@pytest.mark.parametrize("leaves", [(3, 3, 3), (4, 2, 5), (2, 8, 2), (4, 4, 1)])
def test_of_three_leaves_the_one_with_the_slow_uplink_is_named(
    *, rate_known: bool, seed: int, leaves: tuple[int, ...]
) -> None:
    found = Fabric(leaves=leaves, rate_known=rate_known, seed=seed, uplink={"leaf2": 0.3}).sweep()
    assert _named(found) == {("switch", "leaf2", "both")}
    assert found.isolate == ()


@SEEDS
def test_a_leaf_with_one_host_accuses_the_host_and_says_so(seed: int) -> None:
    found = Fabric(leaves=(4, 4, 1), seed=seed, uplink={"leaf3": 0.3}).sweep()
    assert _named(found) == {("host", "h9", "both")}
    assert "leaf to itself" in _only(found).reason


@RATES
@SEEDS
def test_an_uplink_that_is_only_shared_is_contention_and_healthy(
    *, rate_known: bool, seed: int
) -> None:
    found = Fabric(
        rate_known=rate_known, seed=seed, together=lambda crossing: 1 / max(1, crossing)
    ).sweep()
    assert found.verdict is Verdict.HEALTHY
    assert found.culprits == ()
    assert len(found.good) == 8
    (only,) = found.contention
    assert only.name == "leaf1|leaf2"
    assert only.pairs == 16
    assert only.alone_gbit_per_s == pytest.approx(RATE, rel=0.03)
    assert only.together_gbit_per_s < 0.6 * RATE
    assert all(link.status is LinkStatus.HEALTHY for link in found.links)


@SEEDS
def test_contention_of_some_rounds_only_has_the_same_name(seed: int) -> None:
    found = Fabric(seed=seed, together=lambda crossing: min(1.0, 2 / max(1, crossing))).sweep()
    assert found.verdict is Verdict.HEALTHY
    assert [one.name for one in found.contention] == ["leaf1|leaf2"]


@SEEDS
def test_contention_hides_no_slow_host(seed: int) -> None:
    found = Fabric(
        seed=seed, send={"h3": 0.2}, together=lambda crossing: 1 / max(1, crossing)
    ).sweep()
    assert _named(found) == {("host", "h3", "send")}
    assert found.isolate == ("h3",)
    assert [one.name for one in found.contention] == ["leaf1|leaf2"]


@SEEDS
def test_contention_on_many_pairs_is_judged_by_a_sample(seed: int) -> None:
    fabric = Fabric(
        leaves=(20, 20), seed=seed, together=lambda crossing: 0.3 if crossing > 1 else 1.0
    )
    found = fabric.sweep()
    assert len(fabric.quiet_pairs) <= 3 * THRESHOLDS.quiet_sample
    assert found.verdict is Verdict.HEALTHY
    assert found.contention[0].name == "leaf1|leaf2"
    assert found.contention[0].pairs == 400
    assert len(found.good) == 40


@SEEDS
def test_a_slow_uplink_of_many_pairs_is_proven_by_a_sample(seed: int) -> None:
    fabric = Fabric(leaves=(20, 20), seed=seed, uplink={"leaf1": 0.3})
    found = fabric.sweep()
    assert len(fabric.quiet_pairs) <= 3 * THRESHOLDS.quiet_sample
    assert _named(found) == {("switch", "leaf1|leaf2", "both")}
    slow = [link for link in found.links if link.efficiency is not None and link.efficiency < 0.8]
    assert len(slow) == 800
    assert all(link.status is LinkStatus.FAULTY for link in slow)


@SEEDS
def test_a_fleet_that_is_slow_alike_accuses_no_host(seed: int) -> None:
    found = Fabric(seed=seed, everything=0.3).sweep()
    assert _named(found) == {("fleet", "fleet", "both")}
    assert found.isolate == ()
    assert len(found.good) == 8
    assert {host.status for host in found.hosts} == {HostStatus.DEGRADED}
    assert found.verdict is Verdict.FAULTY


@SEEDS
def test_a_host_far_behind_a_slow_fleet_is_named_too(seed: int) -> None:
    found = Fabric(seed=seed, everything=0.3, send={"h3": 0.05}).sweep()
    assert _named(found) == {("fleet", "fleet", "both"), ("host", "h3", "send")}
    assert found.isolate == ("h3",)


def test_a_slow_fleet_without_expectation_is_healthy_and_the_yardstick_is_said() -> None:
    found = Fabric(rate_known=False, everything=0.3).sweep()
    assert found.verdict is Verdict.HEALTHY
    assert any("fleet's median" in note for note in found.notes)


@RATES
@SEEDS
def test_the_second_rail_of_one_host_is_its_nic(*, rate_known: bool, seed: int) -> None:
    found = Fabric(rate_known=rate_known, rails=2, seed=seed, nic={("h3", 1): 0.3}).sweep()
    assert _named(found) == {("nic", "h3:eth1", "both")}
    assert found.isolate == ("h3",)
    assert len(found.good) == 7


@RATES
@SEEDS
def test_a_host_that_is_slow_on_all_rails_is_the_host(*, rate_known: bool, seed: int) -> None:
    found = Fabric(rate_known=rate_known, rails=2, seed=seed, send={"h3": 0.3}).sweep()
    assert _named(found) == {("host", "h3", "send")}
    nics = {("h3", 0): 0.3, ("h3", 1): 0.6}
    found = Fabric(rate_known=rate_known, rails=2, seed=seed, nic=nics).sweep()
    assert _named(found) == {("host", "h3", "both")}


@RATES
@SEEDS
def test_a_rail_that_is_slow_everywhere_is_the_rail(*, rate_known: bool, seed: int) -> None:
    found = Fabric(rate_known=rate_known, rails=2, seed=seed, rail={1: 0.4}).sweep()
    assert {one[:2] for one in _named(found)} == {("rail", "1")}
    assert found.isolate == ()
    assert len(found.good) == 8
    assert {host.status for host in found.hosts} == {HostStatus.DEGRADED}


@RATES
@SEEDS
@pytest.mark.parametrize("pair", [("h1", "h5"), ("h1", "h2")])
def test_two_bad_hosts_are_both_named(
    *, rate_known: bool, seed: int, pair: tuple[str, str]
) -> None:
    faults = {"send": dict.fromkeys(pair, 0.2), "receive": dict.fromkeys(pair, 0.2)}
    found = Fabric(rate_known=rate_known, seed=seed, **faults).sweep()
    assert _named(found) == {("host", name, "both") for name in pair}
    assert found.isolate == pair


@RATES
@pytest.mark.parametrize("seed", range(20))
def test_quick_names_two_bad_hosts_wherever_they_meet(*, rate_known: bool, seed: int) -> None:
    faults = {"send": {"h1": 0.2, "h6": 0.2}, "receive": {"h1": 0.2, "h6": 0.2}}
    found = Fabric(leaves=(6, 6), rate_known=rate_known, seed=seed, **faults).quick_sweep()
    assert found.isolate == ("h1", "h6")
    assert _named(found) == {("host", "h1", "both"), ("host", "h6", "both")}


@RATES
@SEEDS
def test_a_host_at_70_per_cent_is_named(*, rate_known: bool, seed: int) -> None:
    found = Fabric(rate_known=rate_known, seed=seed, send={"h3": 0.7}).sweep()
    assert _named(found) == {("host", "h3", "send")}
    assert found.isolate == ("h3",)


@RATES
@SEEDS
def test_a_host_at_88_per_cent_is_degraded_and_stays_good(*, rate_known: bool, seed: int) -> None:
    found = Fabric(rate_known=rate_known, seed=seed, send={"h3": 0.88}, noise=0.008).sweep()
    assert found.isolate == ()
    assert len(found.good) == 8
    assert _status(found, "h3") is HostStatus.DEGRADED
    assert _only(found).status is LinkStatus.DEGRADED
    assert _only(found).name == "h3"


@pytest.mark.parametrize(
    ("rate_known", "slow"),
    [
        (True, {"send": {"h1": 0.2}}),
        (False, {"send": {"h1": 0.2}}),
        (True, {"send": {"h1": 0.2}, "receive": {"h1": 0.2}}),
    ],
)
def test_of_two_hosts_nobody_is_isolated_and_why_is_said(
    *, rate_known: bool, slow: dict[str, dict[str, float]]
) -> None:
    found = Fabric(leaves=(2,), rate_known=rate_known, **slow).sweep()
    assert {one.kind for one in found.culprits} == {CulpritKind.LINK}
    assert found.isolate == found.good == ()
    assert all(host.status is HostStatus.INCONCLUSIVE for host in found.hosts)
    assert all("only partner" in host.reason for host in found.hosts)
    assert any("third host" in note for note in found.notes)
    assert found.verdict is Verdict.FAULTY


@RATES
@SEEDS
def test_of_three_hosts_the_slow_one_is_named(*, rate_known: bool, seed: int) -> None:
    found = Fabric(leaves=(3,), rate_known=rate_known, seed=seed, send={"h2": 0.3}).sweep()
    assert _named(found) == {("host", "h2", "send")}
    assert found.isolate == ("h2",)


def test_crossed_faults_of_three_hosts_can_be_told_two_ways_and_isolate_nobody() -> None:
    found = Fabric(leaves=(3,), send={"h1": 0.3}, receive={"h2": 0.3}).sweep()
    assert found.isolate == found.culprits == ()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("h1->h2" in note and "nobody is accused" in note for note in found.notes)
    assert _status(found, "h1") is _status(found, "h2") is HostStatus.INCONCLUSIVE


@SEEDS
def test_three_slow_senders_do_not_make_a_culprit_of_the_fourth_host(seed: int) -> None:
    found = Fabric(leaves=(4,), seed=seed, send={"h1": 0.3, "h2": 0.3, "h3": 0.3}).sweep()
    assert found.isolate == ("h1", "h2", "h3")
    assert _status(found, "h4") is not HostStatus.FAULTY


@SEEDS
def test_a_slow_host_below_a_slow_uplink_is_named_beside_it(seed: int) -> None:
    for share in (0.1, 0.6):
        found = Fabric(
            leaves=(4, 4, 4), seed=seed, uplink={"leaf1": 0.3}, send={"h2": share}
        ).sweep()
        assert ("switch", "leaf1", "both") in _named(found)
        assert ("host", "h2", "send") in _named(found)
        assert found.isolate == ("h2",)


def test_a_blip_in_a_round_that_is_gone_in_quiet_accuses_nobody() -> None:
    found = Fabric(blips={("h1", "h2"): 0.3}).sweep()
    assert found.verdict is Verdict.HEALTHY
    assert [one.name for one in found.contention] == ["h1->h2"]
    assert len(found.good) == 8


def test_a_direction_that_was_fast_in_its_round_and_slow_once_in_quiet_is_asked_again() -> None:
    fabric = Fabric(link={("h1", "h2"): 0.3}, first_quiet={("h2", "h1"): 0.3})
    found = fabric.sweep()
    assert fabric.quiet_pairs == [PairKey("h1", "h2", 0)] * 2
    assert [one.name for one in found.culprits] == ["h1->h2"]


def test_what_was_not_measured_again_in_quiet_accuses_nobody() -> None:
    fabric = Fabric(send={"h3": 0.2})
    for one in fabric.rounds():
        fabric.measure(one.pairs, one.number, Purpose.ROUND)
    found = diagnose(fabric.evidence(), THRESHOLDS)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.culprits == found.isolate == ()
    assert _status(found, "h3") is HostStatus.INCONCLUSIVE
    assert "h3" not in found.good
    slow = {link.status for link in found.links if link.source == "h3"}
    assert slow == {LinkStatus.INCONCLUSIVE}
    assert any("measured again" in note for note in found.notes)


def test_figures_beside_a_busy_cpu_are_inconclusive() -> None:
    found = Fabric(send={"h3": 0.2}, idle={"h3": 0.05}).sweep()
    assert found.culprits == found.isolate == ()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert _status(found, "h3") is HostStatus.INCONCLUSIVE


def test_a_busy_cpu_does_not_matter_where_the_expectation_is_reached() -> None:
    found = Fabric(idle={"h3": 0.05}, noise=0.005).sweep()
    assert found.verdict is Verdict.HEALTHY
    assert len(found.good) == 8


def test_a_pair_that_fails_makes_the_sweep_inconclusive_and_both_hosts_stay_good() -> None:
    fabric = Fabric(error={("h1", "h2"), ("h2", "h1")})
    found = fabric.sweep()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert len(found.good) == 8
    assert [link.error for link in found.links if link.status is LinkStatus.ERROR] == [
        "timed out",
        "timed out",
    ]
    assert fabric.quiet_pairs == [PairKey("h1", "h2", 0)] * THRESHOLDS.quiet_tries


def test_a_host_all_of_whose_links_fail_is_inconclusive() -> None:
    names = [f"h{number}" for number in range(1, 9)]
    broken = {pair for name in names for pair in (("h4", name), (name, "h4"))}
    found = Fabric(error=broken).sweep()
    assert _status(found, "h4") is HostStatus.INCONCLUSIVE
    assert found.hosts[3].reason == "none of its 14 links gave a result: timed out"
    assert found.isolate == ()
    assert len(found.good) == 7
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_nic_that_was_not_measured_keeps_its_host_from_being_healthy() -> None:
    fabric = Fabric()
    for one in fabric.rounds():
        fabric.measure(one.pairs, one.number, Purpose.ROUND)
    evidence = replace(fabric.evidence(), unmeasured_nics={"h2:eth1": "no such NIC"})
    found = diagnose(evidence, THRESHOLDS)
    assert _status(found, "h2") is HostStatus.INCONCLUSIVE
    assert "eth1 was not measured: no such NIC" in next(
        host.reason for host in found.hosts if host.name == "h2"
    )


def test_what_a_budget_cut_off_is_untested_and_healthy_where_each_host_has_a_result() -> None:
    fabric = Fabric()
    first, *_ = fabric.rounds()
    fabric.measure(first.pairs, 0, Purpose.ROUND)
    found = diagnose(fabric.evidence(), THRESHOLDS)
    assert found.verdict is Verdict.HEALTHY
    assert found.untested_pairs == len(found.untested) == 24
    assert sum(link.status is LinkStatus.UNTESTED for link in found.links) == 48


def test_a_host_without_any_result_makes_the_sweep_inconclusive() -> None:
    fabric = Fabric()
    first, *_ = fabric.rounds()
    fabric.measure(first.pairs[1:], 0, Purpose.ROUND)
    found = diagnose(fabric.evidence(), THRESHOLDS)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert len(found.good) == 6


def test_nothing_measured_at_all_is_inconclusive() -> None:
    found = diagnose(Fabric().evidence(), THRESHOLDS)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.good == found.isolate == ()
    assert suspects(Fabric().evidence(), THRESHOLDS) == []


def test_both_yardsticks_are_shown() -> None:
    found = Fabric(send={"h3": 0.5}).sweep()
    link = next(one for one in found.links if one.source == "h3")
    assert link.expected_gbit_per_s == RATE
    assert link.expected_from == "rate 500 Mbit/s"
    assert link.efficiency == pytest.approx(0.5, abs=0.05)
    assert link.fleet_gbit_per_s == pytest.approx(RATE, rel=0.03)
    assert link.fleet_ratio == pytest.approx(0.5, abs=0.05)
    assert link.tests == 2


def test_a_link_lost_to_a_host_that_went_down_accuses_nobody() -> None:
    fabric = Fabric(send={"h3": 0.2})
    for one in fabric.rounds():
        fabric.measure(one.pairs, one.number, Purpose.ROUND)
    evidence = replace(fabric.evidence(), unreachable={"h3": "lost: worker closed"})
    assert suspects(evidence, THRESHOLDS) == []
    found = diagnose(evidence, THRESHOLDS)
    assert found.culprits == ()
    assert _status(found, "h3") is HostStatus.UNREACHABLE
    assert len(found.good) == 7
