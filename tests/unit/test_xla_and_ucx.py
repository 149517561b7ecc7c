"""What TensorFlow, XLA, JAX and UCX say: memory, failed calls, ranks that do not meet."""

import pytest
from told_postmortem import post

from ncdiag.model.finding import Finding, Role

HEAD = "Traceback (most recent call last):"
FRAME = '  File "/srv/fit.py", line 8, in <module>'


def roots(text: str) -> list[str]:
    return [str(each.class_) for each in post(text).findings if each.role is Role.ROOT]


def first(text: str) -> Finding:
    return post(text).findings[0]


@pytest.mark.parametrize(
    "last",
    [
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while "
            "trying to allocate 123456 bytes."
        ),
        (
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for "
            "8.00GiB (8589934592B) on device ordinal 2"
        ),
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function f}} "
            "OOM when allocating tensor with shape[8,2] and type float on /job:w/device:GPU:0 "
            "by allocator GPU_0_bfc [Op:MatMul]"
        ),
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution "
            "error:\n\nDetected at node 'dense/MatMul' defined at (most recent call last):\n"
            "OOM when allocating tensor with shape[8,2] and type float on /device:GPU:0 by "
            "allocator GPU_0_bfc"
        ),
    ],
)
def test_an_exception_for_want_of_gpu_memory_is_no_exception_of_the_program(last: str) -> None:
    assert roots(f"{HEAD}\n{FRAME}\n{last}") == ["cuda_out_of_memory"]


def test_memory_of_the_host_is_none_of_the_gpu() -> None:
    last = (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
        "tensor with shape[8,2] and type float on /device:CPU:0 by allocator cpu"
    )
    assert roots(f"{HEAD}\n{FRAME}\n{last}") == ["application_exception"]
    assert post("Allocator (CPU_0_bfc) ran out of memory trying to allocate 2GiB").findings == ()


def test_an_allocator_that_went_on_is_a_warning() -> None:
    finding = first(
        "W core/bfc_allocator.cc:246] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
        "2.0GiB with freed_by_count=0. The caller indicates that this is not a failure, but may "
        "mean that there could be performance gains if more memory were available."
    )
    assert (finding.class_, finding.role) == ("cuda_out_of_memory", Role.WARNING)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            (
                "Error polling for event status: failed to query event: CUDA_ERROR_ILLEGAL_ADDRESS"
                ": an illegal memory access was encountered"
            ),
            "an illegal memory access was encountered",
        ),
        (
            "Error recording CUDA event: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure",
            "unspecified launch failure",
        ),
        (
            (
                "could not synchronize on CUDA context: CUDA_ERROR_LAUNCH_FAILED :: *** Begin "
                "stack trace ***"
            ),
            "CUDA_ERROR_LAUNCH_FAILED",
        ),
    ],
)
def test_a_failed_call_is_told_by_the_name_that_the_driver_gives_it(said: str, error: str) -> None:
    text = (
        f"2031-01-02 03:04:05.000001: E core/cuda_event.cc:29] {said}\nFatal Python error: Aborted"
    )
    finding = first(text)
    assert roots(text) == ["cuda_error"]
    assert finding.attributes == {"error": error}


@pytest.mark.parametrize(
    "said",
    [
        "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "failed to allocate 4.0G from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "could not synchronize on CUDA context: CUDA_ERROR_DEINITIALIZED",
    ],
)
def test_what_a_run_lives_with_is_no_failed_call(said: str) -> None:
    assert roots(f"2031-01-02 03:04:05.000001: E core/cuda_driver.cc:2] {said}") == []


def test_an_exception_that_carries_a_failed_call_is_no_exception_of_the_program() -> None:
    last = (
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to launch CUDA kernel: fusion_3; "
        "grid dimensions: 2x1x1: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was "
        "encountered"
    )
    assert roots(f"{HEAD}\n{FRAME}\n{last}") == ["cuda_error"]


GAVE_UP = (
    "3: 2031-01-02 03:04:05.000001: F xla/service/rendezvous.cc:127] Termination timeout for "
    "`{what}; run_id=5` of 40 seconds exceeded. Exiting to ensure a consistent program state. "
    "Expected 4 threads to join the rendezvous, but only 3 of them arrived on time."
)


def test_ranks_that_did_not_meet_are_behind_the_abort_and_who_waited_is_not_accused() -> None:
    lines = [GAVE_UP.format(what="initialize clique for rank 3; clique=devices=[0,1,2,3]")]
    lines = [*lines, lines[0].replace("3: ", "1: ", 1), "3: Fatal Python error: Aborted"]
    finding = first("\n".join(lines))
    assert roots("\n".join(lines)) == ["hang_init"]
    assert finding.attributes == {"expected": "4", "started": "3"}
    assert [each.name for each in finding.suspects if each.kind == "rank"] == []


def test_a_collective_that_some_did_not_join_later_is_no_start_up() -> None:
    text = GAVE_UP.format(what="all-reduce.3; stream=0") + "\n3: Fatal Python error: Aborted"
    assert roots(text) == ["hang_mid_run"]


def test_a_wait_that_may_yet_end_is_no_hang() -> None:
    text = (
        "E xla/service/rendezvous.cc:98] This thread has been waiting for `initialize clique for "
        "rank 3` for 10 seconds and may be stuck. Expected 4 threads to join the rendezvous, but "
        "only 3 of them arrived on time."
    )
    assert roots(text) == []


@pytest.mark.parametrize(
    ("said", "class_", "status"),
    [
        ("Transport retry count exceeded on mlx5_2:1/RoCE (synd 0x15", "ib_completion_error", "12"),
        (
            "Receive-no-ready retry count exceeded on mlx5_2:1/IB (synd 0x16",
            "ib_completion_error",
            "13",
        ),
        ("Local protection on mlx5_2:1/IB (synd 0x4", "ib_completion_error", "4"),
        ("Remote access error on mlx5_2:1/IB (synd 0x13", "ib_completion_error", "10"),
        ("Remote operation error on mlx5_2:1/IB (synd 0x14", "ib_completion_error", "11"),
        ("WR flushed because QP in error state on mlx5_2:1/IB (synd 0x5", "ib_flush_error", "5"),
    ],
)
@pytest.mark.parametrize(
    "head",
    [
        "[1723.12] [oak-3:88:0] ib_mlx5_log.c:171  UCX  ERROR ",
        "[oak-3:88 :0:90] ib_mlx5_log.c:171  ",
    ],
)
def test_a_syndrome_that_ucx_prints_has_the_status_of_verbs(
    head: str, said: str, class_: str, status: str
) -> None:
    finding = first(f"{head}{said} vend 0x81 hw_synd 0/0)")
    assert finding.class_ == class_
    assert finding.attributes == {"status": status, "vendor_err": "129", "hca": "mlx5_2"}


def test_a_syndrome_that_is_none_is_no_completion() -> None:
    said = "ib_mlx5_log.c:171  UCX  ERROR Generic on mlx5_2:1/IB (synd 0x77 vend 0x81 hw_synd 0/0)"
    assert post(said).findings == ()
