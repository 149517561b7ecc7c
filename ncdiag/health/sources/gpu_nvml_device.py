"""One GPU as NVML knows it."""

import ctypes
from dataclasses import replace
from typing import Any, Final

from ncdiag.health.sources.gpu_nvml_links import nvlinks
from ncdiag.health.sources.gpu_nvml_queries import LostError, Nvml
from ncdiag.model.gpu_parts import EccCounts, GpuProcess, LinkCapability, RetiredMemory
from ncdiag.model.health import GpuHealth
from ncdiag.model.text import visible
from ncdiag.read.gpu import values, words
from ncdiag.read.topology.text import bus_id

_MAX_PROCESSES: Final = 1024
# nvml.h: sensors, thresholds, clocks, kinds of ECC errors, causes of retirement.
_SENSOR_GPU: Final = 0
_SLOWDOWN, _MEMORY_MAX, _GPU_MAX = 1, 2, 3
_CLOCK_SM: Final = 1
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_SINGLE_BIT, _DOUBLE_BIT = 0, 1
# Values that NVML has by number.
_MEMORY_TEMPERATURE: Final = 82
_SLOWDOWN_MARGIN, _GPU_MAX_MARGIN = 194, 196
_RECOVERY_ACTION: Final = 230


def read_gpu(nvml: Nvml, index: int) -> GpuHealth:
    """The GPU of this number; lost where the driver lists it and cannot reach it."""
    bare = GpuHealth(index=index)
    try:
        handle = nvml.module.nvmlDeviceGetHandleByIndex(index)
    except nvml.module.NVMLError as error:
        # Whoever may not see a GPU knows nothing of its health.
        lost = not nvml.is_error(error, "NO_PERMISSION")
        reset = words.RESET if nvml.is_error(error, "RESET_REQUIRED") else None
        return replace(bare, lost=lost, reason=nvml.words(error), recovery_action=reset)
    nvml.unknown = 0
    try:
        bare = _identity(nvml, handle, index)
        found = _state(nvml, handle, bare)
    except LostError as error:
        action = words.RESET if error.needs_reset else None
        return replace(bare, lost=True, reason=str(error), recovery_action=action)
    nothing = found.temperature_c is None and found.memory_total_bytes is None
    if nothing and nvml.unknown >= 2 and found.power_w is None:
        return replace(found, lost=True, reason="Unknown Error")
    return found


def _identity(nvml: Nvml, handle: Any, index: int) -> GpuHealth:
    where = nvml.ask("nvmlDeviceGetPciInfo", handle)
    address = getattr(where, "busId", None)
    if isinstance(address, bytes):
        address = address.decode("ascii", "replace")
    return GpuHealth(
        index=index,
        uuid=nvml.text("nvmlDeviceGetUUID", handle),
        name=nvml.text("nvmlDeviceGetName", handle),
        pci_address=bus_id(values.name(address)),
        serial=nvml.text("nvmlDeviceGetSerial", handle),
        vbios=nvml.text("nvmlDeviceGetVbiosVersion", handle),
    )


def _state(nvml: Nvml, handle: Any, bare: GpuHealth) -> GpuHealth:
    memory = nvml.ask("nvmlDeviceGetMemoryInfo", handle)
    temperature = nvml.number("nvmlDeviceGetTemperature", handle, _SENSOR_GPU)
    use = values.figure(getattr(nvml.ask("nvmlDeviceGetUtilizationRates", handle), "gpu", None))
    mode = nvml.count("nvmlDeviceGetComputeMode", handle)
    action = nvml.field(handle, _RECOVERY_ACTION)
    return replace(
        bare,
        memory_total_bytes=values.count(getattr(memory, "total", None)),
        memory_free_bytes=values.count(getattr(memory, "free", None)),
        temperature_c=temperature,
        temperature_limit_c=_temperature_limit(nvml, handle, temperature),
        memory_temperature_c=nvml.field(handle, _MEMORY_TEMPERATURE) or None,
        memory_temperature_limit_c=_threshold(nvml, handle, _MEMORY_MAX),
        power_w=_watts(nvml, "nvmlDeviceGetPowerUsage", handle),
        power_limit_w=_watts(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle),
        default_power_limit_w=_watts(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle),
        sm_clock_mhz=nvml.count("nvmlDeviceGetClockInfo", handle, _CLOCK_SM),
        max_sm_clock_mhz=nvml.count("nvmlDeviceGetMaxClockInfo", handle, _CLOCK_SM),
        utilization=None if use is None else use / 100,
        throttle_reasons=_throttle_reasons(nvml, handle),
        persistence_mode=nvml.switch("nvmlDeviceGetPersistenceMode", handle),
        mig_mode=nvml.switch("nvmlDeviceGetMigMode", handle),
        ecc_mode=nvml.switch("nvmlDeviceGetEccMode", handle),
        compute_mode=None if mode is None else words.compute_mode(mode),
        ecc=_ecc(nvml, handle),
        retired=_retired(nvml, handle),
        nvlinks=nvlinks(nvml, handle),
        pcie=_pcie(nvml, handle),
        pcie_replays=nvml.count("nvmlDeviceGetPcieReplayCounter", handle),
        processes=_processes(nvml, handle),
        recovery_action=None if action is None else int(action),
        fabric_state=_fabric_state(nvml, handle),
    )


def _watts(nvml: Nvml, function: str, handle: Any) -> float | None:
    milliwatts = nvml.number(function, handle)
    return None if milliwatts is None else milliwatts / 1000


def _threshold(nvml: Nvml, handle: Any, which: int) -> float | None:
    """A temperature; some drivers give 0 for one that the GPU does not have."""
    return nvml.number("nvmlDeviceGetTemperatureThreshold", handle, which) or None


def _temperature_limit(nvml: Nvml, handle: Any, now: float | None) -> float | None:
    """Where the GPU slows down: as a temperature, or by how many degrees are left until then."""
    limit = _threshold(nvml, handle, _SLOWDOWN)
    if limit is None and now is not None:
        margin = nvml.number("nvmlDeviceGetMarginTemperature", handle)
        slow = nvml.field(handle, _SLOWDOWN_MARGIN)
        slow = nvml.field(handle, _GPU_MAX_MARGIN) if slow is None else slow
        limit = None if margin is None or slow is None else now + margin - slow
    return _threshold(nvml, handle, _GPU_MAX) if limit is None else limit


def _throttle_reasons(nvml: Nvml, handle: Any) -> tuple[str, ...] | None:
    bits = nvml.count("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if bits is None:
        bits = nvml.count("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return None if bits is None else words.throttle_reasons(bits)


def _ecc(nvml: Nvml, handle: Any) -> EccCounts | None:
    function = "nvmlDeviceGetTotalEccErrors"
    found = EccCounts(
        volatile_corrected=nvml.count(function, handle, _CORRECTED, _VOLATILE),
        volatile_uncorrected=nvml.count(function, handle, _UNCORRECTED, _VOLATILE),
        aggregate_corrected=nvml.count(function, handle, _CORRECTED, _AGGREGATE),
        aggregate_uncorrected=nvml.count(function, handle, _UNCORRECTED, _AGGREGATE),
    )
    return None if found == EccCounts() else found


def _retired(nvml: Nvml, handle: Any) -> RetiredMemory | None:
    rows = nvml.ask("nvmlDeviceGetRemappedRows", handle)
    if isinstance(rows, list | tuple) and len(rows) >= 4:
        corrected, uncorrected, pending, failure = rows[:4]
        return RetiredMemory(
            correctable=values.count(corrected),
            uncorrectable=values.count(uncorrected),
            pending=bool(pending),
            failure=bool(failure),
        )
    single = nvml.ask("nvmlDeviceGetRetiredPages", handle, _SINGLE_BIT)
    double = nvml.ask("nvmlDeviceGetRetiredPages", handle, _DOUBLE_BIT)
    found = RetiredMemory(
        correctable=len(single) if isinstance(single, list) else None,
        uncorrectable=len(double) if isinstance(double, list) else None,
        pending=nvml.switch("nvmlDeviceGetRetiredPagesPendingStatus", handle),
    )
    return None if found == RetiredMemory() else found


def _pcie(nvml: Nvml, handle: Any) -> LinkCapability | None:
    generation = nvml.count("nvmlDeviceGetCurrPcieLinkGeneration", handle)
    most = nvml.count("nvmlDeviceGetMaxPcieLinkGeneration", handle)
    found = LinkCapability(
        current_gigatransfers_per_s=values.gigatransfers(generation),
        current_lanes=nvml.count("nvmlDeviceGetCurrPcieLinkWidth", handle),
        max_gigatransfers_per_s=values.gigatransfers(most),
        max_lanes=nvml.count("nvmlDeviceGetMaxPcieLinkWidth", handle),
    )
    return None if found == LinkCapability() else found


def _processes(nvml: Nvml, handle: Any) -> tuple[GpuProcess, ...] | None:
    listed = nvml.ask("nvmlDeviceGetComputeRunningProcesses", handle)
    if not isinstance(listed, list):
        return None
    found = []
    for one in listed[:_MAX_PROCESSES]:
        pid = getattr(one, "pid", None)
        if isinstance(pid, int):
            name = nvml.text("nvmlSystemGetProcessName", pid)
            memory = values.count(getattr(one, "usedGpuMemory", None))
            shown = None if name is None else visible(name)
            found.append(GpuProcess(pid=pid, name=shown, memory_bytes=memory))
    return tuple(found)


def _fabric_state(nvml: Nvml, handle: Any) -> str | None:
    """How far joining the fabric has come; the older function is for older drivers."""
    for function, structure in (
        ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfoV_t"),
        ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
    ):
        kind = getattr(nvml.module, structure, None)
        info = kind() if kind is not None else None
        if not isinstance(info, ctypes.Structure):
            continue
        # Success is 0, and nothing is what could not be asked.
        if nvml.ask(function, handle, ctypes.byref(info)) is not None:
            return words.fabric_state(getattr(info, "state", 0), getattr(info, "status", 0))
    return None
