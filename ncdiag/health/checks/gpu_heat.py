"""Heat, power and clocks of GPUs."""

from statistics import median

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    NVIDIA_SOURCES,
    Case,
    Check,
    Trip,
    answering_gpus,
    for_each_gpu,
)
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import GpuHealth, Severity, Source

# No sensor tells what is beyond these: it is broken, and tells nothing.
_COLDEST_C, _HOTTEST_C = -100.0, 300.0
_HARDWARE = {
    "hw_thermal_slowdown": "the hardware slows the GPU down for heat",
    "hw_power_brake_slowdown": "the power supply tells the GPU to slow down",
    "hw_slowdown": "the hardware slows the GPU down for heat or power",
}
_SOFTWARE = {
    "sw_thermal_slowdown": (Severity.WARNING, "the driver slows the GPU down for heat"),
    "sw_power_cap": (Severity.NOTE, "the GPU is at its power limit"),
}


def _temperature(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    return _hot(
        "",
        (gpu.temperature_c, gpu.temperature_limit_c),
        _most(case.limits.gpu_temperature_c, case),
        case.limits.gpu_temperature_margin_c,
    )


def _memory_temperature(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    return _hot(
        "memory ",
        (gpu.memory_temperature_c, gpu.memory_temperature_limit_c),
        _most(case.limits.memory_temperature_c, case),
        case.limits.gpu_temperature_margin_c,
    )


def _most(limit_c: float, case: Case) -> float:
    """``limit_c``, but for the hottest spots that GPUs of AMD tell of."""
    is_amd = case.read(Source.ROCM_SMI) and not case.read(*NVIDIA_SOURCES)
    return max(limit_c, case.limits.hot_spot_c) if is_amd else limit_c


def _hot(
    what: str, told: tuple[float | None, float | None], most: float, least_margin: float
) -> list[Trip] | None:
    """A fault when hot and near the GPU's own limit (or that is not known), else a warning."""
    now, own = told
    if now is None or not _COLDEST_C < now < _HOTTEST_C:
        return None
    margin = own - now if own is not None and own > 0 else None
    hot, near = now > most, margin is not None and margin < least_margin
    if not hot and not near:
        return []
    bad = (hot and (near or margin is None)) or (margin is not None and margin <= 0)
    left = "" if margin is None else f", {margin:.0f} °C below where the GPU slows itself down"
    if margin is not None and margin <= 0:
        left = ", where the GPU slows itself down"
    return [
        Trip(
            text=f"{what}at {now:.0f} °C{left}",
            severity=Severity.FAULT if bad else Severity.WARNING,
            measured=f"{now:.0f} °C",
            limit=f"{most if hot else (own or most):.0f} °C",
        )
    ]


def _throttled(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    del case
    if gpu.throttle_reasons is None:
        return None
    reasons = set(gpu.throttle_reasons)
    hardware = [text for reason, text in _HARDWARE.items() if reason in reasons]
    if hardware:
        # The general reason is set along with the exact one.
        return [Trip(text=hardware[0])]
    return [
        Trip(text=text, severity=severity)
        for reason, (severity, text) in _SOFTWARE.items()
        if reason in reasons
    ]


def _clock_low(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    own = gpu.max_sm_clock_mhz
    peers = [
        other.max_sm_clock_mhz
        for other in answering_gpus(case)
        if other.name == gpu.name and other.max_sm_clock_mhz is not None
    ]
    if own is None or len(peers) < case.limits.least_alike:
        return None
    most = median(peers)
    if own >= most * case.limits.clock_share_of_peers:
        return []
    return [
        Trip(
            text=f"may clock up to {own} MHz, GPUs like it on this host to {most:.0f} MHz",
            measured=f"{own} MHz",
            limit=f"{most:.0f} MHz",
        )
    ]


def _power(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    now, default = gpu.power_limit_w, gpu.default_power_limit_w
    if now is None or default is None:
        return None
    if now >= default * case.limits.power_limit_share:
        return []
    return [
        Trip(
            text=f"limited to {now:.0f} W, {default:.0f} W by default",
            measured=f"{now:.0f} W",
            limit=f"{default:.0f} W",
        )
    ]


CHECKS = (
    Check(
        id="gpu_temperature",
        title="GPU temperature",
        severity=Severity.FAULT,
        meaning="Above 85 °C, or 100 °C at the hottest spot of GPUs of AMD. It is a fault where "
        "the GPU is near its own limit, or that limit is not known: under load it slows itself and "
        "every rank that waits for it.",
        fix="Look at fans, air flow and the neighbours: nvidia-smi -q -d TEMPERATURE; ipmitool sdr",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_temperature, "no GPU tells its temperature"),
        class_=FindingClass.THERMAL_POWER,
    ),
    Check(
        id="gpu_memory_temperature",
        title="GPU memory temperature",
        severity=Severity.FAULT,
        meaning="The memory is hotter than it should be: it makes more errors and is slowed down.",
        fix="Look at fans, air flow and the heat sink: nvidia-smi -q -d TEMPERATURE",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_memory_temperature, "no GPU tells the temperature of its memory"),
        class_=FindingClass.THERMAL_POWER,
    ),
    Check(
        id="gpu_throttled",
        title="GPU slowed down",
        severity=Severity.FAULT,
        meaning="Heat or the power supply slows the GPU down. Reaching its own power limit under "
        "load is how GPUs work, and only a note.",
        fix="nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE; look at cooling, power supplies and "
        "cables",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_throttled, "no GPU tells what limits its clock"),
        class_=FindingClass.THERMAL_POWER,
    ),
    Check(
        id="gpu_clock_low",
        title="GPU clock limited",
        severity=Severity.WARNING,
        meaning="This GPU may not clock as high as those like it: its clocks were set by hand.",
        fix="nvidia-smi -i GPU --reset-gpu-clocks; nvidia-smi -i GPU --reset-applications-clocks",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_clock_low, "too few GPUs of one model tell the clock they may reach"),
        configuration=True,
    ),
    Check(
        id="power_limit",
        title="GPU power limit",
        severity=Severity.WARNING,
        meaning="The power limit is below the default: the GPU is slower under load, perhaps on "
        "purpose.",
        fix="nvidia-smi -i GPU --power-limit=WATTS, the default of nvidia-smi -q -d POWER",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_power, "no GPU tells its power limit and the default"),
        configuration=True,
    ),
)
