"""Causes and echoes: which draft stands as a root."""

from typing import Any

import pytest

from ncdiag.model.log import Speaker, WorkerFailure


def test_a_transfer_that_points_at_a_host_with_a_crash_follows_from_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="12"),
        bench.event("process_crash", "a", pid="7", signal="11"),
    )
    assert names.roots(answer) == ["process_crash"]
    assert names.of(answer, "ib_completion_error").role == "consequence"


def test_a_transfer_that_points_elsewhere_stays_a_root_after_the_surer_one(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="c", status="12"),
        bench.event("process_crash", "a", pid="7", signal="11"),
    )
    assert names.roots(answer) == ["process_crash", "ib_completion_error"]


def test_an_exception_after_a_failed_call_of_its_process_follows_from_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("ib_completion_error", "b", pid="1", peer="a", status="12"),
        bench.event("application_exception", "b", pid="1", exception="RuntimeError"),
    )
    assert names.roots(answer) == ["ib_completion_error"]


def test_an_exception_before_the_failed_call_of_another_process_is_the_root(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("application_exception", rank=3, exception="ValueError"),
        bench.event("cuda_error", rank=1, error="unspecified launch failure"),
    )
    assert names.roots(answer)[0] == "application_exception"


def test_the_exception_that_nothing_preceded_speaks_for_all(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("cuda_error", rank=1, error="unknown error"),
        bench.event("application_exception", rank=1, exception="RuntimeError"),
        bench.event("application_exception", rank=2, exception="KeyError"),
    )
    finding = names.of(answer, "application_exception")
    assert finding.role == "root"
    assert finding.attributes["exception"] == "KeyError"


def test_an_exception_of_a_neighbour_explains_a_closed_connection_before_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("socket_closed_by_peer", "a", label="0", peer="b"),
        bench.event("application_exception", label="3", exception="std::bad_alloc"),
    )
    assert names.roots(answer) == ["application_exception"]


def test_an_exception_of_the_process_that_lost_its_peer_is_an_echo_too(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("socket_closed_by_peer", "a", label="0", peer="b"),
        bench.event("application_exception", label="0", exception="RuntimeError"),
    )
    assert names.roots(answer) == ["socket_closed_by_peer"]


@pytest.mark.parametrize(
    "echo",
    [
        "remote_error",
        "socket_closed_by_peer",
        "ib_flush_error",
        "proxy_failure",
        "comm_aborted",
        "terminated_by_launcher",
        "xid_followup",
    ],
)
def test_an_echo_is_a_root_of_low_confidence_only_when_alone(
    bench: Any, post: Any, names: Any, echo: Any
) -> None:
    alone = post(bench.event(echo, "a", pid="1"))
    assert names.roots(alone) == [echo]
    assert alone.findings[0].confidence < 0.5
    explained = post(bench.event(echo, "a", pid="1"), bench.event("oom_kill", "b", pid="9"))
    assert names.roots(explained) == ["oom_kill"]


def test_of_several_echoes_the_clearest_stands(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("terminated_by_launcher", signal="15"),
        bench.event("comm_aborted", "a", pid="1"),
        bench.event("remote_error", "a", pid="1"),
    )
    assert names.roots(answer) == ["remote_error"]


def test_a_reset_connection_is_an_echo_and_a_timed_out_one_is_not(
    bench: Any, post: Any, names: Any
) -> None:
    reset = {"role": "consequence", "severity": "info"}
    answer = post(
        bench.event("socket_error", "a", pid="1", peer="b", error="Connection reset", **reset),
        bench.event("process_died", "b", pid="2", exitcode="-9"),
    )
    assert names.roots(answer) == ["process_died"]
    answer = post(bench.event("socket_error", "a", peer="b", error="Connection timed out"))
    assert names.roots(answer) == ["socket_error"]
    assert answer.findings[0].confidence > 0.5


def test_a_text_that_says_little_gives_way_to_one_that_says_what(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("unhandled_system_error", "a", pid="1"),
        bench.event("invalid_usage", "a", pid="1"),
        bench.event("shm_no_space", "a", pid="1", errno="28"),
    )
    assert names.roots(answer) == ["shm_no_space"]


def test_of_two_texts_that_say_little_one_stands(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("unhandled_system_error", "a", pid="1"),
        bench.event("internal_error", "b", pid="1"),
    )
    assert names.roots(answer) == ["unhandled_system_error"]


def test_a_cuda_error_without_a_text_says_little(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("cuda_error", "a", pid="1"),
        bench.event("peer_mapping_exhausted", "a", pid="1", code="711"),
    )
    assert names.roots(answer) == ["peer_mapping_exhausted"]


def test_a_timeout_follows_from_a_desync_a_dead_process_or_a_fault(
    bench: Any, post: Any, names: Any
) -> None:
    for cause in ("torch_desync", "process_died", "gpu_fell_off_bus", "ib_completion_error"):
        answer = post(
            bench.event(cause, "a", pid="1"),
            bench.event("torch_watchdog_timeout", rank=2, op="ALLREDUCE"),
        )
        assert names.roots(answer) == [cause]


def test_a_fault_long_after_a_timeout_did_not_cause_it(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=2, op="ALLREDUCE", at=1000),
        bench.event("nic_link_down", "a", device="0000:5c:00.0", at=9000),
    )
    assert names.roots(answer) == ["nic_link_down", "torch_watchdog_timeout"]


@pytest.mark.parametrize(
    ("rank", "roots"),
    [
        (3, ["cuda_out_of_memory"]),
        (1, ["cuda_out_of_memory", "torch_watchdog_timeout"]),
        (None, ["cuda_out_of_memory", "torch_watchdog_timeout"]),
    ],
)
def test_a_rank_without_memory_is_who_others_waited_for_wherever_it_is_printed(
    bench: Any, post: Any, names: Any, rank: Any, roots: Any
) -> None:
    waited = [bench.event("torch_watchdog_timeout", rank=n, op="ALLREDUCE") for n in (0, 1)]
    failed = bench.event("cuda_out_of_memory", rank=rank, error="out of memory")
    assert names.roots(post(*waited, failed)) == roots


def test_memory_that_runs_out_after_a_timeout_by_the_clock_did_not_cause_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=0, op="ALLREDUCE", at=1000),
        bench.event("cuda_out_of_memory", rank=3, error="out of memory", at=1060),
    )
    assert names.roots(answer) == ["cuda_out_of_memory", "torch_watchdog_timeout"]


def test_the_kernel_record_explains_a_killed_process_of_its_host_only(
    bench: Any, post: Any, names: Any
) -> None:
    died = {"host": "a", "pid": "5", "exitcode": "-9"}
    same = post(bench.event("process_died", **died), bench.event("oom_kill", "a", pid="5"))
    assert names.roots(same) == ["oom_kill"]
    other = post(bench.event("process_died", **died), bench.event("oom_kill", "b", pid="5"))
    assert names.roots(other) == ["oom_kill", "process_died"]


def test_a_report_stands_only_where_it_alone_speaks(bench: Any, post: Any, names: Any) -> None:
    report = bench.event("elastic_worker_failed", rank=3, exitcode="1")
    assert names.roots(post(report)) == ["elastic_worker_failed"]
    answer = post(report, bench.event("cuda_out_of_memory", rank=3, error="out of memory"))
    assert names.roots(answer) == ["cuda_out_of_memory"]


def test_a_store_is_a_root_before_the_job_runs_and_an_echo_after_a_failure(
    bench: Any, post: Any, names: Any
) -> None:
    lost = bench.event("store_failure", rank=2, error="Broken pipe")
    assert names.roots(post(lost)) == ["store_failure"]
    crash = bench.event("process_crash", rank=0, signal="11")
    late = bench.event("store_failure", rank=2, error="Broken pipe")
    assert names.roots(post(crash, late)) == ["process_crash"]


def test_a_time_limit_is_a_root_when_nothing_failed_before_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("job_time_limit", job="17"),
        bench.event("terminated_by_launcher", signal="15"),
        bench.event("elastic_worker_failed", exitcode="-15"),
        bench.event("remote_error", "a", pid="1"),
    )
    assert names.roots(answer) == ["job_time_limit"]
    answer = post(
        bench.event("ib_completion_error", "a", pid="1", peer="b", status="12"),
        bench.event("job_time_limit", job="17"),
    )
    assert names.roots(answer) == ["ib_completion_error"]


def test_a_cancelled_job_that_failed_before_is_a_consequence(
    bench: Any, post: Any, names: Any
) -> None:
    cancelled = bench.event("job_cancelled", reason="PREEMPTION")
    assert names.roots(post(cancelled)) == ["job_cancelled"]
    answer = post(bench.event("cuda_out_of_memory", rank=1), bench.event("job_cancelled"))
    assert names.roots(answer) == ["cuda_out_of_memory"]


def test_a_refused_connection_after_the_other_end_gave_up_follows_from_it(
    bench: Any, post: Any, names: Any
) -> None:
    refused = {"error": "Connection refused", "peer": "10.0.0.9"}
    answer = post(
        bench.event("topology_error", "a", pid="1"),
        bench.event("bootstrap_connect_failed", "b", pid="1", **refused),
    )
    assert names.roots(answer) == ["topology_error"]
    answer = post(
        bench.event("topology_error", "a", pid="1"),
        bench.event("bootstrap_connect_failed", "b", pid="1", error="No route", peer="10.0.0.9"),
    )
    assert names.roots(answer) == ["topology_error", "bootstrap_connect_failed"]


def test_a_local_call_follows_from_the_fault_of_the_device_under_it(
    bench: Any, post: Any, names: Any
) -> None:
    fault = bench.event("gpu_fell_off_bus", "a", xid="79", pci="0000:1b:00")
    answer = post(bench.event("cuda_error", "a", pid="3", error="unknown error"), fault)
    assert names.roots(answer) == ["gpu_fell_off_bus"]
    answer = post(bench.event("cuda_error", "b", pid="3", error="unknown error"), fault)
    assert names.roots(answer) == ["gpu_fell_off_bus", "cuda_error"]


def test_a_step_that_was_tried_again_and_worked_is_a_warning(
    bench: Any, post: Any, names: Any
) -> None:
    failed = bench.event("bootstrap_connect_failed", "a", pid="1", error="Connection refused")
    done = bench.communicator(0, 2, completed=True)
    answer = post(failed, processes=[bench.process("a", communicators=[done])])
    assert names.of(answer, "bootstrap_connect_failed").role == "warning"
    assert answer.verdict == "ok"


def test_a_step_that_failed_after_an_earlier_start_up_is_not_forgiven(
    bench: Any, post: Any, names: Any
) -> None:
    done = bench.communicator(0, 2, completed=True)
    failed = bench.event("bootstrap_connect_failed", "a", pid="1", error="Connection refused")
    answer = post(failed, processes=[bench.process("a", communicators=[done])])
    assert names.roots(answer) == ["bootstrap_connect_failed"]


def test_roots_stand_by_kind_and_then_by_time(bench: Any, post: Any, names: Any) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=1, at=10),
        bench.event("single_rank_run", at=20),
        bench.event("store_failure", rank=1, error="refused", at=-60),
        bench.event("host_memory_error", "a", at=90_000),
        bench.event("resource_limit", "c", at=30),
        bench.event("duplicate_gpu", "b", at=25),
    )
    assert names.roots(answer) == [
        "host_memory_error",
        "duplicate_gpu",
        "resource_limit",
        "store_failure",
        "torch_watchdog_timeout",
        "single_rank_run",
    ]


def test_kinds_of_warnings_come_last_and_leave_the_verdict_ok(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("optional_library_missing", "a", library="libibverbs"),
        bench.event("host_config_warning", "a", setting="iommu"),
    )
    assert answer.verdict == "ok"
    assert not names.roots(answer)


def test_an_agents_report_of_a_fault_signal_is_a_crash(bench: Any, post: Any, names: Any) -> None:
    answer = post(bench.event("elastic_worker_failed", rank=3, exitcode="-11"))
    assert names.roots(answer) == ["process_crash"]
    assert answer.findings[0].attributes == {"signal": "11"}
    assert answer.findings[0].ranks == (3,)
    aborted = post(bench.event("elastic_worker_failed", rank=3, exitcode="-6"))
    assert names.roots(aborted) == ["elastic_worker_failed"]


def test_a_report_of_an_agent_goes_before_the_exit_of_its_task(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("process_died", details={"host": "n4"}, exitcode="1"),
        bench.event("elastic_worker_failed", rank=3, exitcode="1"),
    )
    assert names.roots(answer) == ["elastic_worker_failed"]


def test_a_killed_task_speaks_before_those_that_exited_after_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("process_died", details={"host": "a"}, exitcode="1"),
        bench.event("process_died", details={"host": "b"}, exitcode="137"),
    )
    assert answer.findings[0].attributes["exitcode"] == "137"
    assert names.suspects(answer.findings[0]) == ["b"]


def test_an_optional_feature_that_failed_without_an_answer_stays_open(
    bench: Any, post: Any, names: Any
) -> None:
    failed = bench.event("sharp_failed", "a", pid="1", rc="-8")
    assert names.roots(post(failed)) == ["sharp_failed"]
    done = bench.communicator(0, 2, completed=True)
    answer = post(failed, processes=[bench.process("b", communicators=[done])])
    assert answer.verdict == "ok"


def test_ranks_of_which_no_time_out_is_heard_are_suspect(bench: Any, post: Any, names: Any) -> None:
    waiting = [
        bench.event("torch_watchdog_timeout", rank=rank, op="ALLREDUCE", seq="4")
        for rank in (0, 1, 3)
    ]
    done = bench.communicator(0, 4, completed=True)
    answer = post(*waiting, processes=[bench.process("a", communicators=[done])])
    assert names.suspects(answer.findings[0]) == ["2"]
    assert not names.suspects(post(*waiting).findings[0])


def test_an_exception_that_ended_no_rank_is_a_warning(bench: Any, post: Any, names: Any) -> None:
    raised = bench.event("application_exception", exception="ImportError")
    table = bench.table([1.0, 2.0])
    table.end = bench.place()
    assert post(raised, benchmarks=[table]).verdict == "ok"
    late = bench.event("application_exception", exception="ValueError")
    assert names.roots(post(late, benchmarks=[table])) == ["application_exception"]


def test_what_another_input_tells_is_not_taken_for_the_same_process(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("cuda_error", rank=1, error="unknown error", path="a.log"),
        bench.event("application_exception", exception="KeyError", path="b.log"),
    )
    assert names.roots(answer)[0] == "application_exception"


def test_a_kernel_log_without_a_host_belongs_to_the_log_it_stands_in(
    bench: Any, post: Any, names: Any
) -> None:
    fault = bench.event("gpu_memory_error", xid="48", pci="0000:1b:00")
    failed = bench.event("cuda_error", rank=3, error="uncorrectable ECC error encountered")
    assert names.roots(post(fault, failed)) == ["gpu_memory_error"]
    elsewhere = bench.event("cuda_error", "a", pid="3", error="unknown error", path="b.log")
    assert names.roots(post(fault, elsewhere)) == ["gpu_memory_error", "cuda_error"]


def test_a_link_that_is_off_is_more_exact_than_an_internal_error(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("p2p_disabled", "a", pid="1", gpus="1 and 0", role="root"),
        bench.event("internal_error", "a", pid="1"),
    )
    assert names.roots(answer) == ["p2p_disabled"]


def test_a_stream_that_tells_of_another_host_is_not_one_process(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("socket_closed_by_peer", "a", label="web_1", peer="b"),
        bench.event("process_crash", label="web_1", details={"host": "b"}, signal="11"),
    )
    assert names.roots(answer) == ["process_crash"]


def aborted(bench: Any, pid: str) -> WorkerFailure:
    return WorkerFailure(place=bench.place(), local_rank="1", exitcode="-6", pid=pid)


@pytest.mark.parametrize(("pid", "root"), [("7", "application_exception"), ("6", "torch_watchdog")])
def test_an_exception_after_the_end_of_the_process_that_waited_is_another_s(
    bench: Any, post: Any, names: Any, pid: str, root: str
) -> None:
    waited = bench.event("torch_watchdog_timeout", rank=1, op="BROADCAST")
    dead = aborted(bench, "6")
    raised = bench.event("application_exception", exception="KeyError")
    ended = WorkerFailure(place=bench.place(), local_rank="5", exitcode="1", pid=pid)
    answer = post(waited, raised, failures=[dead, ended])
    assert [name[: len(root)] for name in names.roots(answer)] == [root]


@pytest.mark.parametrize(("rank", "roots"), [(0, 1), (4, 2)])
def test_whoever_waits_for_a_key_follows_from_the_end_of_its_rank(
    bench: Any, post: Any, names: Any, rank: int, roots: int
) -> None:
    answer = post(
        bench.event("store_failure", rank=9, details={"from": "0"}, error="wait timeout after 9ms"),
        bench.event("application_exception", rank=rank, exception="ImportError"),
    )
    assert len(names.roots(answer)) == roots


@pytest.mark.parametrize(
    ("said", "root"),
    [
        (("STEP", "1", "cuda_error"), "cuda_error"),
        (("JOB", "1", "cuda_error"), "job_cancelled"),
        (("STEP", "143", "cuda_error"), "job_cancelled"),
        (("STEP", "1", "ib_completion_error"), "job_cancelled"),
    ],
)
def test_a_step_is_cancelled_for_a_task_that_failed_whatever_is_printed_first(
    bench: Any, post: Any, names: Any, said: tuple[str, str, str], root: str
) -> None:
    what, code, class_ = said
    answer = post(
        bench.event("job_cancelled", details={"what": what}),
        bench.event("process_died", details={"tasks": "5"}, role="consequence", exitcode=code),
        bench.event(class_, label="5", error="demo", peer="b", status="12"),
    )
    assert names.roots(answer) == [root]


def test_a_step_cancelled_before_the_failure_by_the_clock_is_the_root(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("job_cancelled", details={"what": "STEP"}, at=1),
        bench.event("process_died", details={"tasks": "5"}, role="consequence", exitcode="1", at=2),
        bench.event("cuda_error", label="5", error="demo", at=3),
    )
    assert names.roots(answer) == ["job_cancelled"]


@pytest.mark.parametrize(("label", "roots"), [("1,5", 1), ("5", 2)])
def test_a_stream_of_mpirun_s_is_on_the_host_that_speaks_there(
    bench: Any, post: Any, names: Any, label: str, roots: int
) -> None:
    answer = post(
        bench.event("cuda_out_of_memory", label=label, error="out of memory"),
        bench.event("ib_completion_error", "a", pid="1", peer="b", status="12"),
        processes=[bench.process("b", "7", speaker=Speaker("b", "7", label=label))],
    )
    assert len(names.roots(answer)) == roots
