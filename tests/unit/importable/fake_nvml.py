"""Plays pynvml: its functions over GPUs that a test describes, and no others.

A GPU is a dictionary from a function's name, without ``nvmlDeviceGet``, to what it gives: a value,
an error to raise, or a function of the further arguments. What it lacks is not supported, and what
no version of pynvml has is an AttributeError. ``fields`` are the values by number.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 3, 4, 9, 12
FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, LIB_RM_VERSION_MISMATCH, UNKNOWN = (
    13,
    15,
    16,
    18,
    999,
)
_WORDS = {
    3: "Not Supported",
    4: "Insufficient Permissions",
    9: "Driver Not Loaded",
    12: "NVML Shared Library Not Found",
    13: "Function Not Found",
    15: "GPU is lost",
    16: "GPU requires restart",
    18: "RM has detected an NVML/RM version mismatch.",
    999: "Unknown Error",
}


class NvmlError(Exception):
    """An error with the code that NVML gave."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return _WORDS[self.value]


class FabricInfo(ctypes.Structure):
    """As much of nvmlGpuFabricInfo_t as is looked at."""

    _fields_ = (("version", ctypes.c_uint), ("status", ctypes.c_uint), ("state", ctypes.c_uint))


# Those of pynvml that ncdiag may ask of a GPU; a slip in a name is an error of the test.
DEVICE_FUNCTIONS = (
    "ClockInfo",
    "ComputeMode",
    "ComputeRunningProcesses",
    "CurrPcieLinkGeneration",
    "CurrPcieLinkWidth",
    "CurrentClocksEventReasons",
    "CurrentClocksThrottleReasons",
    "EccMode",
    "EnforcedPowerLimit",
    "MarginTemperature",
    "MaxClockInfo",
    "MaxPcieLinkGeneration",
    "MaxPcieLinkWidth",
    "MemoryInfo",
    "MigMode",
    "Name",
    "NvLinkErrorCounter",
    "NvLinkState",
    "PciInfo",
    "PcieReplayCounter",
    "PersistenceMode",
    "PowerManagementDefaultLimit",
    "PowerUsage",
    "RemappedRows",
    "RetiredPages",
    "RetiredPagesPendingStatus",
    "Serial",
    "Temperature",
    "TemperatureThreshold",
    "TotalEccErrors",
    "UUID",
    "UtilizationRates",
    "VbiosVersion",
)


class FakeNvml:
    """A module of one host; ``lacks`` are functions that this version of pynvml does not have."""

    NVMLError = NvmlError
    NVML_NVLINK_MAX_LINKS = 36
    c_nvmlGpuFabricInfoV_t = FabricInfo  # noqa: N815
    c_nvmlGpuFabricInfo_t = FabricInfo  # noqa: N815

    def __init__(
        self,
        gpus: Sequence[Mapping[str, Any] | NvmlError],
        *,
        init: NvmlError | None = None,
        count: NvmlError | None = None,
        lacks: Sequence[str] = (),
        processes: Mapping[int, str] | None = None,
    ) -> None:
        self.gpus, self.init, self.count = gpus, init, count
        self.processes = processes or {}
        self.open = 0
        self.asked: list[str] = []
        for name in DEVICE_FUNCTIONS:
            if f"nvmlDeviceGet{name}" not in lacks:
                setattr(self, f"nvmlDeviceGet{name}", self._function(name))
        for name in lacks:
            if not name.startswith("nvmlDeviceGet") or hasattr(type(self), name):
                message = f"{name} is no function that can be taken away"
                raise ValueError(message)

    def _function(self, name: str) -> Callable[..., Any]:
        def function(gpu: Mapping[str, Any], *arguments: Any) -> Any:
            self.asked.append(name)
            return answer(gpu.get(name, NvmlError(NOT_SUPPORTED)), *arguments)

        return function

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init:
            raise self.init
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if self.count:
            raise self.count
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Mapping[str, Any]:  # noqa: N802
        gpu = self.gpus[index]
        if isinstance(gpu, NvmlError):
            raise gpu
        return gpu

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.86.15"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 12080

    def nvmlSystemGetProcessName(self, pid: int) -> str:  # noqa: N802
        if pid not in self.processes:
            raise NvmlError(NO_PERMISSION)
        return self.processes[pid]

    def nvmlDeviceGetFieldValues(  # noqa: N802
        self, gpu: Mapping[str, Any], wanted: Sequence[int | tuple[int, int]]
    ) -> list[SimpleNamespace]:
        fields = gpu.get("fields", {})
        found = []
        for one in wanted:
            if one in fields:
                value = SimpleNamespace(uiVal=fields[one], siVal=fields[one])
                found.append(SimpleNamespace(nvmlReturn=0, valueType=1, value=value))
            else:
                nothing = SimpleNamespace(uiVal=0)
                found.append(SimpleNamespace(nvmlReturn=NOT_SUPPORTED, valueType=1, value=nothing))
        return found

    def nvmlDeviceGetGpuFabricInfoV(self, gpu: Mapping[str, Any], where: Any) -> int:  # noqa: N802
        state, status = answer(gpu.get("fabric", NvmlError(FUNCTION_NOT_FOUND)))
        where._obj.state, where._obj.status = state, status
        return 0

    def nvmlDeviceGetGpuFabricInfo(self, gpu: Mapping[str, Any], where: Any) -> int:  # noqa: N802
        state, status = answer(gpu.get("old fabric", NvmlError(FUNCTION_NOT_FOUND)))
        where._obj.state, where._obj.status = state, status
        return 0


def answer(told: Any, *arguments: Any) -> Any:
    """What a description stands for: a value, an error or a function of the arguments."""
    if isinstance(told, NvmlError):
        raise told
    return told(*arguments) if callable(told) else told
