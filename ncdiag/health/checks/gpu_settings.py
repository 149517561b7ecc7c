"""Settings of GPUs that make a difference to a job."""

from collections.abc import Callable

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    Case,
    Check,
    Trip,
    for_each_gpu,
)
from ncdiag.model.health import GpuHealth, Severity


def _switch(
    value: Callable[[GpuHealth], bool | None], *, wrong: bool, text: str
) -> Callable[[GpuHealth, Case], list[Trip] | None]:
    """A judge of a setting that is on or off."""

    def judge(gpu: GpuHealth, case: Case) -> list[Trip] | None:
        del case
        told = value(gpu)
        if told is None:
            return None
        return [Trip(text=text)] if told is wrong else []

    return judge


def _compute_mode(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    del case
    if gpu.compute_mode is None:
        return None
    mode = gpu.compute_mode.lower()
    if "prohibited" in mode:
        return [Trip(text="compute mode is prohibited: no program can use this GPU")]
    if "exclusive" in mode:
        text = "compute mode is exclusive: a second process on this GPU fails"
        return [Trip(text=text, severity=Severity.NOTE)]
    return []


_PERSISTENCE = _switch(
    lambda gpu: gpu.persistence_mode, wrong=False, text="persistence mode is off"
)
_MIG = _switch(lambda gpu: gpu.mig_mode, wrong=True, text="MIG mode is on")
_ECC = _switch(lambda gpu: gpu.ecc_mode, wrong=False, text="ECC is off")

CHECKS = (
    Check(
        id="persistence_mode",
        title="Persistence mode",
        severity=Severity.WARNING,
        meaning="The driver lets go of the GPU when nobody uses it: jobs start slowly, and error "
        "counters begin anew.",
        fix="nvidia-smi -pm 1, or enable nvidia-persistenced",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_PERSISTENCE, "no GPU tells its persistence mode"),
        configuration=True,
    ),
    Check(
        id="mig_mode",
        title="MIG mode",
        severity=Severity.WARNING,
        meaning="The GPU is split into parts: no peer-to-peer traffic, no NVLink.",
        fix="nvidia-smi -i GPU -mig 0, when no job runs, unless it is split on purpose",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_MIG, "no GPU tells its MIG mode"),
        configuration=True,
    ),
    Check(
        id="ecc_mode",
        title="ECC mode",
        severity=Severity.WARNING,
        meaning="Errors of memory are neither corrected nor seen: wrong results stay unnoticed.",
        fix="nvidia-smi -i GPU -e 1, then reset the GPU or reboot",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_ECC, "no GPU tells its ECC mode"),
        configuration=True,
    ),
    Check(
        id="compute_mode",
        title="Compute mode",
        severity=Severity.FAULT,
        meaning="Prohibited: nothing runs on this GPU. Exclusive: one process only, which is "
        "meant on some clusters.",
        fix="nvidia-smi -i GPU -c 0",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_compute_mode, "no GPU tells its compute mode"),
        configuration=True,
    ),
)
