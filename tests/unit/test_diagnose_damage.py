"""Sweeps in which data arrives wrong: worse than slow, whatever later measurements say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from ncdiag.diagnose.diagnosis import diagnose
from ncdiag.diagnose.suspects import suspects
from ncdiag.diagnose.thresholds import Thresholds
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
    LinkVerdict,
    Verdict,
)
from ncdiag.report import describe

RATE = 0.478
WRONG = "payload arrived damaged"
Links = Iterable[tuple[str, str]]


@dataclass
class Fleet:
    """Hosts of which some links damage data in their first ``lasts`` measurements."""

    hosts: int = 8
    wrong: Links = ()
    slow: Links = ()
    lasts: int = 1
    rate_known: bool = True
    rails: int = 1
    on_rail: int | None = None
    told: str | None = None
    unreachable: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = [f"h{number}" for number in range(1, self.hosts + 1)]
        self.measured: list[Measurement] = []

    def pairs(self) -> Iterator[PairKey]:
        for rail in range(self.rails):
            for place, first in enumerate(self.names):
                for second in self.names[place + 1 :]:
                    yield PairKey(first, second, rail)

    def measure(self, pair: PairKey, purpose: Purpose) -> None:
        for link in pair.directions:
            common = Measurement(
                source=link.source,
                target=link.target,
                rail=link.rail,
                round=0,
                purpose=purpose,
                engine="made-up",
            )
            before = sum(one.link == link for one in self.measured)
            self.measured.append(self._result(common, link, before))

    def _result(self, one: Measurement, link: LinkKey, before: int) -> Measurement:
        on_rail = self.on_rail in (None, link.rail)
        if (link.source, link.target) in set(self.wrong) and before < self.lasts and on_rail:
            return _changed(one, error=self.told or f"{link.target}: {WRONG}", damaged=True)
        share = 0.3 if (link.source, link.target) in set(self.slow) else 1.0
        return _changed(one, measured_gbit_per_s=RATE * share, min_gbit_per_s=RATE * share)

    def evidence(self) -> SweepEvidence:
        expected = Expectation(gbit_per_s=RATE, derivation="rate 500 Mbit/s")
        return SweepEvidence(
            hosts=[Host(name=name, address=name) for name in self.names],
            unreachable=self.unreachable,
            nics={name: [f"eth{rail}" for rail in range(self.rails)] for name in self.names},
            measurements=self.measured,
            expectation=lambda _link: expected if self.rate_known else None,
            planned=self.pairs,
        )

    def sweep(self) -> Diagnosis:
        for pair in self.pairs():
            self.measure(pair, Purpose.ROUND)
        for _ in range(10):
            asked = suspects(self.evidence(), Thresholds())
            if not asked:
                return diagnose(self.evidence(), Thresholds())
            for pair in asked:
                self.measure(pair, Purpose.QUIET)
        pytest.fail("suspects are asked for without end")


def _changed(one: Measurement, **changes: object) -> Measurement:
    return replace(one, **changes)  # type: ignore[arg-type]


def _link(found: Diagnosis, source: str, target: str) -> LinkVerdict:
    return next(one for one in found.links if (one.source, one.target) == (source, target))


def _status(found: Diagnosis, name: str) -> HostStatus:
    return next(host.status for host in found.hosts if host.name == name)


def _only(found: Diagnosis) -> Culprit:
    assert len(found.culprits) == 1, found.culprits
    return found.culprits[0]


RATES = pytest.mark.parametrize("rate_known", [True, False], ids=["rate", "no-rate"])
LASTS = pytest.mark.parametrize("lasts", [1, 9], ids=["once", "always"])


@RATES
@LASTS
def test_a_damaged_link_is_faulty_and_being_fast_later_does_not_clear_it(
    *, rate_known: bool, lasts: int
) -> None:
    fleet = Fleet(wrong=[("h2", "h5")], rate_known=rate_known, lasts=lasts)
    found = fleet.sweep()
    assert found.verdict is Verdict.FAULTY
    assert found.isolate == ()
    culprit = _only(found)
    assert (culprit.kind, culprit.name) == (CulpritKind.LINK, "h2->h5")
    assert (culprit.status, culprit.damaged, culprit.efficiency) == (LinkStatus.FAULTY, True, 0.0)
    times = "2 of 2" if lasts > 1 else "1 of 2"
    assert culprit.reason == (
        f"data arrived wrong, in {times} measurements: h5: {WRONG}; either end or the path"
        " between them may be the cause"
    )
    assert "ncdiag sweep --nodes h2,h5,h1 tells which end" in culprit.next
    assert "NCCL_PROTO" in culprit.next
    link = _link(found, "h2", "h5")
    assert (link.status, link.error) == (LinkStatus.FAULTY, f"h5: {WRONG}")
    assert link.measured_gbit_per_s is None
    assert link.efficiency == (0.0 if rate_known else None)
    assert link.fleet_ratio == 0.0
    assert _link(found, "h5", "h2").status is LinkStatus.HEALTHY


@RATES
def test_both_ends_of_a_damaged_link_are_undecided_and_nobody_else_is(*, rate_known: bool) -> None:
    found = Fleet(wrong=[("h2", "h5")], rate_known=rate_known).sweep()
    assert found.good == ("h1", "h3", "h4", "h6", "h7", "h8")
    assert _status(found, "h2") is _status(found, "h5") is HostStatus.INCONCLUSIVE
    assert found.hosts[1].reason == (
        "data arrived wrong between it and h5, and either may be the cause"
    )


@pytest.mark.parametrize(
    ("wrong", "direction"),
    [
        ([("h3", "h1"), ("h3", "h6")], Direction.SEND),
        ([("h1", "h3"), ("h6", "h3")], Direction.RECEIVE),
        ([("h1", "h3"), ("h3", "h6")], Direction.BOTH),
        # As an engine tells it that measures both directions at once.
        ([("h1", "h3"), ("h3", "h1"), ("h3", "h6"), ("h6", "h3")], Direction.BOTH),
    ],
)
@RATES
@LASTS
def test_a_host_with_two_partners_is_isolated_and_they_are_not(
    *, wrong: Links, direction: Direction, rate_known: bool, lasts: int
) -> None:
    found = Fleet(wrong=wrong, rate_known=rate_known, lasts=lasts).sweep()
    assert found.isolate == ("h3",)
    assert found.good == ("h1", "h2", "h4", "h5", "h6", "h7", "h8")
    culprit = _only(found)
    assert (culprit.kind, culprit.name, culprit.direction) == (CulpritKind.HOST, "h3", direction)
    assert "2 partners (h[1,6])" in culprit.reason
    assert "ncdiag sweep --nodes h3,h1,h6" in culprit.next
    assert "%" not in culprit.reason
    assert "nvidia-smi -q -d ECC" in culprit.next
    assert found.hosts[2].efficiency is not None


def test_damaged_with_one_partner_and_slow_with_another_isolates_the_host() -> None:
    found = Fleet(wrong=[("h3", "h1")], slow=[("h3", "h6")]).sweep()
    assert found.isolate == ("h3",)
    culprit = _only(found)
    assert (culprit.name, culprit.explains) == ("h3", 2)
    assert "1 partner (h1)" in culprit.reason
    assert "30 % of the expected rate" in culprit.reason


def test_what_a_slow_host_damages_is_its_own() -> None:
    slow = [("h3", f"h{number}") for number in (1, 2, 4, 5, 6, 7, 8)]
    found = Fleet(wrong=[("h3", "h1")], slow=slow).sweep()
    assert found.isolate == ("h3",)
    assert _only(found).explains == 7
    assert "h1" in found.good


def test_a_slow_link_of_others_is_no_evidence() -> None:
    found = Fleet(wrong=[("h3", "h1")], slow=[("h6", "h7")]).sweep()
    assert found.isolate == ()
    assert {one.name for one in found.culprits} == {"h3->h1", "h6->h7"}
    assert found.culprits[0].damaged


def test_three_hosts_that_damage_each_others_data_cannot_be_told_apart() -> None:
    found = Fleet(wrong=[("h1", "h2"), ("h2", "h3"), ("h3", "h1")]).sweep()
    assert found.isolate == ()
    assert len(found.culprits) == 3
    assert all(_status(found, name) is HostStatus.INCONCLUSIVE for name in ("h1", "h2", "h3"))
    assert any("3 pairs that no one host explains" in note for note in found.notes)


def test_two_hosts_cannot_be_told_apart() -> None:
    found = Fleet(hosts=2, wrong=[("h1", "h2")]).sweep()
    assert found.verdict is Verdict.FAULTY
    assert found.isolate == found.good == ()
    assert "ncdiag sweep --nodes h1,h2;" in _only(found).next
    assert "add a third host" in found.notes[-1]


@RATES
def test_where_all_data_is_damaged_links_are_named_and_nobody_is_isolated(
    *, rate_known: bool
) -> None:
    names = [f"h{number}" for number in range(1, 5)]
    wrong = [(one, other) for one in names for other in names if one != other]
    found = Fleet(hosts=4, wrong=wrong, rate_known=rate_known, lasts=9).sweep()
    assert found.verdict is Verdict.FAULTY
    assert found.isolate == found.good == ()
    assert len(found.culprits) == 12


@RATES
def test_damage_is_not_averaged_into_the_fleet(*, rate_known: bool) -> None:
    wrong = [("h3", f"h{number}") for number in (1, 2, 4)]
    found = Fleet(hosts=4, wrong=wrong, rate_known=rate_known, lasts=9).sweep()
    assert found.isolate == ("h3",)
    assert found.hosts[2].efficiency == 0.0
    sound = [link for link in found.links if link.status is LinkStatus.HEALTHY]
    assert len(sound) == 9
    assert all(link.fleet_ratio == pytest.approx(1.0) for link in sound)


def test_damage_is_measured_again_once() -> None:
    fleet = Fleet(wrong=[("h2", "h5")], lasts=9)
    fleet.sweep()
    again = [one for one in fleet.measured if one.purpose is Purpose.QUIET]
    assert [(one.source, one.target) for one in again] == [("h2", "h5"), ("h5", "h2")]


@pytest.mark.parametrize("same", [True, False], ids=["of the pair", "by direction"])
def test_a_pair_that_was_told_of_as_one_is_one_culprit(*, same: bool) -> None:
    fleet = Fleet(wrong=[("h2", "h5"), ("h5", "h2")], told="wrong data" if same else None)
    found = fleet.sweep()
    assert found.isolate == ()
    assert [(one.name, one.direction, one.explains) for one in found.culprits] == (
        [("h2->h5", Direction.BOTH, 2)]
        if same
        else [("h2->h5", Direction.SEND, 1), ("h5->h2", Direction.SEND, 1)]
    )
    assert describe.culprit(found.culprits[0]) == (
        "link h2->h5 (both directions)" if same else "link h2->h5"
    )
    assert all(describe.reaches(one) == "wrong data" for one in found.culprits)


def test_what_is_damaged_is_no_contention_and_no_slow_group() -> None:
    found = Fleet(wrong=[("h3", "h1"), ("h3", "h6")]).sweep()
    assert found.contention == ()


def test_damage_with_a_host_that_was_lost_later_is_still_told() -> None:
    fleet = Fleet(wrong=[("h2", "h5"), ("h2", "h6")], unreachable={"h2": "lost"})
    found = fleet.sweep()
    assert found.verdict is Verdict.FAULTY
    assert found.isolate == ()
    assert {one.name for one in found.culprits} == {"h2->h5", "h2->h6"}
    assert _status(found, "h2") is HostStatus.UNREACHABLE


def test_of_many_rails_the_one_with_the_damage_is_named() -> None:
    wrong = [("h3", f"h{number}") for number in (1, 2, 4, 5, 6, 7, 8)]
    found = Fleet(wrong=wrong, rails=2, on_rail=1).sweep()
    assert (_only(found).kind, _only(found).name) == (CulpritKind.NIC, "h3:eth1")
    assert found.isolate == ("h3",)
    few = Fleet(wrong=wrong[:2], rails=2, on_rail=1).sweep()
    assert (_only(few).kind, _only(few).name) == (CulpritKind.HOST, "h3")
