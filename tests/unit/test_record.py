"""What a record makes of a journal: rails, NICs that are missing, versions that differ."""

from ncdiag.measure.engines.base import Timing
from ncdiag.measure.journal import HostState, Line, Plan, RunEnd
from ncdiag.measure.record import SweepRecord, version_notes
from ncdiag.model.host import Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import LinkKey


def nic(name: str) -> Nic:
    return Nic(name=name, kind=NicKind.ETHERNET, address="10.0.0.1")


def record(*states: Line, nics: tuple[str, ...] = ("eth0", "eth1")) -> SweepRecord:
    hosts = tuple(
        Host(name=name, address=name, nics=nics, rate_gbit_per_s=0.5) for name in ("a", "b", "c")
    )
    plan = Plan(
        started="2026-01-02T03:04:05Z",
        hosts=hosts,
        mode="full",
        engine="torch",
        launcher="ssh",
        seed=0,
        faulty_below=0.8,
        timing=Timing(),
    )
    return SweepRecord.of([plan, *states])


def up(name: str, *nics: str, **missing: str) -> HostState:
    facts = HostFacts(hostname=name, nics=tuple(map(nic, nics)), missing_nics=missing)
    return HostState(name=name, facts=facts)


def test_a_missing_first_nic_does_not_shift_the_second_to_its_rail() -> None:
    found = record(up("a", "eth0", "eth1"), up("b", "eth1", eth0="it is down"), up("c", "eth0"))

    assert {rail: one.name for rail, one in found.nics["b"].items()} == {1: "eth1"}
    assert found.evidence().nics == {"a": ("eth0", "eth1"), "b": ("", "eth1"), "c": ("eth0",)}
    assert found.expectation(LinkKey("a", "b", 0)) is None
    assert found.expectation(LinkKey("a", "b", 1)) is not None


def test_a_nic_that_cannot_be_measured_is_listed_with_its_reason() -> None:
    found = record(up("a", "eth0", "eth1"), up("b", "eth0", eth1="it is down"), up("c", "eth0"))

    assert found.rails == (0,)
    assert found.evidence().unmeasured_nics == {
        "b:eth1": "it is down",
        "a:eth1": "no other host has a NIC on this rail",
    }
    assert "a" not in found.report().diagnosis.good


def test_a_host_that_comes_back_is_no_longer_unreachable() -> None:
    lost = HostState(name="a", unreachable="lost: gone")

    assert record(up("a", "eth0"), lost).unreachable == {"a": "lost: gone"}
    assert record(up("a", "eth0"), lost, up("a", "eth0")).unreachable == {}


def test_hosts_that_are_not_in_the_plan_are_passed_over() -> None:
    assert record(up("x", "eth0")).nics == {}


def test_runs_of_a_resumed_sweep_add_up_and_the_last_one_tells_how_it_ended() -> None:
    found = record(RunEnd(seconds=2, interrupted=True), RunEnd(seconds=3))

    assert found.seconds == 5
    assert not found.interrupted


def test_versions_that_differ_are_one_line_for_each_program() -> None:
    def facts(ncdiag: str, torch: str) -> HostFacts:
        return HostFacts(hostname="x", versions={"ncdiag": ncdiag, "torch": torch})

    here = {"ncdiag": "1.0", "torch": "3.0"}
    fleet = {f"h{i}": facts("1.0", "2.13") for i in range(1, 6)}
    assert list(version_notes(here, fleet)) == []

    odd = fleet | {"h6": facts("0.9", "2.13"), "h7": facts("0.9", "2.9")}
    assert list(version_notes(here, odd)) == [
        "ncdiag 1.0, but on h[6-7] 0.9: results may not compare",
        "torch 2.13, but on h7 2.9: results may not compare",
    ]


def test_a_program_that_a_host_lacks_is_a_difference_too() -> None:
    fleet = {
        name: HostFacts(hostname=name, versions={"nccl": "2.27"} if name != "c" else {})
        for name in ("a", "b", "c")
    }

    assert list(version_notes({}, fleet)) == [
        "nccl 2.27, but on c no version: results may not compare"
    ]


def test_a_run_without_its_end_was_interrupted() -> None:
    end = RunEnd(seconds=1)

    assert record().interrupted
    assert record(up("a", "eth0")).interrupted
    assert not record(up("a", "eth0"), end).interrupted
    assert record(up("a", "eth0"), end, up("b", "eth0")).interrupted
