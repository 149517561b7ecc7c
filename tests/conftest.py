"""What several tests share: sweep reports made by hand, without a sweep."""

import random
from collections.abc import Callable, Mapping, Sequence

import pytest

from ncdiag.model.verdict import (
    Contention,
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepPlan,
    SweepReport,
    Verdict,
)

MakeReport = Callable[..., SweepReport]

PAYLOAD_GBIT_PER_S = 0.478
DERIVATION = "500 Mbit/s x 0.956 TCP at MTU 1500"


def sweep_report(
    names: Sequence[str] | int = 8,
    *,
    slow_senders: Mapping[str, float] | None = None,
    slow_links: Mapping[tuple[str, str], float] | None = None,
    unreachable: Mapping[str, str] | None = None,
    errors: Mapping[tuple[str, str], str] | None = None,
    rails: int = 1,
    expected_gbit_per_s: float | None = PAYLOAD_GBIT_PER_S,
    contention: Sequence[Contention] = (),
    notes: Sequence[str] = (),
    interrupted: bool = False,
    seed: int = 1,
) -> SweepReport:
    """A full sweep of ``names`` in which the given senders and links reach a share of the rate."""
    if isinstance(names, int):
        names = [f"h{number}" for number in range(1, names + 1)]
    slow_senders, slow_links = slow_senders or {}, slow_links or {}
    unreachable, errors = unreachable or {}, errors or {}
    noise = random.Random(seed)
    rate = expected_gbit_per_s or PAYLOAD_GBIT_PER_S

    def link(source: str, target: str, rail: int, round_number: int) -> LinkVerdict:
        error = errors.get((source, target))
        if error is not None:
            return LinkVerdict(
                source=source,
                target=target,
                rail=rail,
                status=LinkStatus.ERROR,
                error=error,
                round=round_number,
                engine="torch",
                tests=1,
            )
        slow = min(slow_senders.get(source, 1.0), slow_links.get((source, target), 1.0))
        measured = rate * slow * noise.uniform(0.97, 1.01)
        efficiency = measured / expected_gbit_per_s if expected_gbit_per_s else None
        return LinkVerdict(
            source=source,
            target=target,
            rail=rail,
            status=LinkStatus.FAULTY if slow < 0.8 else LinkStatus.HEALTHY,
            measured_gbit_per_s=measured,
            expected_gbit_per_s=expected_gbit_per_s,
            expected_from=DERIVATION if expected_gbit_per_s else None,
            efficiency=efficiency,
            fleet_gbit_per_s=rate,
            fleet_ratio=measured / rate,
            bytes=round(measured * 0.4e9 / 8),
            tests=2 if slow < 0.8 else 1,
            min_gbit_per_s=measured * noise.uniform(0.9, 1.0),
            idle=noise.uniform(0.5, 0.9),
            round=round_number,
            engine="torch",
        )

    up = [name for name in names if name not in unreachable]
    links = tuple(
        link(source, target, rail, (row + column) % len(up))
        for rail in range(rails)
        for row, source in enumerate(up)
        for column, target in enumerate(up)
        if source != target
    )
    isolate = tuple(name for name in up if name in slow_senders)
    return SweepReport(
        started="2026-11-29T03:12:45Z",
        seconds=42.4242424242,
        plan=SweepPlan(
            mode="full",
            hosts=len(names),
            rounds=len(up) - 1,
            pairs=rails * len(up) * (len(up) - 1) // 2,
            engine="torch",
            launcher="ssh",
        ),
        diagnosis=Diagnosis(
            verdict=_verdict(slow_senders or slow_links, unreachable or errors),
            links=links,
            hosts=tuple(_host(name, slow_senders, unreachable) for name in names),
            culprits=tuple(_culprits(up, slow_senders, slow_links)),
            contention=tuple(contention),
            isolate=isolate,
            good=tuple(name for name in up if name not in isolate),
            notes=tuple(notes),
        ),
        settings={"faulty_below": "0.8", "measure": "0.4 s", "mode": "full"},
        versions={"ncdiag": "0.1.0", "torch": "2.13.0"},
        interrupted=interrupted,
    )


def _verdict(faults: Mapping[object, object], unknowns: Mapping[object, object]) -> Verdict:
    if faults:
        return Verdict.FAULTY
    return Verdict.INCONCLUSIVE if unknowns else Verdict.HEALTHY


def _host(
    name: str, slow_senders: Mapping[str, float], unreachable: Mapping[str, str]
) -> HostVerdict:
    if name in unreachable:
        return HostVerdict(name=name, status=HostStatus.UNREACHABLE, reason=unreachable[name])
    if name in slow_senders:
        return HostVerdict(
            name=name, status=HostStatus.FAULTY, efficiency=0.6, reason="slow sending"
        )
    return HostVerdict(name=name, status=HostStatus.HEALTHY, efficiency=0.991)


def _culprits(
    up: Sequence[str],
    slow_senders: Mapping[str, float],
    slow_links: Mapping[tuple[str, str], float],
) -> list[Culprit]:
    hosts = [
        Culprit(
            kind=CulpritKind.HOST,
            name=name,
            direction=Direction.SEND,
            status=LinkStatus.FAULTY,
            confidence=0.99,
            efficiency=share,
            explains=len(up) - 1,
            contradicts=0,
            reason=f"{len(up) - 1} of {len(up) - 1} links it sends on reach "
            f"{share:.0%} of what they should; all it receives is as expected",
            next=f"ssh {name} ethtool -S eth0",
        )
        for name, share in slow_senders.items()
    ]
    links = [
        Culprit(
            kind=CulpritKind.LINK,
            name=f"{source}->{target}",
            direction=Direction.SEND,
            status=LinkStatus.FAULTY,
            confidence=0.8,
            efficiency=share,
            explains=1,
            contradicts=0,
            reason="slow twice, also alone; both hosts are fast with everybody else",
            next=f"traceroute from {source} to {target}: look for the path only they share",
        )
        for (source, target), share in slow_links.items()
    ]
    return hosts + links


@pytest.fixture
def make_report() -> MakeReport:
    """Build a sweep's report by hand: see ``sweep_report``."""
    return sweep_report


@pytest.fixture
def faulty_report() -> SweepReport:
    """Eight hosts: h3 sends slowly, the link h5->h6 is slow, h8 cannot be reached."""
    return sweep_report(
        slow_senders={"h3": 0.2},
        slow_links={("h5", "h6"): 0.1},
        unreachable={"h8": "ssh: connect to host h8 port 22: Connection refused"},
        notes=["eth1 of h2 was not measured: no carrier"],
        contention=[
            Contention(name="leaf1", alone_gbit_per_s=0.47, together_gbit_per_s=0.21, pairs=4)
        ],
    )
