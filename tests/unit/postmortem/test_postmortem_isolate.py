"""Whom to leave out, and above all whom not."""

from typing import Any

import pytest


def test_hard_evidence_names_its_host(bench: Any, post: Any, names: Any) -> None:
    for class_ in ("gpu_fell_off_bus", "gsp_timeout", "nic_firmware_fault", "nvswitch_fatal"):
        answer = post(bench.event(class_, "n1", pci="0000:1b:00"))
        assert names.isolated(answer) == ["n1"]
        assert class_ in answer.isolate[0].because


def test_hard_evidence_without_a_host_isolates_nobody(bench: Any, post: Any, names: Any) -> None:
    answer = post(bench.event("gpu_fell_off_bus", pci="0000:1b:00"))
    assert answer.verdict == "findings"
    assert not names.isolated(answer)


def test_an_address_counts_as_a_name(bench: Any, post: Any, names: Any) -> None:
    answer = post(bench.event("gpu_fell_off_bus", address="10.0.0.7"))
    assert names.isolated(answer) == ["10.0.0.7"]


def test_what_the_kernel_corrected_or_contained_isolates_nobody(
    bench: Any, post: Any, names: Any
) -> None:
    for xid in ("63", "92", "156"):
        answer = post(bench.event("gpu_memory_error", "n1", xid=xid, role="warning"))
        assert not names.isolated(answer)
    assert not names.isolated(post(bench.event("gpu_memory_error", "n1", xid="94")))
    assert not names.isolated(post(bench.event("pcie_error", "n1", role="warning")))


def test_settings_and_programs_isolate_nobody_however_often(
    bench: Any, post: Any, names: Any
) -> None:
    for class_ in ("shm_no_space", "duplicate_gpu", "cuda_out_of_memory", "oom_kill"):
        answer = post(
            bench.event(class_, "n1", pid="1", at=10),
            bench.event(class_, "n1", pid="2", at=9000),
        )
        assert not names.isolated(answer)


def test_several_hosts_that_name_one_convict_it(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="12"),
        bench.event("ib_completion_error", "c", pid="1", peer="a", status="12"),
        bench.event("ib_completion_error", "a", pid="1", peer="b", status="12"),
    )
    assert names.isolated(answer) == ["a"]
    assert names.suspects(answer.findings[0])[0] == "a"


def test_several_ranks_of_one_host_are_one_sign(bench: Any, post: Any, names: Any) -> None:
    events = [
        bench.event("ib_completion_error", "b", pid=str(pid), peer="a", status="12", times=9)
        for pid in range(8)
    ]
    assert not names.isolated(post(*events))


def test_two_ends_that_name_each_other_convict_nobody(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="12"),
        bench.event("ib_completion_error", "a", pid="1", peer="b", status="12"),
    )
    assert not names.isolated(answer)
    assert set(names.suspects(answer.findings[0])) >= {"a", "b"}


def test_hosts_that_are_named_equally_often_convict_nobody(
    bench: Any, post: Any, names: Any
) -> None:
    hosts = "abcd"
    events = [
        bench.event("ib_completion_error", one, pid="1", peer=other, status="12")
        for one in hosts
        for other in hosts
        if one != other
    ]
    assert not names.isolated(post(*events))


def test_a_receiver_that_was_not_ready_is_no_hardware(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="13"),
        bench.event("ib_completion_error", "c", pid="1", peer="a", status="13"),
    )
    assert not names.isolated(answer)


def test_a_local_status_on_several_hosts_is_a_setting(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="4", at=0),
        bench.event("ib_completion_error", "c", pid="1", peer="a", status="4", at=900),
    )
    assert not names.isolated(answer)
    assert "setting" in answer.findings[0].explanation


def test_a_local_status_that_comes_again_names_the_local_host(
    bench: Any, post: Any, names: Any
) -> None:
    once = bench.event("ib_completion_error", "b", pid="1", peer="a", status="4", at=0)
    answer = post(once)
    assert names.suspects(answer.findings[0])[0] == "b"
    assert not names.isolated(answer)
    again = bench.event("ib_completion_error", "b", pid="9", peer="c", status="4", at=900)
    assert names.isolated(post(once, again)) == ["b"]


def test_a_port_error_of_all_ranks_isolates_their_host(bench: Any, post: Any, names: Any) -> None:
    events = [bench.event("ib_port_error", "a", pid=str(pid)) for pid in range(4)]
    processes = [bench.process("a", str(pid)) for pid in range(4)]
    assert names.isolated(post(*events, processes=processes)) == ["a"]


def test_a_port_error_of_one_rank_of_several_isolates_nobody(
    bench: Any, post: Any, names: Any
) -> None:
    processes = [bench.process("a", str(pid)) for pid in range(4)]
    answer = post(bench.event("ib_port_error", "a", pid="0"), processes=processes)
    assert names.roots(answer) == ["ib_port_error"]
    assert not names.isolated(answer)


def test_a_port_error_that_others_time_out_against_isolates(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("ib_port_error", "a", pid="0", hca="mlx5_3"),
        bench.event("ib_completion_error", "b", pid="0", peer="a", status="12"),
    )
    assert names.isolated(answer) == ["a"]
    assert names.of(answer, "ib_completion_error").role == "consequence"


def test_a_port_error_twice_some_time_apart_isolates(bench: Any, post: Any, names: Any) -> None:
    events = [bench.event("ib_port_error", "a", pid="0", at=at) for at in (0, 600)]
    assert names.isolated(post(*events)) == ["a"]
    burst = [bench.event("ib_port_error", "a", pid="0", at=at) for at in (0, 2)]
    assert not names.isolated(post(*burst))


def test_a_crash_isolates_only_when_the_host_shows_it_again(
    bench: Any, post: Any, names: Any
) -> None:
    crash = {"host": "a", "signal": "11"}
    once = [bench.event("process_crash", pid=str(n), at=n, **crash) for n in range(3)]
    assert not names.isolated(post(*once))
    again = bench.event("process_crash", pid="9", at=7200, **crash)
    assert names.isolated(post(*once, again)) == ["a"]
    elsewhere = bench.event("process_crash", "b", pid="9", at=7200, signal="11")
    assert not names.isolated(post(*once, again, elsewhere))


def test_a_consequence_never_isolates(bench: Any, post: Any) -> None:
    answer = post(
        bench.event("nic_firmware_fault", "a", device="0000:5c:00.0"),
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="12"),
        bench.event("ib_completion_error", "c", pid="1", peer="a", status="12"),
    )
    assert [(entry.host, entry.because.split()[0]) for entry in answer.isolate] == [
        ("a", "nic_firmware_fault")
    ]


def test_the_driver_that_asks_for_a_reset_names_its_host(bench: Any, post: Any, names: Any) -> None:
    asks = bench.event("xid_followup", "a", xid="154", details={"action": "2"})
    assert names.isolated(post(asks)) == ["a"]
    none = bench.event("xid_followup", "a", xid="154", details={"action": "0"})
    assert not names.isolated(post(none))
    cleanup = bench.event("xid_followup", "a", xid="45")
    assert not names.isolated(post(cleanup))


def test_a_nonfatal_link_isolates_nobody_unless_it_is_down(
    bench: Any, post: Any, names: Any
) -> None:
    light = {"xid": "145", "severity": "degraded"}
    nonfatal = bench.event("nvlink_error", "a", details={"fatal": "no"}, **light)
    assert not names.isolated(post(nonfatal))
    down = bench.event("nvlink_error", "a", details={"fatal": "no", "down": "yes"}, **light)
    assert names.isolated(post(down)) == ["a"]


def test_a_switch_error_that_was_survived_isolates_when_it_comes_again(
    bench: Any, post: Any, names: Any
) -> None:
    errors = [bench.event("nvswitch_nonfatal", "a", sxid="20001", at=at) for at in (0, 900)]
    answer = post(*errors)
    assert names.isolated(answer) == ["a"]
    assert answer.verdict == "ok"
    assert not names.isolated(post(errors[0]))


def test_several_hosts_that_cannot_reach_one_convict_it(bench: Any, post: Any, names: Any) -> None:
    gone = {"peer": "10.0.0.9", "error": "No route to host"}
    one = bench.event("bootstrap_connect_failed", "a", pid="1", **gone)
    other = bench.event("bootstrap_connect_failed", "b", pid="1", **gone)
    assert names.isolated(post(one, other)) == ["10.0.0.9"]
    assert not names.isolated(post(one))
    refused = [
        bench.event("bootstrap_connect_failed", h, peer="10.0.0.9", error="Connection refused")
        for h in "ab"
    ]
    assert not names.isolated(post(*refused))


def test_one_adapter_that_cannot_reach_several_is_suspect(
    bench: Any, post: Any, names: Any
) -> None:
    def failed(host: Any, hca: Any, far: Any) -> Any:
        gids = {"local_gid": f"fe80::{hca[-1]}", "remote_gid": far}
        return bench.event("ib_modify_qp_failed", host, pid="1", hca=hca, errno="110", **gids)

    assert not names.isolated(post(failed("a", "mlx5_1", "fe80::b")))
    assert not names.isolated(post(failed("a", "mlx5_1", "::x"), failed("b", "mlx5_2", "::y")))
    answer = post(failed("a", "mlx5_1", "fe80::b"), failed("a", "mlx5_1", "fe80::c"))
    assert names.isolated(answer) == ["a"]


def test_a_disk_of_its_own_isolates_when_it_fails_again_and_a_shared_one_never(
    bench: Any, post: Any, names: Any
) -> None:
    def failing(host: Any, scope: Any) -> Any:
        return [
            bench.event("storage_error", host, device="nvme0", at=at, details={"scope": scope})
            for at in (0, 900)
        ]

    assert names.isolated(post(*failing("a", "disk"))) == ["a"]
    assert not names.isolated(post(*failing("a", "shared")))
    assert not names.isolated(post(*failing("a", "disk"), *failing("b", "disk")))


def test_a_lost_node_isolates_only_with_another_sign(bench: Any, post: Any, names: Any) -> None:
    lost = bench.event("job_cancelled", details={"host": "a"}, reason="NODE FAILURE")
    assert not names.isolated(post(lost))
    fault = bench.event("host_memory_error", "a", error="UE")
    assert names.isolated(post(lost, fault)) == ["a"]


def test_port_errors_on_most_of_several_hosts_are_the_switch_they_share(
    bench: Any, post: Any, names: Any
) -> None:
    events = [
        bench.event("ib_port_error", host, pid=str(pid)) for host in "abcd" for pid in range(2)
    ]
    assert not names.isolated(post(*events))


def test_nobody_is_convicted_while_a_process_ended_nobody_knows_where(
    bench: Any, post: Any, names: Any
) -> None:
    died = bench.event("process_died", exitcode="-9")
    placed = bench.event("process_died", "z", exitcode="-9")
    waiting = [
        bench.event("ib_completion_error", host, pid="1", peer="10.0.0.9", status="12")
        for host in "ab"
    ]
    assert names.isolated(post(*waiting)) == ["10.0.0.9"]
    assert not names.isolated(post(died, *waiting))
    assert names.isolated(post(placed, *waiting)) == ["10.0.0.9"]


def test_a_stall_beside_a_shared_file_system_s_fault_isolates_nobody(
    bench: Any, post: Any, names: Any
) -> None:
    stall = bench.event("kernel_stall", "a", process="python")
    remote = bench.event("storage_error", "a", error="server not responding")
    assert names.isolated(post(stall, remote)) == []
    disk = bench.event("storage_error", "a", device="nvme2n1", details={"scope": "disk"})
    assert names.isolated(post(stall, disk)) == ["a"]


def test_a_node_that_two_jobs_lost(bench: Any, post: Any, names: Any) -> None:
    def ended(job: str) -> Any:
        return bench.event(
            "job_cancelled", reason="NODE FAILURE", details={"job": job, "host": "a"}
        )

    lost = bench.event("job_cancelled", reason="Node failure", details={"node": "b"}, times=2)
    assert names.isolated(post(ended("1"), ended("2"), lost)) == ["b"]
    lost.count = 1
    once = post(ended("1"), lost)
    assert names.isolated(once) == []
    assert names.suspects(once.findings[0])[0] == "b"


@pytest.mark.parametrize(("fault_on", "isolated"), [(None, ["d"]), ("d", ["d"]), ("c", ["c", "d"])])
def test_hardware_without_a_host_leaves_whom_several_hosts_name(
    bench: Any, post: Any, names: Any, fault_on: str | None, isolated: list[str]
) -> None:
    answer = post(
        bench.event("ib_completion_error", "a", pid="1", peer="d", status="12"),
        bench.event("ib_completion_error", "b", pid="2", peer="d", status="12"),
        bench.event("nic_firmware_fault", fault_on, device="0000:86:00.0"),
    )
    assert names.isolated(answer) == isolated


def test_a_program_s_fault_without_a_host_isolates_nobody_for_its_calls(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("xid_application_fault", pci="0000:3b:00", xid="31"),
        bench.event("cuda_error", "a", pid="1", error="illegal access", at=0, until=500),
    )
    assert names.isolated(answer) == []
