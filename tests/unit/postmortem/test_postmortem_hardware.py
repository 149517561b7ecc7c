"""Cascades of one host's hardware, and links that come and go."""

from typing import Any

import pytest


def test_followers_of_an_xid_are_no_faults_of_their_own(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("gpu_memory_error", "a", xid="48", pci="0000:1b:00", at=0),
        bench.event("xid_followup", "a", xid="45", pci="0000:1b:00", at=1),
        bench.event("gpu_internal_fault", "a", xid="62", pci="0000:1b:00", at=2),
        bench.event("xid_application_fault", "a", xid="31", pci="0000:1b:00", at=3),
    )
    assert names.roots(answer) == ["gpu_memory_error"]


def test_a_fault_of_another_gpu_or_another_hour_stands_by_itself(
    bench: Any, post: Any, names: Any
) -> None:
    first = bench.event("gsp_timeout", "a", xid="119", pci="0000:1b:00", at=0)
    other = bench.event("gpu_internal_fault", "a", xid="62", pci="0000:9b:00", at=1)
    assert names.roots(post(first, other)) == ["gsp_timeout", "gpu_internal_fault"]
    later = bench.event("gpu_internal_fault", "a", xid="62", pci="0000:1b:00", at=7200)
    assert names.roots(post(first, later)) == ["gsp_timeout", "gpu_internal_fault"]


def test_a_lost_gpu_explains_the_links_of_its_peers(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("gpu_fell_off_bus", "a", xid="79", pci="0000:1b:00", at=0),
        bench.event("nvlink_error", "a", xid="74", pci="0000:43:00", at=1),
    )
    assert names.roots(answer) == ["gpu_fell_off_bus"]


def test_all_gpus_of_a_host_are_one_finding(bench: Any, post: Any, names: Any) -> None:
    events = [
        bench.event("gpu_fell_off_bus", "a", xid="79", pci=f"0000:{n}b:00", at=n) for n in range(8)
    ]
    answer = post(*events)
    assert names.classes(answer) == ["gpu_fell_off_bus"]
    assert answer.findings[0].count == 8
    assert "a" in names.suspects(answer.findings[0])


def test_one_gpu_repeated_is_one_finding_and_two_gpus_are_two(bench: Any, post: Any) -> None:
    def memory(pci: Any) -> Any:
        return bench.event("gpu_memory_error", "a", xid="95", pci=pci)

    assert len(post(memory("0000:1b:00"), memory("0000:1b:00")).findings) == 1
    assert len(post(memory("0000:1b:00"), memory("0000:43:00")).findings) == 2


def test_the_first_fatal_link_record_decides(bench: Any, post: Any, names: Any) -> None:
    nonfatal = {"details": {"fatal": "no"}, "severity": "degraded"}
    answer = post(
        bench.event("nvlink_error", "a", xid="145", pci="0000:ed:00", **nonfatal),
        bench.event("nvlink_error", "a", xid="149", pci="0000:dc:00", details={"fatal": "yes"}),
    )
    finding = names.of(answer, "nvlink_error")
    assert finding.attributes["xid"] == "149"
    assert names.suspects(finding)[0] == "0000:dc:00"
    assert finding.severity == "fatal"


def test_the_driver_of_the_adapter_explains_its_port(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("ib_port_error", "a", pid="1", at=1),
        bench.event("nic_firmware_fault", "a", device="0000:5c:00.0", at=2),
        bench.event("nic_link_down", "a", details={"state": "down"}, device="0000:5c:00.0", at=3),
    )
    assert names.roots(answer) == ["nic_firmware_fault"]


def test_a_port_that_comes_back_flapped(bench: Any, post: Any) -> None:
    lost = bench.event("ib_port_error", "a", pid="1", event="port error")
    back = {"details": {"recovered": "yes"}, "role": "warning"}
    answer = post(lost, bench.event("ib_port_error", "a", pid="1", event="port active", **back))
    finding = answer.findings[0]
    assert (finding.role, finding.severity) == ("root", "degraded")
    assert finding.attributes["event"] == "port error"


def test_a_link_that_only_comes_up_is_none(bench: Any, post: Any) -> None:
    up = bench.event("nic_link_down", "a", details={"state": "up"}, device="0000:5c:00.0")
    answer = post(up)
    assert answer.verdict == "ok"
    assert not answer.findings


def test_a_link_that_flaps_twice_isolates_its_host(bench: Any, post: Any, names: Any) -> None:
    def link(state: Any, at: Any) -> Any:
        return bench.event("nic_link_down", "a", details={"state": state}, device="d", at=at)

    once = post(link("down", 0), link("up", 8))
    assert not names.isolated(once)
    assert names.isolated(post(link("down", 0), link("up", 4), link("down", 9))) == ["a"]


def test_a_link_that_is_down_when_the_job_fails_isolates_its_host(
    bench: Any, post: Any, names: Any
) -> None:
    down = bench.event("nic_link_down", "a", details={"state": "down"}, device="d", at=0)
    failed = bench.event("ib_completion_error", "b", pid="1", peer="a", status="12", at=20)
    answer = post(down, failed)
    assert names.roots(answer) == ["nic_link_down"]
    assert names.isolated(answer) == ["a"]
    assert not names.isolated(post(down))


def test_what_a_program_says_of_a_fault_belongs_to_the_kernels_record(
    bench: Any, post: Any, names: Any
) -> None:
    kernel = bench.event("nvlink_error", "a", xid="149", pci="0000:dc:00")
    program = bench.event("nvlink_error", rank=3, error="uncorrectable NVLink error")
    answer = post(kernel, program)
    assert names.classes(answer) == ["nvlink_error"]
    assert answer.findings[0].count == 2
    other = bench.event("nvlink_error", "b", xid="149", pci="0000:1b:00")
    assert len(post(kernel, other, program).findings) == 3


def test_a_link_on_the_host_of_a_dead_switch_follows_from_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("nvlink_error", "a", at=1),
        bench.event("nvswitch_fatal", "a", sxid="20034", at=4),
        bench.event("nvlink_error", "b", at=5),
    )
    assert names.roots(answer) == ["nvswitch_fatal", "nvlink_error"]


@pytest.mark.parametrize(("pid", "roots"), [("41", 1), ("42", 2)])
def test_a_crash_by_the_signal_that_the_kernel_sent_follows_from_the_memory(
    bench: Any, post: Any, names: Any, pid: str, roots: int
) -> None:
    answer = post(
        bench.event("host_memory_error", "a", details={"pid": "41"}),
        bench.event("process_crash", details={"pid": pid}, signal="7"),
    )
    assert len(names.roots(answer)) == roots


@pytest.mark.parametrize(
    ("fault", "explained"),
    [
        (("gpu_fell_off_bus", "xid_bus"), True),
        (("gpu_internal_fault", "adapter_init"), True),
        (("gpu_internal_fault", "xid_internal"), False),
    ],
)
def test_a_device_that_is_not_there_follows_from_a_gpu_of_its_host_that_is_gone(
    bench: Any, post: Any, names: Any, fault: tuple[str, str], *, explained: bool
) -> None:
    for host in "ab":
        gone = bench.event(fault[0], host, pci="0000:9b:00")
        gone.form = fault[1]
        refused = bench.event("cuda_invalid_device", "a", pid="7", error="invalid")
        follows = explained and host == "a"
        roots = [fault[0]] if follows else [fault[0], "cuda_invalid_device"]
        assert names.roots(post(gone, refused)) == roots
