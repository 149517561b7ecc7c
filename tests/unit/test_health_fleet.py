"""Hosts against the fleet: who differs, who is not accused, and what a sweep says of a host."""

from dataclasses import replace
from typing import Any

import pytest
from gpu_hosts import earlier, gpu, gpu_host, ib_port, readings, with_gpu, with_port

from ncdiag.health.checks import (
    CHECKS,
    ExpectedHost,
    check_bandwidth,
    compare_fleet,
    judge_fleet,
)
from ncdiag.health.checks.check import Scope
from ncdiag.model.health import (
    HealthFacts,
    HealthReport,
    HostFitness,
    Severity,
    SourceState,
)
from ncdiag.model.verdict import HostStatus, HostVerdict


def fleet(number: int, **odd: HealthFacts) -> dict[str, HealthFacts]:
    """Healthy hosts, and some that are given."""
    asked = gpu_host().taken_s - 1.0
    all_asked = {"asked_s": asked, "answered_s": asked + 2.0}
    hosts = {f"gpu{n:03}": gpu_host(**all_asked) for n in range(1, number + 1)}
    return {**hosts, **odd}


def asked(facts: HealthFacts, **changes: Any) -> HealthFacts:
    """The same, as a driver that asked for it has it."""
    at = gpu_host().taken_s - 1.0
    return replace(facts, asked_s=at, answered_s=at + 2.0, **changes)


def found(facts: dict[str, HealthFacts]) -> dict[str, dict[str, Severity]]:
    """The findings of each host by check."""
    return {
        host: {one.check: one.severity for one in findings}
        for host, findings in compare_fleet(facts)[1].items()
    }


def test_hosts_that_are_alike_have_no_differences() -> None:
    assert compare_fleet(fleet(8)) == ((), {})


@pytest.mark.parametrize(
    ("what", "odd"),
    [
        ("driver", {"versions": {"driver": "535.1", "kernel": "5.15.0-122-generic"}}),
        ("kernel", {"versions": {"driver": "550.127.08", "kernel": "6.8"}}),
        ("limit of memlock", {"limits": {"memlock": 65_536}}),
        ("iommu", {"settings": {"iommu": "on"}}),
        ("CPUs", {"cpus": 96}),
        ("GPUs", {"gpus": tuple(map(gpu, range(7)))}),
        ("VBIOS", {"gpus": tuple(gpu(index, vbios="96.1") for index in range(8))}),
        ("ECC mode", {"gpus": tuple(gpu(index, ecc_mode=False) for index in range(8))}),
        (
            "firmware of MT_0000000838",
            {"ib_ports": tuple(ib_port(index, firmware="28.1") for index in range(8))},
        ),
    ],
)
def test_who_differs_from_nearly_all_is_told_and_never_at_fault(
    what: str, odd: dict[str, Any]
) -> None:
    facts = fleet(7, odd=asked(gpu_host(**odd)))
    differences, findings = compare_fleet(facts)
    [difference] = [one for one in differences if one.what == what]
    assert difference.hosts == ("odd",)
    assert difference.most_hosts == 7
    assert difference.most != difference.other
    assert set(findings) == {"odd"}
    assert {one.severity for one in findings["odd"]} == {Severity.WARNING}
    assert all(one.configuration for one in findings["odd"])


def test_nobody_is_the_odd_one_of_two_or_of_halves() -> None:
    old = asked(gpu_host(versions={"driver": "535.1"}))
    assert compare_fleet(fleet(1, odd=old)) == ((), {})
    assert compare_fleet(fleet(4, a=old, b=old, c=old, d=old)) == ((), {})
    one_of_three = compare_fleet(fleet(2, odd=old))[0]
    assert [one.hosts for one in one_of_three] == [("odd",)]


def test_a_port_that_is_down_or_slow_against_the_fleet_is_a_fault() -> None:
    lone = {"ib_ports": (ib_port(0), ib_port(1))}
    hosts = {f"h{n}": asked(gpu_host(**lone)) for n in range(7)}
    down = asked(gpu_host(ib_ports=(ib_port(0), ib_port(1, state="DOWN"))))
    slow = asked(gpu_host(ib_ports=(ib_port(0, rate_gbit_per_s=100.0), ib_port(1))))
    narrow = asked(gpu_host(ib_ports=(ib_port(0, width=1), ib_port(1))))
    assert found({**hosts, "odd": down}) == {"odd": {"ib_port_down": Severity.FAULT}}
    assert found({**hosts, "odd": slow}) == {"odd": {"ib_port_slow": Severity.FAULT}}
    assert found({**hosts, "odd": narrow}) == {"odd": {"ib_port_slow": Severity.FAULT}}
    booting = replace(down, uptime_s=60.0)
    assert found({**hosts, "odd": booting}) == {"odd": {"ib_port_down": Severity.WARNING}}


def test_a_port_that_no_host_uses_is_not_accused() -> None:
    unused = gpu_host(ib_ports=(ib_port(0), ib_port(1, state="DOWN")))
    assert compare_fleet({f"h{n}": asked(unused) for n in range(8)}) == ((), {})


def test_a_clock_beside_the_fleets_is_a_warning() -> None:
    off = asked(gpu_host(taken_s=gpu_host().taken_s + 30))
    [finding] = compare_fleet(fleet(5, odd=off))[1]["odd"]
    assert finding.check == "clock_skew"
    assert finding.severity is Severity.WARNING
    assert finding.measured == "30 s"
    within_what_asking_took = replace(off, answered_s=(off.asked_s or 0.0) + 80.0)
    assert compare_fleet(fleet(5, odd=within_what_asking_took))[1] == {}


def test_a_driver_whose_own_clock_is_wrong_accuses_nobody() -> None:
    shifted = {host: replace(one, taken_s=one.taken_s + 900) for host, one in fleet(5).items()}
    assert compare_fleet(shifted) == ((), {})


def test_a_fleet_is_judged_with_every_host_in_the_order_asked() -> None:
    facts = fleet(4, sick=asked(with_gpu(lost=True)))
    hosts, differences = judge_fleet(
        facts, errors={"gone": "no route"}, hosts=["gone", "sick", *facts], expected={}
    )
    assert [host.host for host in hosts[:2]] == ["gone", "sick"]
    assert len(hosts) == 6
    states = {host.host: host.fitness for host in hosts}
    assert states["gone"] is HostFitness.UNKNOWN
    assert states["sick"] is HostFitness.FATAL
    assert states["gpu001"] is HostFitness.HEALTHY
    assert differences == ()
    report = HealthReport(started="", seconds=0.0, hosts=hosts)
    assert report.exit_code == 1


def test_comparing_adds_its_checks_to_each_host() -> None:
    hosts, _ = judge_fleet(fleet(4))
    of_fleet = {one.id for one in CHECKS.values() if one.scope is Scope.FLEET}
    assert all(of_fleet <= set(host.passed) for host in hosts)
    [alone], _ = judge_fleet(fleet(1))
    assert of_fleet <= {one.check for one in alone.not_known}


@pytest.mark.parametrize("check", ["unlike_fleet", "clock_skew"])
def test_a_fleet_check_without_its_source_finds_nothing_and_is_not_known(check: str) -> None:
    silent = HealthFacts(hostname="odd", taken_s=0.0, sources=readings(SourceState.ABSENT))
    hosts, _ = judge_fleet(fleet(4, odd=silent))
    odd = hosts[-1]
    assert odd.findings == ()
    assert check in {one.check for one in odd.not_known}
    assert odd.fitness is HostFitness.UNKNOWN


def test_what_a_host_says_itself_is_not_said_twice() -> None:
    hosts, _ = judge_fleet(fleet(5, odd=asked(with_port(rate_gbit_per_s=100.0))))
    [finding] = hosts[-1].findings
    assert (finding.check, finding.device) == ("ib_port_slow", "mlx5_5")


def test_each_host_has_its_own_reading_and_expectation() -> None:
    facts = fleet(3)
    hosts, _ = judge_fleet(
        facts,
        before={"gpu002": earlier(with_port(counters={"link_downed": 0}))},
        expected={"gpu003": ExpectedHost(gpus=16)},
    )
    assert [{one.check for one in host.findings} for host in hosts] == [
        set(),
        {"ib_errors_rising"},
        {"gpu_missing"},
    ]


@pytest.mark.parametrize(
    ("status", "efficiency", "severity"),
    [
        (HostStatus.FAULTY, 0.5, Severity.FAULT),
        (HostStatus.DEGRADED, 0.5, Severity.WARNING),
        (HostStatus.HEALTHY, 0.79, Severity.WARNING),
        (HostStatus.HEALTHY, 0.8, None),
        (HostStatus.INCONCLUSIVE, 0.1, None),
        (HostStatus.UNREACHABLE, None, None),
    ],
)
def test_bandwidth_is_judged_by_what_the_sweep_found(
    status: HostStatus, efficiency: float | None, severity: Severity | None
) -> None:
    verdict = HostVerdict(name="a", status=status, efficiency=efficiency)
    finding = check_bandwidth(verdict, "a")
    assert (finding.severity if finding else None) is severity
    assert check_bandwidth(verdict, "b") is None
