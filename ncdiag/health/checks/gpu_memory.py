"""GPU memory: what is free, who holds it, and what it corrected or could not."""

from collections.abc import Iterable

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    Case,
    Check,
    Trip,
    for_each_gpu,
    gpu_before,
    quoted,
    risen,
)
from ncdiag.model.finding import FindingClass
from ncdiag.model.gpu_parts import EccCounts, GpuProcess
from ncdiag.model.health import GpuHealth, Severity
from ncdiag.model.units import format_bytes, format_count

# Programs that hold a context on every GPU, and no memory to speak of.
_DAEMONS = (
    "nvidia-persistenced",
    "nv-hostengine",
    "dcgm",
    "nvidia-cuda-mps",
    "nvidia-smi",
    "xorg",
    "gnome-shell",
)


def _used(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    free, total = gpu.memory_free_bytes, gpu.memory_total_bytes
    if free is None or gpu.mig_mode:
        return None
    least = case.limits.gpu_free_bytes
    if total is not None:
        least = min(least, total * case.limits.gpu_free_share)
    if free >= least:
        return []
    held = "; ".join(_told(one) for one in sorted(gpu.processes or (), key=_largest)[:3])
    by = f", held by {held}" if held else ""
    return [
        Trip(
            text=f"{format_bytes(free)} of memory free{by}",
            measured=format_bytes(free),
            limit=format_bytes(least),
        )
    ]


def _largest(process: GpuProcess) -> int:
    return -(process.memory_bytes or 0)


def _told(process: GpuProcess) -> str:
    name = quoted(process.name) if process.name else "a process without name"
    size = f", {format_bytes(process.memory_bytes)}" if process.memory_bytes is not None else ""
    return f"{name} (pid {process.pid}{size})"


def _stale(gpu: GpuHealth, case: Case) -> Iterable[Trip] | None:
    """Processes that hold memory of a GPU that does nothing, in both readings where there are."""
    if gpu.processes is None or gpu.utilization is None:
        return None
    earlier = gpu_before(gpu, case)
    if gpu.utilization > 0 or (earlier is not None and earlier.utilization):
        return []
    there = None if earlier is None else {one.pid for one in earlier.processes or ()}
    stale = [
        one
        for one in gpu.processes
        if not (one.name or "").lower().rsplit("/", 1)[-1].startswith(_DAEMONS)
        and (one.memory_bytes is None or one.memory_bytes >= case.limits.stale_process_bytes)
        and (there is None or one.pid in there)
    ]
    return [Trip(text=f"{_told(one)} holds memory and the GPU is idle") for one in stale]


def _volatile(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    count = gpu.ecc.volatile_uncorrected if gpu.ecc else None
    if count is None:
        return None
    if count <= 0:
        return []
    earlier = gpu_before(gpu, case)
    rose = risen(count, _ecc(earlier).volatile_uncorrected)
    more = f", {rose:,} of them since the last reading" if rose else ""
    return [
        Trip(
            text=f"{format_count(count, 'uncorrectable memory error')} since the driver was loaded"
            + more,
            severity=Severity.FATAL if rose else Severity.FAULT,
            measured=str(count),
            limit="0",
        )
    ]


def _ecc(gpu: GpuHealth | None) -> EccCounts:
    return gpu.ecc if gpu is not None and gpu.ecc is not None else EccCounts()


def _aggregate(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    count = _ecc(gpu).aggregate_uncorrected
    if count is None:
        return None
    if count <= 0:
        return []
    many = count >= case.limits.aggregate_ecc_errors
    return [
        Trip(
            text=f"{format_count(count, 'uncorrectable memory error')} in the life of this GPU",
            severity=Severity.WARNING if many else Severity.NOTE,
            measured=str(count),
            limit=str(case.limits.aggregate_ecc_errors),
        )
    ]


def _corrected(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    earlier = gpu_before(gpu, case)
    now, then = _ecc(gpu).volatile_corrected, _ecc(earlier).volatile_corrected
    if now is None or then is None:
        return None
    rose = risen(now, then)
    rate = case.per_hour(rose)
    if rose < case.limits.least_errors or rate <= case.limits.corrected_ecc_per_h:
        return []
    return [
        Trip(
            text=f"{rose:,} memory errors were corrected between two readings",
            measured=f"{rate:,.0f}/h",
            limit=f"{case.limits.corrected_ecc_per_h:,.0f}/h",
        )
    ]


def _pending(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    del case
    if gpu.retired is None or gpu.retired.pending is None:
        return None
    text = "memory rows or pages wait for a reset to be swapped out"
    return [Trip(text=text)] if gpu.retired.pending else []


def _failure(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    del case
    if gpu.retired is None or gpu.retired.failure is None:
        return None
    text = "a bad memory row could not be swapped out: no spare is left"
    return [Trip(text=text)] if gpu.retired.failure else []


def _retired(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    retired = gpu.retired
    if retired is None or (retired.correctable is None and retired.uncorrectable is None):
        return None
    count = (retired.correctable or 0) + (retired.uncorrectable or 0)
    if count <= 0:
        return []
    many = count >= case.limits.retired_pages
    return [
        Trip(
            text=f"{count:,} memory rows or pages swapped out so far",
            severity=Severity.WARNING if many else Severity.NOTE,
            measured=str(count),
            limit=str(case.limits.retired_pages),
        )
    ]


CHECKS = (
    Check(
        id="gpu_memory_used",
        title="Free GPU memory",
        severity=Severity.FAULT,
        meaning="Something holds the memory that a job is to have: another job, or the rest of "
        "one.",
        fix="See who it is: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv; end "
        "it if no job owns it",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_used, "no GPU tells its free memory"),
    ),
    Check(
        id="stale_process",
        title="Stale processes",
        severity=Severity.WARNING,
        meaning="A process holds GPU memory and the GPU does nothing: often the rest of a job that "
        "was killed.",
        fix="See whether a job owns it: scontrol listpids, ps -o user,etime,cmd -p PID; else end "
        "it",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_stale, "no GPU tells its processes and how busy it is"),
    ),
    Check(
        id="ecc_volatile_uncorrected",
        title="Uncorrectable memory errors",
        severity=Severity.FATAL,
        meaning="GPU memory gave wrong data since the driver was loaded. Errors that come between "
        "two readings drain the host: whatever runs there is hit.",
        fix="Drain the host and reset the GPU: nvidia-smi --gpu-reset -i GPU; then dcgmi diag -r 3",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_volatile, "no GPU counts uncorrectable errors"),
        class_=FindingClass.GPU_MEMORY_ERROR,
    ),
    Check(
        id="ecc_aggregate",
        title="Memory errors in the life of a GPU",
        severity=Severity.WARNING,
        meaning="Past errors of which the rows were swapped out. Many of them make the next more "
        "likely.",
        fix="Watch this GPU; when errors come back after a reset, have it replaced",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_aggregate, "no GPU counts errors over its life"),
        class_=FindingClass.GPU_MEMORY_ERROR,
    ),
    Check(
        id="ecc_corrected_rate",
        title="Rate of corrected memory errors",
        severity=Severity.WARNING,
        meaning="Corrected errors harm no data; many in a short time announce uncorrectable ones.",
        fix="Watch nvidia-smi -q -d ECC,ROW_REMAPPER; test with dcgmi diag -r 3 at the next chance",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_corrected, "needs two readings of corrected errors"),
        class_=FindingClass.GPU_MEMORY_ERROR,
    ),
    Check(
        id="remapped_rows_pending",
        title="Rows to be remapped",
        severity=Severity.FAULT,
        meaning="The GPU found bad memory and swaps it out at its next reset; until then it may "
        "be used again.",
        fix="Reset the GPU when no job runs: nvidia-smi --gpu-reset -i GPU",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_pending, "no GPU tells of pending rows"),
        class_=FindingClass.GPU_MEMORY_ERROR,
    ),
    Check(
        id="remapped_rows_failure",
        title="Rows that could not be remapped",
        severity=Severity.FATAL,
        meaning="All spare rows of a bank are used up: bad memory stays in use.",
        fix="Drain the host and have the GPU replaced",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_failure, "no GPU tells of failed rows"),
        class_=FindingClass.GPU_MEMORY_ERROR,
    ),
    Check(
        id="retired_memory",
        title="Rows and pages swapped out",
        severity=Severity.WARNING,
        meaning="How much of the memory was bad so far. From the limit on, a GPU is to be replaced "
        "by its maker's rule for pages.",
        fix="Nothing at once; report GPUs above the limit to the vendor",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_retired, "no GPU counts retired memory"),
        class_=FindingClass.GPU_MEMORY_ERROR,
    ),
)
