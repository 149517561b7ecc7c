"""Sweeps of which most figures are useless: who is accused all the same must be guilty.

A busy CPU, an error or a budget takes away any links, so that a slow sender can be left with a
single figure, which is as slow as that of a slow path would be.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from ncdiag.diagnose.diagnosis import diagnose
from ncdiag.diagnose.suspects import suspects
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.host import Host
from ncdiag.model.measurement import Expectation, LinkKey, Measurement, PairKey, Purpose
from ncdiag.model.verdict import CulpritKind, Diagnosis, HostStatus, LinkStatus, Verdict

RATE = 0.478
THRESHOLDS = Thresholds()
SEEDS = 600


@dataclass(frozen=True)
class Sweep:
    """Hosts h1 to hN, a share for each slow part, and what spoils the figures of each link."""

    hosts: int
    send: Mapping[str, float]
    receive: Mapping[str, float]
    link: Mapping[tuple[str, str], float]
    spoiled: Mapping[tuple[str, str], str]
    seed: int
    rate_known: bool = True
    leaves: int = 1

    @property
    def names(self) -> list[str]:
        return [f"h{number}" for number in range(1, self.hosts + 1)]

    def share(self, source: str, target: str) -> float:
        return min(
            self.send.get(source, 1.0),
            self.receive.get(target, 1.0),
            self.link.get((source, target), 1.0),
        )

    def pairs(self) -> Iterator[PairKey]:
        names = self.names
        for place, first in enumerate(names):
            yield from (PairKey(first, second, 0) for second in names[place + 1 :])

    def measured(self, link: LinkKey, purpose: Purpose, noise: random.Random) -> list[Measurement]:
        spoiled = self.spoiled.get((link.source, link.target))
        if spoiled == "untested":
            return []
        rate = RATE * self.share(link.source, link.target) * noise.gauss(1, 0.015)
        busy = spoiled == "busy"
        figure = None if spoiled == "error" else rate * (noise.uniform(0.1, 1) if busy else 1)
        return [
            Measurement(
                source=link.source,
                target=link.target,
                rail=link.rail,
                round=0 if purpose is Purpose.ROUND else 1000,
                purpose=purpose,
                engine="made-up",
                measured_gbit_per_s=figure,
                min_gbit_per_s=figure,
                idle=0.02 if busy else 0.7,
                error="timed out" if spoiled == "error" else None,
            )
        ]

    def diagnosis(self) -> Diagnosis:
        noise = random.Random(self.seed)
        found = [
            one
            for pair in self.pairs()
            for link in pair.directions
            for one in self.measured(link, Purpose.ROUND, noise)
        ]
        while asked := suspects(self._evidence(found), THRESHOLDS):
            for pair in asked:
                for link in pair.directions:
                    found += self.measured(link, Purpose.QUIET, noise)
        return diagnose(self._evidence(found), THRESHOLDS)

    def _evidence(self, found: list[Measurement]) -> SweepEvidence:
        expected = Expectation(gbit_per_s=RATE, derivation="rate 500 Mbit/s")
        return SweepEvidence(
            hosts=[
                Host(name=name, address=name, leaf=f"leaf{place % self.leaves}")
                for place, name in enumerate(self.names)
            ],
            unreachable={},
            nics={name: ["eth0"] for name in self.names},
            measurements=list(found),
            expectation=lambda _: expected if self.rate_known else None,
            planned=self.pairs,
        )


def random_sweep(seed: int, *, faults: int = 1, spoiled: float | None = None) -> Sweep:
    """A fabric with some faults, of which a random part of the links tells nothing."""
    dice = random.Random(seed)
    hosts = dice.randint(3, 8)
    names = [f"h{number}" for number in range(1, hosts + 1)]
    send, receive, link = {}, {}, {}
    for _ in range(dice.randint(1, faults)):
        share, host = dice.uniform(0.1, 0.6), dice.choice(names)
        kind = dice.choice(("send", "receive", "both", "link"))
        if kind == "link":
            source, target = dice.sample(names, 2)
            link[source, target] = share
        if kind in {"send", "both"}:
            send[host] = share
        if kind in {"receive", "both"}:
            receive[host] = share
    part = dice.uniform(0.0, 0.9) if spoiled is None else spoiled
    return Sweep(
        hosts=hosts,
        send=send,
        receive=receive,
        link=link,
        spoiled={
            (source, target): dice.choice(("busy", "busy", "error", "untested"))
            for source in names
            for target in names
            if source != target and dice.random() < part
        },
        seed=seed,
        rate_known=dice.random() < 0.7,
        leaves=dice.randint(1, 2),
    )


def wrongly_accused(sweep: Sweep, found: Diagnosis) -> list[str]:
    """Whoever is named or isolated without a fault of its own."""
    guilty = {*sweep.send, *sweep.receive}
    paths = {f"{source}->{target}" for source, target in sweep.link}
    wrong = [name for name in found.isolate if name not in guilty]
    for one in found.culprits:
        allowed = paths if one.kind is CulpritKind.LINK else guilty
        if one.name not in allowed:
            wrong.append(f"{one.kind.value} {one.name}")
    return wrong


def test_whatever_cannot_be_measured_nobody_innocent_is_named() -> None:
    wrong, named, silent = {}, 0, []
    for seed in range(SEEDS):
        sweep = random_sweep(seed)
        found = sweep.diagnosis()
        if accused := wrongly_accused(sweep, found):
            wrong[seed] = accused
        named += bool(found.culprits)
        if found.verdict is Verdict.HEALTHY and any(
            link.status is LinkStatus.FAULTY for link in found.links
        ):
            silent.append(seed)
    assert wrong == {}
    assert silent == [], "a faulty link in a healthy fleet"
    assert named > SEEDS // 3, "the test would pass if nobody were ever named"


def spoiled(kind: str, *links: str) -> dict[tuple[str, str], str]:
    found = {}
    for link in links:
        source, target = link.split("->")
        found[source, target] = kind
    return found


@pytest.mark.parametrize("kind", ["busy", "error", "untested"])
@pytest.mark.parametrize(
    ("send", "receive", "lost", "only"),
    [
        ({"h3": 0.2}, {}, ("h3->h1", "h3->h4"), "h3->h2"),
        ({}, {"h3": 0.2}, ("h1->h3", "h4->h3"), "h2->h3"),
    ],
)
def test_a_host_with_one_slow_figure_is_undecided_and_so_is_its_link(
    kind: str, send: dict[str, float], receive: dict[str, float], lost: tuple[str, ...], only: str
) -> None:
    found = Sweep(4, send, receive, {}, spoiled(kind, *lost), seed=1).diagnosis()
    assert (found.verdict, found.culprits, found.isolate) == (Verdict.INCONCLUSIVE, (), ())
    status = {host.name: host.status for host in found.hosts}
    assert status["h3"] is HostStatus.INCONCLUSIVE
    assert any(only in note and "nobody is accused" in note for note in found.notes)


def test_a_link_whose_hosts_are_fast_elsewhere_is_accused() -> None:
    lost = spoiled("busy", "h3->h4", "h1->h2")
    found = Sweep(4, {}, {}, {("h3", "h2"): 0.2}, lost, seed=1).diagnosis()
    assert [(one.kind, one.name) for one in found.culprits] == [(CulpritKind.LINK, "h3->h2")]
    assert found.verdict is Verdict.FAULTY


def test_two_slow_senders_met_by_one_receiver_alone_do_not_isolate_it() -> None:
    others = spoiled("busy", "h1->h3", "h1->h4", "h3->h1", "h3->h4", "h4->h2")
    found = Sweep(4, {"h1": 0.3, "h3": 0.3}, {}, {}, others, seed=1).diagnosis()
    assert (found.verdict, found.culprits, found.isolate) == (Verdict.INCONCLUSIVE, (), ())
    reason = next(host.reason for host in found.hosts if host.name == "h2")
    assert "too little is known to tell who is slow" in reason


def test_one_host_in_all_that_is_known_is_not_the_fleet() -> None:
    others = spoiled("error", "h2->h3", "h3->h2")
    found = Sweep(3, {"h1": 0.1}, {"h1": 0.1}, {}, others, seed=1).diagnosis()
    assert (found.verdict, found.culprits, found.isolate) == (Verdict.INCONCLUSIVE, (), ())
