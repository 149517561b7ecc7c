"""NVML's numbers and bits as words, the same for every program that shows them.

The values are those of nvml.h, which DCGM and nvidia-smi use as well.
"""

from typing import Final

# nvmlClocksEventReason..., in the order of their bits.
_REASONS: Final = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)
# nvmlComputeMode_t, with the words of nvidia-smi.
_COMPUTE_MODES: Final = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
# nvmlGpuFabricState_t; 0 says that the GPU is on no NVSwitch.
_FABRIC_STATES: Final = {1: "not started", 2: "in progress", 3: "completed"}
# nvmlDeviceGpuRecoveryAction_t and the words of several drivers for it; the numbers are Xid 154's.
_RECOVERY: Final = {
    "none": 0,
    "reset": 1,
    "gpu reset": 1,
    "gpu reset required": 1,
    "pf flr": 1,
    "reboot": 2,
    "node reboot": 2,
    "node reboot required": 2,
    "os reboot": 2,
    "drain p2p": 3,
    "drain and reset": 4,
    "recover imex domain": 5,
    "bus reset": 6,
    "system reboot": 7,
}
# Why a source of GPUs is absent though it is installed.
DRIVER_NOT_LOADED: Final = "the NVIDIA driver is not loaded"
RESET: Final = 1
DRAIN_AND_RESET: Final = 4


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """The reasons for a clock below the highest; those without a word are left out."""
    return tuple(reason for bit, reason in enumerate(_REASONS) if bits >> bit & 1)


def compute_mode(number: int) -> str | None:
    """Who may use a GPU, in the words of nvidia-smi."""
    return _COMPUTE_MODES[number] if 0 <= number < len(_COMPUTE_MODES) else None


def fabric_state(state: int, status: int) -> str | None:
    """How far a GPU has come in joining the NVSwitch fabric; ``status`` is how it ended."""
    return "failed" if state == 3 and status else _FABRIC_STATES.get(state)


def fabric_words(state: str, status: str) -> str | None:
    """The same from the words of nvidia-smi."""
    if state == "completed" and status not in {"", "success", "n/a"}:
        return "failed"
    return state if state in _FABRIC_STATES.values() else None


def recovery_action(words: str) -> int | None:
    """What the driver wants done, as a number; ``words`` are in lower case."""
    return _RECOVERY.get(words)
