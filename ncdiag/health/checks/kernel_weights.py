"""How much one thing in the kernel log weighs: by its class, its number, and what came after."""

from collections.abc import Callable, Mapping

from ncdiag.health.checks.check import Case, pci_key
from ncdiag.health.checks.gpu_presence import RECOVERY_ACTIONS
from ncdiag.health.kernel_words import (
    DEAD_ADAPTER,
    DEFERRED,
    FATAL,
    FATAL_PCIE,
    LESS_OF_ADAPTER,
    LINK_DOWN,
    NONFATAL,
    OWN_DISK,
    RECOVERED,
    RECOVERY_ACTION,
    SLOT,
    recovery_action_of,
)
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.health import GpuHealth, KernelEvent, Severity
from ncdiag.read.signatures import sxid

_NOTE, _WARNING, _FAULT, _FATAL = Severity

# What a reset of the GPU puts right, by the Xid catalogue: over once the driver asks for none.
_MENDED_BY_RESET = frozenset(
    (46, 48, 62, 74, 95, 109, 110, 119, 120, 136, 140, 143, *range(144, 151), 155, 158, 171, 172)
)
_SWAPPED_OUT = frozenset((63, 156))
_CONTAINED = 94
# Units that stopped for good.
_STOPPED = frozenset((46, 54, 61, 62, 109, 110, 143, 158, 161, 167, 168, 169))
# Without a word of Fatal or Nonfatal these speak of a link that is down or firmware that failed.
_LINK_LOST = frozenset((74, 136, 150, 155))
# A part that wears out and has to be replaced.
_WORN_OUT = 165
_BAD_LINK_SXIDS = frozenset((20001, 20009))
# What a reader of the log says of corrected errors, retries and the like (KernelEvent.severity);
# without a word an event is of its class's full weight.
_LESS, _LEAST = "degraded", "info"


def weigh(event: KernelEvent, case: Case) -> Severity:
    """How much ``event`` weighs now."""
    rule = _RULES.get(event.class_)
    if rule is None:
        return _NOTE
    severity = rule(event, case)
    if severity in {_FATAL, _FAULT} and _is_over(event, case):
        return _WARNING
    return severity


def is_repeated(event: KernelEvent, case: Case) -> bool:
    """Whether it came again so much later that it is a second sign."""
    return event.count > 1 and _spread_s(event) > case.limits.repeated_after_s


def _spread_s(event: KernelEvent) -> float:
    if event.since_boot_s is None or event.last_since_boot_s is None:
        return 0.0
    return event.last_since_boot_s - event.since_boot_s


def gpu_of(event: KernelEvent, case: Case) -> GpuHealth | None:
    """The GPU that the event is about."""
    key = pci_key(event.device)
    if key is None:
        return None
    return next((gpu for gpu in case.facts.gpus if pci_key(gpu.pci_address) == key), None)


def recovery_action(event: KernelEvent) -> int | None:
    """The number that an Xid 154 changed the GPU's recovery action to."""
    return recovery_action_of(event.text) if event.code == RECOVERY_ACTION else None


def _is_over(event: KernelEvent, case: Case) -> bool:
    """Whether the driver says that the GPU needs nothing any more."""
    gpu = gpu_of(event, case)
    if gpu is None or gpu.lost:
        return False
    if event.class_ == C.GPU_INTERNAL_FAULT and event.code is None:
        # The driver could not start it then, and tells its memory now.
        return gpu.memory_total_bytes is not None
    return event.code in _MENDED_BY_RESET and _asks_for_nothing(event, gpu, case)


def _asks_for_nothing(event: KernelEvent, gpu: GpuHealth, case: Case) -> bool:
    """Whether the driver wants nothing done: by NVML, else by an Xid 154 after ``event``."""
    if gpu.recovery_action is not None:
        return gpu.recovery_action == 0
    last_s = _last_s(event)
    return any(
        recovery_action(one) == 0 and last_s is not None and (_last_s(one) or 0.0) > last_s
        for one in case.facts.kernel_events
        if one.code == RECOVERY_ACTION and gpu_of(one, case) is gpu
    )


def _last_s(event: KernelEvent) -> float | None:
    return event.since_boot_s if event.last_since_boot_s is None else event.last_since_boot_s


def _application(event: KernelEvent, case: Case) -> Severity:
    """Never more than a note, unless one GPU shows it with program after program."""
    often = event.count >= case.limits.application_faults
    return _WARNING if often and _spread_s(event) > case.limits.application_spread_s else _NOTE


def _gpu_memory(event: KernelEvent, case: Case) -> Severity:
    if event.code in _SWAPPED_OUT:
        gpu = gpu_of(event, case)
        done = gpu is not None and gpu.retired is not None and gpu.retired.pending is False
        return _NOTE if done else _WARNING
    if event.code == _CONTAINED:
        return _WARNING
    if event.code == 92 or (event.code is None and event.severity == _LESS):
        return _WARNING if is_repeated(event, case) else _NOTE
    return _FATAL


def _internal(event: KernelEvent, case: Case) -> Severity:
    if event.severity != _LEAST and (event.code is None or event.code in _STOPPED):
        return _FATAL
    noticed = event.code == _WORN_OUT or is_repeated(event, case)
    return _WARNING if noticed else _NOTE


def _nvlink(event: KernelEvent, case: Case) -> Severity:
    lost = LINK_DOWN.search(event.text)
    if not lost and (event.severity == _LESS or NONFATAL.search(event.text)):
        return _FAULT if is_repeated(event, case) else _WARNING
    if lost or event.code in _LINK_LOST or FATAL.search(event.text):
        return _FATAL
    return _FAULT if is_repeated(event, case) or event.code else _WARNING


def _followup(event: KernelEvent, case: Case) -> Severity:
    """Clean-up of another fault; Xid 154 counts by its number, the last where there are several.

    NVML has the last word. A number that nobody knows yet drains no host.
    """
    if event.code != RECOVERY_ACTION:
        return _application(event, case)
    gpu, action = gpu_of(event, case), recovery_action(event)
    over = gpu is not None and not gpu.lost and gpu.recovery_action == 0
    if action == 0 or over:
        return _NOTE
    if action is None:
        return _WARNING
    return _FATAL if action in RECOVERY_ACTIONS else _FAULT


def _nvswitch_fatal(event: KernelEvent, case: Case) -> Severity:
    del case
    return _FATAL if event.code is None or event.code in sxid.FATAL | sxid.ALWAYS_FATAL else _FAULT


def _nvswitch(event: KernelEvent, case: Case) -> Severity:
    many = event.count >= case.limits.nvswitch_events
    return _WARNING if many and event.code in _BAD_LINK_SXIDS else _NOTE


def _adapter(event: KernelEvent, case: Case) -> Severity:
    del case
    if event.severity == _LESS or LESS_OF_ADAPTER.search(event.text):
        return _WARNING
    return _FATAL if DEAD_ADAPTER.search(event.text) else _FAULT


def _link(event: KernelEvent, case: Case) -> Severity:
    """A link that was lost: often enough and after the boot is done, or not at all."""
    last_s = _last_s(event)
    if last_s is not None and last_s < case.limits.boot_grace_s:
        return _NOTE
    often = event.count >= case.limits.flaps and is_repeated(event, case)
    return _WARNING if often else _NOTE


def _pcie(event: KernelEvent, case: Case) -> Severity:
    """Uncorrected and fatal drains; a slot that lost its card may have been emptied on purpose."""
    if event.severity == _LESS:
        return _WARNING if event.count >= case.limits.corrected_events else _NOTE
    if event.severity == _LEAST or NONFATAL.search(event.text):
        return _WARNING
    if FATAL_PCIE.search(event.text):
        return _FATAL
    return _WARNING if SLOT.search(event.text) else _FAULT


def _host_memory(event: KernelEvent, case: Case) -> Severity:
    if event.severity in {_LESS, _LEAST}:
        return _WARNING if event.count >= case.limits.corrected_events else _NOTE
    if RECOVERED.search(event.text):
        return _WARNING
    return _FAULT if DEFERRED.search(event.text) else _FATAL


def _stall(event: KernelEvent, case: Case) -> Severity:
    """A task that hung; a fault when it repeats and tasks are stuck now."""
    stuck = bool(case.facts.blocked_processes)
    return _FAULT if stuck and is_repeated(event, case) else _WARNING


def _storage(event: KernelEvent, case: Case) -> Severity:
    """A disk of this host that fails again and again; a file system others use accuses nobody."""
    own = OWN_DISK.search(f"{event.device or ''} {event.text}")
    return _FAULT if own and is_repeated(event, case) else _WARNING


def _always(severity: Severity) -> Callable[[KernelEvent, Case], Severity]:
    return lambda _event, _case: severity


_RULES: Mapping[str, Callable[[KernelEvent, Case], Severity]] = {
    C.XID_APPLICATION_FAULT: _application,
    C.GPU_MEMORY_ERROR: _gpu_memory,
    C.GPU_FELL_OFF_BUS: _always(_FATAL),
    C.GSP_TIMEOUT: _always(_FATAL),
    C.NVLINK_ERROR: _nvlink,
    C.GPU_INTERNAL_FAULT: _internal,
    C.XID_FOLLOWUP: _followup,
    C.NVSWITCH_FATAL: _nvswitch_fatal,
    C.NVSWITCH_NONFATAL: _nvswitch,
    C.NIC_FIRMWARE_FAULT: _adapter,
    C.NIC_LINK_DOWN: _link,
    C.PCIE_ERROR: _pcie,
    C.HOST_MEMORY_ERROR: _host_memory,
    C.OOM_KILL: _always(_NOTE),
    C.KERNEL_STALL: _stall,
    C.STORAGE_ERROR: _storage,
    C.THERMAL_POWER: _always(_WARNING),
    C.HOST_CONFIG_WARNING: _always(_WARNING),
    C.IB_QP_FATAL_EVENT: _always(_WARNING),
}
