"""One failure in several messages, and messages that their process explains."""

from typing import Any

import pytest

from ncdiag.model.finding import PostmortemVerdict


def _opening(bench: Any, host: str) -> object:
    return bench.event("ib_device_fatal", host, pid="7", event="ibv_open_device")


def test_a_device_refused_at_start_up_is_a_fall_back(bench: Any, post: Any, names: Any) -> None:
    events = [_opening(bench, "a"), _opening(bench, "b")]
    done = [
        bench.process(host, "7", networks=["Socket"], communicators=[bench.communicator(n, 2)])
        for n, host in enumerate("ab")
    ]
    for process in done:
        process.communicators[0].completed = bench.place()
    answer = post(*events, processes=done)
    assert names.classes(answer) == ["network_fallback"]
    assert names.isolated(answer) == []
    assert answer.verdict is PostmortemVerdict.OK


def test_a_device_refused_with_no_other_network_is_a_call_of_the_set_up(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(_opening(bench, "a"), processes=[bench.process("a", "7")])
    assert names.roots(answer) == ["ib_verbs_call_failed"]
    assert names.isolated(answer) == []


def test_a_device_that_worked_before_failed(bench: Any, post: Any, names: Any) -> None:
    process = bench.process("a", "7", networks=["IB"], connected=bench.place())
    answer = post(_opening(bench, "a"), processes=[process])
    assert names.roots(answer) == ["ib_device_fatal"]
    assert names.isolated(answer) == ["a"]


@pytest.mark.parametrize(
    ("fields", "class_"),
    [
        ({"chain": [("transport/net.cc", 7, 2)]}, "socket_connect_failed"),
        ({"chain": [("x.cc", 7, 2)], "chain_socket": True}, "socket_connect_failed"),
        ({"transports": {"P2P": 4}}, "socket_connect_failed"),
        ({"transports": {"P2P": 4}, "chain_bootstrap": True}, "bootstrap_connect_failed"),
        ({"chain": [("init.cc", 7, 2)]}, "bootstrap_connect_failed"),
    ],
)
def test_a_back_trace_tells_whose_connection_failed(
    bench: Any, post: Any, names: Any, fields: dict[str, object], class_: str
) -> None:
    event = bench.event("bootstrap_connect_failed", "a", pid="7", peer="10.0.0.9", error="refused")
    answer = post(event, processes=[bench.process("a", "7", **fields)])
    assert names.roots(answer) == [class_]


def test_a_process_that_is_unloading_did_not_fail_first(bench: Any, post: Any, names: Any) -> None:
    events = [
        bench.event("cuda_error", "a", pid="8", error="driver shutting down"),
        bench.event("socket_handshake_failed", "a", pid="7", got="4", expected="3"),
    ]
    assert names.roots(post(*events)) == ["socket_handshake_failed"]


def test_the_library_s_verdict_explains_what_its_try_said(
    bench: Any, post: Any, names: Any
) -> None:
    events = [
        bench.event("cuda_error", "a", pid="7", code="800", error="operation not permitted"),
        bench.event("mnnvl_failed", "a", pid="7"),
    ]
    assert names.roots(post(*events)) == ["mnnvl_failed"]


def test_an_error_of_another_process_is_not_the_try_s(bench: Any, post: Any, names: Any) -> None:
    events = [
        bench.event("cuda_error", "a", pid="9", code="719", error="launch failure"),
        bench.event("mnnvl_failed", "a", pid="7"),
    ]
    assert sorted(names.roots(post(*events))) == ["cuda_error", "mnnvl_failed"]


@pytest.mark.parametrize(
    ("said", "root"), [({}, "cuda_error"), ({"error": "No space left on device"}, "shm_no_space")]
)
def test_a_segment_fails_for_space_only_where_the_text_says_so(
    bench: Any, post: Any, names: Any, said: dict[str, str], root: str
) -> None:
    events = [
        bench.event("cuda_error", "a", pid="7", error="invalid argument"),
        bench.event("shm_no_space", "a", pid="7", size="4096", **said),
    ]
    assert root in names.roots(post(*events))


def test_a_death_of_which_the_crash_is_told_is_one_fault(bench: Any, post: Any, names: Any) -> None:
    events = [
        bench.event("process_crash", pid="71", signal="11"),
        bench.event("process_died", pid="71"),
    ]
    events[1].attributes = {"pid": "71"}
    events[1].speaker = events[1].speaker._replace(pid=None)
    assert names.roots(post(*events)) == ["process_crash"]


def test_a_store_s_own_exception_is_not_the_program_s(bench: Any, post: Any, names: Any) -> None:
    events = [
        bench.event("store_failure", pid="71", error="Timed out"),
        bench.event("application_exception", exception="DistStoreError"),
    ]
    assert names.roots(post(*events)) == ["store_failure"]


def test_a_cuda_error_of_a_nameless_rank_follows_the_only_fault_of_a_gpu(
    bench: Any, post: Any, names: Any
) -> None:
    events = [
        bench.event("xid_application_fault", "a", xid="31", pci="0000:43:00"),
        bench.event("cuda_error", rank=1, error="an illegal memory access was encountered"),
    ]
    assert names.roots(post(*events)) == ["xid_application_fault"]
    events.insert(0, bench.event("xid_application_fault", "b", xid="31", pci="0000:43:00"))
    assert "cuda_error" in names.roots(post(*events))


def test_a_killed_task_comes_before_a_cancellation_without_a_reason(
    bench: Any, post: Any, names: Any
) -> None:
    events = [
        bench.event("process_died", details={"host": "a", "signal": "9"}),
        bench.event("job_cancelled", details={"host": "b"}),
    ]
    assert names.roots(post(*events)) == ["process_died"]
    events[1].attributes = {"reason": "PREEMPTION"}
    assert names.roots(post(*events)) == ["job_cancelled"]


def test_a_bare_result_belongs_to_the_record_of_its_own_process(
    bench: Any, post: Any, names: Any
) -> None:
    events = [
        bench.event("shm_no_space", "b", pid="9", error="No space left on device"),
        bench.event("resource_limit", "a", pid="7", error="Too many open files"),
        bench.event("unhandled_system_error", "a", pid="7"),
    ]
    assert names.roots(post(*events)) == ["shm_no_space", "resource_limit"]


def test_a_bare_result_after_a_time_out_is_what_an_abort_returns(
    bench: Any, post: Any, names: Any
) -> None:
    timed_out = bench.event("torch_watchdog_timeout", rank=2)
    result = bench.event("unhandled_system_error", rank=2)
    assert names.roots(post(timed_out, result)) == ["torch_watchdog_timeout"]
    earlier = bench.event("torch_watchdog_timeout", rank=2)
    assert "unhandled_system_error" in names.roots(post(result, earlier))
