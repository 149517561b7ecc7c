"""AMD's GPUs: what the amdgpu driver and the ROCm runtime say of them."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

# "amdgpu 0000:c1:00.0: amdgpu: {1}": the number is that of the RAS event.
_HEAD = (
    r"\bamdgpu (?P<pci>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]): (?:amdgpu: )?"
    r"(?:\{\d{1,20}\})?(?:\[drm\] )?"
)
# Faults since the driver was loaded ("in total") may be old.
_COUNTED = r"(?:socket: \d{1,4}, die: \d{1,4},? )?0{0,12}[1-9]\d{0,11} (?:new )?"
_DETECTED = r" hardware errors? detected in (?P<d_block>%s) block"
_OTHER_BLOCKS = r"(?!umc\b)[a-z][\w-]{1,30}"

_kernel = partial(Signature, levels=OUTSIDE, kind="kernel", source="Linux drivers/gpu/drm/amd")
_memory = partial(_kernel, class_=FindingClass.GPU_MEMORY_ERROR)
_internal = partial(_kernel, class_=FindingClass.GPU_INTERNAL_FAULT)
_rocm = partial(Signature, levels=OUTSIDE, source="ROCR-Runtime amd_gpu_agent, ROCclr rocdevice")

_DRIVER_ROWS: tuple[Signature, ...] = (
    _memory(
        name="amdgpu_memory",
        needle="uncorrectable hardware error",
        pattern=Pattern(_HEAD + _COUNTED + "uncorrectable" + _DETECTED % "umc"),
        sample="amdgpu 0000:5d:00.0: amdgpu: {3}4 uncorrectable hardware errors detected in umc "
        "block",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc "
        "block",
    ),
    _memory(
        name="amdgpu_memory_corrected",
        needle=" correctable hardware error",
        further=(" new correctable hardware error",),
        pattern=Pattern(_HEAD + _COUNTED + "correctable" + _DETECTED % "umc"),
        sample="amdgpu 0000:5d:00.0: amdgpu: 4 correctable hardware errors detected in umc block",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: 0 correctable hardware errors detected in umc "
        "block",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _internal(
        name="amdgpu_block",
        needle="uncorrectable hardware error",
        pattern=Pattern(_HEAD + _COUNTED + "uncorrectable" + _DETECTED % _OTHER_BLOCKS),
        sample="amdgpu 0000:5d:00.0: amdgpu: 1 uncorrectable hardware errors detected in gfx block",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: 0 uncorrectable hardware errors detected in gfx "
        "block",
    ),
    _internal(
        name="amdgpu_block_corrected",
        needle=" correctable hardware error",
        pattern=Pattern(_HEAD + _COUNTED + "correctable" + _DETECTED % _OTHER_BLOCKS),
        sample="amdgpu 0000:5d:00.0: amdgpu: 1 correctable hardware errors detected in gfx block",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: 0 correctable hardware errors detected in gfx "
        "block",
        role=Role.WARNING,
        severity=Severity.INFO,
    ),
    _internal(
        name="amdgpu_ras_interrupt",
        needle="uncorrectable hardware error(",
        pattern=Pattern(_HEAD + r"uncorrectable hardware error\(ERREVENT_\w{1,40}\) detected"),
        sample="amdgpu 0000:5d:00.0: amdgpu: {3}uncorrectable hardware "
        "error(ERREVENT_ATHUB_INTERRUPT) detected!",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: RAS: uncorrectable hardware error(s) are reported "
        "by ERREVENT_ATHUB_INTERRUPT",
    ),
    _internal(
        name="amdgpu_reset_failed",
        needle="GPU reset",
        pattern=Pattern(_HEAD + r"GPU reset(?:\(\d{1,9}\) failed| end with ret = -\d{1,4})"),
        sample="amdgpu 0000:5d:00.0: amdgpu: GPU reset(3) failed",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: GPU reset(3) succeeded!",
    ),
    _internal(
        name="amdgpu_reset",
        needle="GPU reset begin!",
        pattern=Pattern(_HEAD + r"GPU reset begin!"),
        sample="amdgpu 0000:5d:00.0: amdgpu: GPU reset begin!",
        near_miss="amdgpu 0000:5d:00.0: amdgpu: GPU reset(3) succeeded!",
        role=Role.WARNING,
        severity=Severity.INFO,
    ),
    _internal(
        name="amdgpu_ring_timeout",
        needle="*ERROR* ring ",
        further=("amdgpu: ring ",),
        pattern=Pattern(
            r"(?:\[drm:amdgpu_job_timedout(?: \[amdgpu\])?\] \*ERROR\* |"
            rf"{_HEAD}(?:\*ERROR\* )?)ring (?P<d_ring>[a-z][\w.]{{1,30}}) timeout"
            r"(?!, but soft recovered)"
        ),
        sample="[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=811, "
        "emitted seq=813",
        near_miss="[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft "
        "recovered",
    ),
    _internal(
        name="amdgpu_queue_stuck",
        needle="fence wait loop timeout expired",
        pattern=Pattern(r"\bamdgpu: (?:qcm|cp queue) fence wait loop timeout expired"),
        sample="amdgpu: qcm fence wait loop timeout expired",
        near_miss="fence wait loop timeout expired is printed by the driver",
    ),
)

_ROCM_ROWS: tuple[Signature, ...] = (
    _rocm(
        name="rocm_page_fault",
        class_=FindingClass.CUDA_ERROR,
        needle="Memory access fault by GPU node-",
        pattern=Pattern(
            r"(?P<error>Memory access fault) by GPU node-\d{1,4} "
            r"\(Agent handle: 0x[0-9a-f]{1,16}\) on address "
        ),
        sample="Memory access fault by GPU node-3 (Agent handle: 0x5610aa20) on address "
        "0x7f10aa000000. Reason: Unknown.",
        near_miss="Memory access fault by GPU node-3 is what the runtime prints",
    ),
    _rocm(
        name="rocm_queue_error",
        class_=FindingClass.CUDA_ERROR,
        needle="HSA_STATUS_ERROR",
        pattern=Pattern(
            r"Queue 0x[0-9a-f]{1,16} [Aa]borting with error ?: "
            r"(?P<error>HSA_STATUS_ERROR\w{0,60})(?:[^\n]{0,400}? code: (?P<code>0x[0-9a-f]{1,8}))?"
        ),
        sample="Callback: Queue 0x7f10aa000000 aborting with error : "
        "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: The agent attempted to execute an illegal shader "
        "instruction. code: 0x2a",
        near_miss="except HsaError as error: assert error.name == 'HSA_STATUS_ERROR'",
    ),
    _rocm(
        name="rocm_gpu_hang",
        class_=FindingClass.GPU_INTERNAL_FAULT,
        needle="HW Exception by GPU node-",
        pattern=Pattern(
            r"HW Exception by GPU node-\d{1,4} "
            r"\(Agent handle: 0x[0-9a-f]{1,16}\) reason ?: ?(?:GPU Hang|ECC)"
        ),
        sample="HW Exception by GPU node-3 (Agent handle: 0x5610aa20) reason :GPU Hang",
        near_miss="HW Exception by GPU node-3 (Agent handle: 0x5610aa20) reason :Other",
    ),
)

ROWS: tuple[Signature, ...] = (*_DRIVER_ROWS, *_ROCM_ROWS)
