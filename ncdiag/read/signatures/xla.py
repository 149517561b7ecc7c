"""Rows for TensorFlow, XLA and JAX: memory of the GPU, and ranks that do not meet."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.signatures.fragments import caution, signature
from ncdiag.read.signatures.row import OUTSIDE

# What an exception says that ends a step; the memory of the host has other words.
EXHAUSTED = (
    r"RESOURCE_EXHAUSTED: (?:Out of memory while trying to allocate \d"
    r"|Failed to allocate request for [^\n]{1,60} on device ordinal)"
)
OF_THE_GPU = r"OOM when allocating tensor with shape[^\n]{1,400}? by allocator GPU_\d"

_MEET = (
    r"Termination timeout for `{what}[^`\n]{{0,1000}}` of \d{{1,9}} seconds exceeded\. "
    r"[^\n]{{0,120}}?Expected (?P<{expected}>\d{{1,9}}) threads to join the rendezvous, "
    r"but only (?P<{started}>\d{{1,9}}) of them arrived"
)
_GAVE_UP = (
    "E xla/service/rendezvous.cc:127] Termination timeout for `{what}; run_id=7` of 40 seconds "
    "exceeded. Exiting to ensure a consistent program state. Expected 4 threads to join the "
    "rendezvous, but only 3 of them arrived on time."
)
_CLIQUE = "initialize clique for rank 2; clique=devices=[0,1,2,3]"
_SOURCE = "XLA xla/service/rendezvous.cc"


ROWS = (
    signature(
        "xla-memory",
        C.CUDA_OUT_OF_MEMORY,
        "RESOURCE_EXHAUSTED: ",
        rf"(?:Error|failed): (?={EXHAUSTED})RESOURCE_EXHAUSTED: "
        r"(?P<error>Out of memory|Failed to allocate)",
        sample="XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "68719476736 bytes.",
        near_miss="XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 68719476736 "
        "bytes.",
        source="XLA, as JAX raises it",
        levels=OUTSIDE,
    ),
    signature(
        "tensorflow-memory",
        C.CUDA_OUT_OF_MEMORY,
        "OOM when allocating tensor with shape",
        rf"(?={OF_THE_GPU})(?P<error>OOM when allocating tensor)",
        sample="ResourceExhaustedError: OOM when allocating tensor with shape[64,9] and type float "
        "on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:MatMul]",
        near_miss="ResourceExhaustedError: OOM when allocating tensor with shape[64,9] and type "
        "float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu [Op:MatMul]",
        source="TensorFlow core/framework/op_kernel.cc",
        levels=OUTSIDE,
    ),
    # Printed also where the caller does with less.
    caution(
        "bfc-allocator",
        C.CUDA_OUT_OF_MEMORY,
        "ran out of memory trying to allocate",
        r"Allocator \(GPU_\d{1,4}_bfc\) ran (?P<error>out of memory) trying to allocate",
        sample="Allocator (GPU_1_bfc) ran out of memory trying to allocate 3.00GiB with "
        "freed_by_count=0. The caller indicates that this is not a failure",
        near_miss="Allocator (CPU_0_bfc) ran out of memory trying to allocate 3.00GiB",
        source="TSL framework/bfc_allocator.cc",
        levels=OUTSIDE,
    ),
    # Who waits says so: the one that did not come is not named.
    signature(
        "xla-clique",
        C.HANG_INIT,
        "Termination timeout for `",
        _MEET.format(what=r"(?:initialize|acquire) clique", expected="expected", started="started"),
        sample=_GAVE_UP.format(what=_CLIQUE),
        near_miss=f"This thread has been waiting for `{_CLIQUE}` for 10 seconds and may be stuck. "
        "Expected 4 threads to join the rendezvous, but only 3 of them arrived on time.",
        source=_SOURCE,
        levels=OUTSIDE,
    ),
    signature(
        "xla-rendezvous",
        C.HANG_MID_RUN,
        "Termination timeout for `",
        _MEET.format(
            what=r"(?!initialize clique|acquire clique)", expected="d_expected", started="d_started"
        ),
        sample=_GAVE_UP.format(what="all-reduce.12; stream=0"),
        near_miss=_GAVE_UP.format(what=_CLIQUE),
        source=_SOURCE,
        levels=OUTSIDE,
    ),
)
