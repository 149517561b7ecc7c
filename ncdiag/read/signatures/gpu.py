"""Rows for GPUs, shared memory and multicast as the library sees them, failed calls apart."""

import re

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import (
    ERRNO,
    TOLD,
    caution,
    final,
    signature,
)
from ncdiag.read.signatures.row import OUTSIDE

_NO_SPACE = "No space left on device"
_OTHER_ERROR = re.compile(r"error:? (?!No space left)[A-Z]")


def _full(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse a segment that could not be had for another reason than space."""
    return None if _OTHER_ERROR.search(line.text) else values


def _survived(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse a bind that ended the start-up: one it lived without is only information."""
    return values if line.level == "INFO" or "Proceeding without NVLS" in line.text else None


_MEMORY = (
    signature(
        "cuda-malloc",
        C.CUDA_OUT_OF_MEMORY,
        "Failed to CUDA ",
        r"(?P<error>Failed to CUDA (?:malloc|calloc|host alloc)(?: async)?) (?P<d_size>\d{1,20}) "
        r"bytes",
        sample="Failed to CUDA calloc async 4194304 bytes",
        near_miss="Failed to malloc 4194304 bytes",
        source="include/alloc.h",
    ),
    signature(
        "torch-memory",
        C.CUDA_OUT_OF_MEMORY,
        " out of memory. Tried to allocate",
        r"(?P<error>(?:CUDA|HIP) out of memory)\. Tried to allocate (?P<d_size>[\d.]{1,12} "
        r"\w{1,3})",
        sample="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        near_miss="CUDA memory: tried to allocate 2.00 GiB, done",
        source="PyTorch CUDACachingAllocator",
        levels=OUTSIDE,
        refine=final,
    ),
    signature(
        "shm-segment",
        C.SHM_NO_SPACE,
        "shared memory segment ",
        rf"Error while \w{{1,20}}(?: to)? shared memory segment (?P<d_path>\S{{1,120}}) "
        rf"\(size (?P<size>\d{{1,20}})\), error: (?P<error>{_NO_SPACE}){ERRNO}",
        sample="Error while creating shared memory segment /dev/shm/nccl-Q7x2Lm (size 9637888), "
        "error: No space left on device (28)",
        near_miss="Error while attaching to shared memory segment /dev/shm/nccl-Q7x2Lm (size "
        "9637888), error: No such file or directory (2)",
        source="misc/shmutils.cc",
        versions="2.19 and later",
    ),
    signature(
        "shm-segment-old",
        C.SHM_NO_SPACE,
        "Error while creating shared memory segment ",
        r"Error while creating shared memory segment (?P<d_path>\S{1,120}) "
        r"\(size (?P<size>\d{1,20})\)(?!, error)",
        sample="Error while creating shared memory segment /dev/shm/nccl-Q7x2Lm (size 9637888)",
        near_miss="Error while creating shared memory segment /dev/shm/nccl-Q7x2Lm (size 9637888), "
        "error: Permission denied (13)",
        source="misc/shmutils.cc",
        versions="up to 2.18",
        refine=_full,
    ),
    signature(
        "shm-extend",
        C.SHM_NO_SPACE,
        "ailed to extend ",
        r"[Ff]ailed to extend (?P<d_path>\S{1,120}) to (?P<size>\d{1,20}) bytes"
        rf"(?:, error:? (?P<error>{_NO_SPACE}){ERRNO})?",
        sample="Error: failed to extend /dev/shm/nccl-Q7x2Lm to 9637892 bytes, error: No space "
        "left "
        "on device (28)",
        near_miss="fallocate: Failed to extend /dev/shm/nccl-Q7x2Lm to 9637892 bytes, error: "
        "Interrupted system call (4) - retrying",
        source="misc/shmutils.cc, os/linux.cc",
        refine=_full,
    ),
    signature(
        "shm-create",
        C.SHM_NO_SPACE,
        "create shared memory file",
        r"[Ff]ailed to create shared memory file (?P<d_path>\S{1,120}), error:? "
        rf"(?P<error>{_NO_SPACE}){ERRNO}",
        sample="Error: failed to create shared memory file /dev/shm/nccl-Q7x2Lm, error No space "
        "left "
        "on device (28)",
        near_miss="Error: failed to create shared memory file /dev/shm/nccl-Q7x2Lm, error "
        "Permission denied (13)",
        source="misc/shmutils.cc",
        versions="2.19 and later",
    ),
    signature(
        "shm-fallocate",
        C.SHM_NO_SPACE,
        "fallocate failed",
        rf"(?:Call to )?(?:posix_)?fallocate failed ?:? ?(?:with error "
        rf")?(?P<error>{_NO_SPACE}){ERRNO}",
        sample="Call to posix_fallocate failed : No space left on device",
        near_miss="Call to posix_fallocate failed : Operation not supported",
        source="misc/shmutils.cc",
        versions="up to 2.18",
    ),
    signature(
        "shm-call",
        C.SHM_NO_SPACE,
        _NO_SPACE,
        rf"Call to (?P<d_call>shm_open|ftruncate|mmap|open|mkstemp) failed ?: "
        rf"(?P<error>{_NO_SPACE})"
        rf"|(?P<d_path>/dev/shm/\S{{1,120}})[^\n]{{0,80}}(?P<d_error>{_NO_SPACE}){ERRNO}",
        sample="Call to shm_open failed : No space left on device",
        near_miss="write(/scratch/ckpt.pt) failed : No space left on device",
        source="misc/shmutils.cc",
    ),
    signature(
        "shm-torch",
        C.SHM_NO_SPACE,
        "out of shared memory",
        r"(?P<error>workers are out of shared memory)"
        r"|unable to (?:open|write to|mmap|resize) (?:shared memory object|file) </torch_",
        sample="It is possible that dataloader's workers are out of shared memory.",
        near_miss="shared memory per block: 49152",
        source="PyTorch DataLoader",
        levels=OUTSIDE,
        further=("> in read-write mode", "unable to write to file </torch_"),
    ),
)

_DEVICES = (
    signature(
        "duplicate-gpu",
        C.DUPLICATE_GPU,
        "Duplicate GPU detected",
        r"Duplicate GPU detected ?: rank (?P<ranks>\d{1,9}) and rank (?P<ranks_other>\d{1,9}) both "
        r"on CUDA device (?P<bus_id>[0-9a-fA-F:.]{1,16})",
        sample="Duplicate GPU detected : rank 5 and rank 4 both on CUDA device 4f000",
        near_miss="GPU detected : rank 5 on CUDA device 4f000",
        source="init.cc",
        versions="up to 2.30.4",
    ),
    signature(
        "shared-gpu",
        C.DUPLICATE_GPU,
        "Multiple Ranks are using the same GPU",
        r"Multiple Ranks are using the same GPU",
        sample="Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 "
        "to enable this configuration.",
        near_miss="NCCL_MULTI_RANK_GPU_ENABLE set by environment to 1.",
        source="init.cc",
        versions="2.30.7",
    ),
    signature(
        "nvml-gpu-lost",
        C.GPU_FELL_OFF_BUS,
        "GPU is lost",
        r"nvml\w{1,60}\([^)\n]{0,60}\) failed: (?P<d_error>GPU is lost)",
        sample="nvmlDeviceGetHandleByIndex(3) failed: GPU is lost",
        near_miss="nvmlDeviceGetHandleByIndex(3) failed: Not Found",
        source="misc/nvmlwrap.cc",
    ),
    signature(
        "nvml-failed",
        C.CUDA_ERROR,
        ") failed: ",
        r"nvml\w{1,60}\([^)\n]{0,60}\) failed: (?P<error>Driver/library version mismatch"
        r"|Unknown Error|Driver Not Loaded|GPU requires reset"
        r"|RM has detected an NVML/RM version mismatch|GPU is detached[^\n]{0,40})",
        sample="nvmlInit_v2() failed: Driver/library version mismatch",
        near_miss="nvmlDeviceGetP2PStatus() failed: Not Supported",
        source="misc/nvmlwrap.cc",
    ),
    signature(
        "driver-too-old",
        C.CUDA_ERROR,
        "Minimum requirement is",
        r"(?P<error>CUDA Driver version found is \d{1,6})\. Minimum requirement is",
        sample="CUDA Driver version found is 9010. Minimum requirement is 11000",
        near_miss="cudaDriverVersion 12040",
        source="misc/cudawrap.cc",
    ),
    signature(
        "cuda-context",
        C.CUDA_ERROR,
        "CUDA context on device",
        r"(?P<error>Failed to (?:create|set) CUDA context) on device (?P<d_device>\d{1,4})",
        sample="Failed to set CUDA context on device 3",
        near_miss="CUDA context on device 3 ready",
        source="proxy.cc",
    ),
    signature(
        "tests-too-many-gpus",
        C.CUDA_INVALID_DEVICE,
        "Invalid number of GPUs: ",
        r"(?P<error>Invalid number of GPUs: (?P<d_requested>\d{1,6}) requested but only "
        r"(?P<d_found>\d{1,6}) were found)",
        sample="Invalid number of GPUs: 16 requested but only 8 were found.",
        near_miss="Number of GPUs: 8 requested, 8 found.",
        source="nccl-tests src/common.cu",
        levels=OUTSIDE,
    ),
)

_P2P = (
    signature(
        "p2p-disabled-nvlink",
        C.P2P_DISABLED,
        "P2P is disabled between NVLINK connected GPUs",
        r"P2P is disabled between NVLINK connected GPUs (?P<gpus>\d{1,4} and \d{1,4})",
        sample="P2P is disabled between NVLINK connected GPUs 3 and 5. This should not be the case "
        "given their connectivity, and is probably due to a hardware issue.",
        near_miss="P2P is disabled between connected GPUs 3 and 5. You can repress this message "
        "with NCCL_IGNORE_DISABLED_P2P=1.",
        source="graph/paths.cc",
        levels=TOLD,
        role=Role.ROOT,
        severity=Severity.DEGRADED,
    ),
    caution(
        "p2p-disabled",
        C.P2P_DISABLED,
        "P2P is disabled between ",
        r"P2P is disabled between (?:connected|nvml\w{0,20}) (?:GPUs )?(?P<gpus>\d{1,4} and "
        r"\d{1,4})",
        sample="P2P is disabled between connected GPUs 3 and 5. You can repress this message with "
        "NCCL_IGNORE_DISABLED_P2P=1.",
        near_miss="P2P is enabled between connected GPUs 3 and 5.",
        source="graph/paths.cc",
        levels=TOLD,
    ),
    caution(
        "p2p-not-enabled",
        C.P2P_DISABLED,
        "Could not enable P2P between dev",
        r"Could not enable P2P between (?P<gpus>dev \d{1,4}\(=[0-9a-f]{1,12}\) and "
        r"dev \d{1,4}\(=[0-9a-f]{1,12}\))",
        sample="Could not enable P2P between dev 3(=1b000) and dev 5(=4f000)",
        near_miss="P2P between dev 3(=1b000) and dev 5(=4f000)",
        source="transport/p2p.cc",
        levels=TOLD,
    ),
    caution(
        "p2p-peer-query",
        C.P2P_DISABLED,
        "peer query failed between dev",
        r"peer query failed between (?P<gpus>dev \d{1,4}\(=[0-9a-f]{1,12}\) and "
        r"dev \d{1,4}\(=[0-9a-f]{1,12}\))",
        sample="peer query failed between dev 3(=1b000) and dev 5(=4f000)",
        near_miss="peer query between dev 3(=1b000) and dev 5(=4f000)",
        source="transport/p2p.cc",
        levels=TOLD,
    ),
    caution(
        "p2p-not-supported",
        C.P2P_DISABLED,
        "not supported between ",
        r"P2P (?:is )?not supported between (?P<gpus>(?:GPUs? ?|dev )?\d{1,4} and "
        r"(?:GPU ?|dev )?\d{1,4})",
        sample="P2P not supported between GPU3 and GPU5",
        near_miss="P2P supported between GPU3 and GPU5",
        source="transport/p2p.cc and programs",
        levels=TOLD,
    ),
)

_FABRIC = (
    caution(
        "nvls-bind-survived",
        C.NVLS_MULTICAST_FAILED,
        "Failed to bind NVLink SHARP",
        r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory of size (?P<d_size>\d{1,20}) ?: "
        r"CUDA error (?P<code>\d{1,4}) '(?P<error>[^'\n]{1,160})'",
        sample="Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 "
        "'invalid argument'. Proceeding without NVLS support.",
        near_miss="Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA "
        "error "
        "1 'invalid argument'.",
        source="transport/nvls.cc",
        versions="2.27.3 to 2.28.9",
        levels=TOLD,
        refine=_survived,
    ),
    signature(
        "nvls-bind",
        C.NVLS_MULTICAST_FAILED,
        "Failed to bind NVLink SHARP",
        r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory of size (?P<d_size>\d{1,20}) ?: "
        r"CUDA error (?P<code>\d{1,4}) '(?P<error>[^'\n]{1,160})'",
        sample="Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 "
        "'invalid argument'.",
        near_miss="NVLS Created Multicast group 7f20 nranks 8 size 2097152 on rank 0",
        source="transport/nvls.cc",
        versions="2.18 and later",
    ),
    signature(
        "nvls-user-bind",
        C.NVLS_MULTICAST_FAILED,
        "Failed to multicast-bind user buffer",
        r"Failed to multicast-bind user buffer: CUDA error (?P<code>\d{1,4}) "
        r"'(?P<error>[^'\n]{1,160})'",
        sample="Failed to multicast-bind user buffer: CUDA error 401 'the operation cannot be "
        "performed in the present state'",
        near_miss="NVLS rank 3 (dev 3) alloc done",
        source="transport/multicast.cc",
        versions="2.30 and later",
    ),
    signature(
        "mnnvl-not-working",
        C.MNNVL_FAILED,
        "is available but not ",
        r"MNNVL \(cliqueSize (?P<d_clique_size>\d{1,6})\) is available but not "
        r"(?:working|supported) on this system",
        sample="MNNVL (cliqueSize 36) is available but not working on this system. Check the IMEX "
        "channel configuration (/dev/nvidia-caps-imex-channels).",
        near_miss="MNNVL 1 cliqueId 7ffe cliqueSize 36 cliqueRank 3",
        source="mnnvl.cc",
        versions="2.25 and later",
    ),
    signature(
        "imex-hint",
        C.MNNVL_FAILED,
        "IMEX",
        r"Check the IMEX (?:channel )?(?:configuration|daemon|domain)|IMEX "
        r"(?:daemon|domain|channel)s?"
        r" (?:is )?not (?:running|ready|available|configured)",
        sample="Cuda failure raised. Check the IMEX configuration (nvidia-imex-ctl -N).",
        near_miss="IMEX domain is UP",
        source="mnnvl.cc, nvidia-imex",
        levels=TOLD,
    ),
)

ROWS = (*_MEMORY, *_DEVICES, *_P2P, *_FABRIC)
