"""A kernel log put below a job's output: which stands first in a file is not what came first."""

from typing import Any

import pytest

FAULTS = ["gpu_fell_off_bus", "xid_application_fault", "oom_kill", "nic_link_down"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_a_kernel_log_below_tells_explains_a_timeout(
    bench: Any, post: Any, names: Any, fault: str
) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=2, op="ALLREDUCE"),
        bench.event(fault, "a", at=9000),
    )
    assert names.roots(answer) == [fault]


def test_a_timeout_before_a_fault_by_the_clock_stays_a_root(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=2, op="ALLREDUCE", at=1000),
        bench.event("gpu_fell_off_bus", "a", at=9000),
    )
    assert names.roots(answer) == ["gpu_fell_off_bus", "torch_watchdog_timeout"]


def test_a_timeout_between_lines_of_a_kernel_keeps_its_place(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("nic_firmware_fault", "a", at=900, device="0000:5c:00.0", role="warning"),
        bench.event("torch_watchdog_timeout", rank=2, op="ALLREDUCE"),
        bench.event("gpu_fell_off_bus", "a", at=9000),
    )
    assert names.roots(answer) == ["gpu_fell_off_bus", "torch_watchdog_timeout"]


def test_a_fault_that_a_process_noticed_after_a_timeout_did_not_cause_it(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=2, op="ALLREDUCE"),
        bench.event("ib_device_fatal", "a", pid="7", hca="mlx5_0"),
    )
    assert names.roots(answer) == ["ib_device_fatal", "torch_watchdog_timeout"]


def test_a_memory_fault_told_below_explains_a_crash_on_its_host_only(
    bench: Any, post: Any, names: Any
) -> None:
    for host, roots in (
        ("a", ["host_memory_error"]),
        ("b", ["host_memory_error", "process_crash"]),
    ):
        crash = bench.event("process_crash", details={"host": host, "tasks": "11"}, signal="7")
        answer = post(crash, bench.event("host_memory_error", "a", at=9000, error="UE"))
        assert names.roots(answer) == roots


@pytest.mark.parametrize(
    ("ending", "fault"),
    [("process_crash", "nic_link_down"), ("application_exception", "gpu_memory_error")],
)
def test_what_may_have_other_causes_is_not_explained_by_a_fault_told_below(
    bench: Any, post: Any, names: Any, ending: str, fault: str
) -> None:
    answer = post(bench.event(ending, "a", pid="5"), bench.event(fault, "a", at=9000))
    assert names.roots(answer) == [fault, ending]


@pytest.mark.parametrize(
    ("hour", "roots"),
    [
        (None, ["host_memory_error"]),
        ("01", ["host_memory_error"]),
        ("03", ["host_memory_error", "job_cancelled"]),
    ],
)
def test_a_fault_told_below_ended_the_job_unless_it_was_cancelled_before(
    bench: Any, post: Any, names: Any, hour: Any, roots: Any
) -> None:
    cancelled = {"at": "1970-01-02T02:00:00"} if hour else {}
    answer = post(
        bench.event("job_cancelled", details=cancelled),
        bench.event("host_memory_error", "a", at=86_400 + 3600 * int(hour or 3), error="UE"),
    )
    assert names.roots(answer) == roots
