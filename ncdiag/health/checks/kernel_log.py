"""What the kernel has logged since boot, one check a class."""

from collections.abc import Iterator, Sequence
from math import isfinite

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    Case,
    Check,
    Outcome,
    Rule,
    Trip,
    gpu_name,
    quoted,
)
from ncdiag.health.checks.gpu_presence import RECOVERY_ACTIONS
from ncdiag.health.checks.kernel_weights import gpu_of, recovery_action, weigh
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.health import KernelEvent, Severity, Source
from ncdiag.model.units import format_duration
from ncdiag.read.signatures.xid_catalogue import XIDS

_NVSWITCH = frozenset((C.NVSWITCH_FATAL, C.NVSWITCH_NONFATAL))


def _rule(classes: Sequence[str]) -> Rule:
    """A rule over the events of ``classes``."""

    def rule(case: Case) -> Iterator[Outcome]:
        events = [one for one in case.facts.kernel_events if one.class_ in classes]
        numbered = {_where(one, case) for one in events if one.code is not None} - {None}
        for event in events:
            # A driver writes an Xid, and the same once more in words.
            if event.code is not None or _where(event, case) not in numbered:
                yield _trip(event, case)

    return rule


def _where(event: KernelEvent, case: Case) -> tuple[str, str, Severity] | None:
    """The class, device and weight of an event; ``None`` where it is of no device."""
    gpu = gpu_of(event, case)
    device = event.device if gpu is None else gpu_name(gpu)
    return None if device is None else (event.class_, device, weigh(event, case))


def _others(case: Case) -> Iterator[Outcome]:
    for event in case.facts.kernel_events:
        if event.class_ not in _OWN_ROW:
            yield _trip(event, case)


def _trip(event: KernelEvent, case: Case) -> Trip:
    gpu = gpu_of(event, case)
    known = event.class_ in C.__members__.values()
    return Trip(
        text=_told(event),
        device=gpu_name(gpu) if gpu is not None else event.device,
        severity=weigh(event, case),
        measured=None if event.count == 1 else f"{event.count:,} times",
        class_=C(event.class_) if known else None,
    )


def _told(event: KernelEvent) -> str:
    times = f", {event.count:,} times" if event.count > 1 else ""
    last = event.since_boot_s if event.last_since_boot_s is None else event.last_since_boot_s
    known = last is not None and isfinite(last) and last >= 0
    when = "" if last is None or not known else f", {format_duration(last)} after boot"
    return f"{_what(event)}{times}{when}"


def _what(event: KernelEvent) -> str:
    action = recovery_action(event)
    if action is not None:
        wanted = RECOVERY_ACTIONS.get(action, "nothing" if action == 0 else f"action {action}")
        return f"Xid {event.code}, the driver asks for {wanted}"
    if event.code is None:
        return quoted(event.text)
    if event.class_ in _NVSWITCH:
        return f"SXid {event.code}: {quoted(event.text)}"
    meaning = XIDS[event.code].meaning if event.code in XIDS else quoted(event.text)
    return f"Xid {event.code}, {meaning}"


def _check(class_: C, severity: Severity, title: str, meaning: str, fix: str) -> Check:
    return Check(
        id=f"kernel_{class_.removeprefix('kernel_')}",
        title=title,
        severity=severity,
        meaning=meaning,
        fix=fix,
        sources=(Source.KERNEL_LOG,),
        also=GPU_SOURCES,
        rule=_rule((class_,)),
        class_=class_,
        configuration=class_ is C.HOST_CONFIG_WARNING,
    )


_NOTE, _WARNING, _FAULT, _FATAL = Severity

_CLASSES = (
    _check(
        C.GPU_FELL_OFF_BUS,
        _FATAL,
        "Log: GPU off the bus",
        "Xid 79 and its kin: the GPU no longer answers on PCIe. Only a reboot brings it back.",
        "Power-cycle the host; again: reseat or replace the GPU, then the board",
    ),
    _check(
        C.GPU_MEMORY_ERROR,
        _FATAL,
        "Log: GPU memory",
        "Uncorrectable errors (Xid 48, 64, 95, 140 ...) are fatal until a reset. Contained ones "
        "(94) and rows to be swapped out (63, 156) are warnings: a reset is due.",
        "Drain the host and reset the GPU: nvidia-smi --gpu-reset -i GPU; then dcgmi diag -r 3",
    ),
    _check(
        C.GSP_TIMEOUT,
        _FATAL,
        "Log: GPU firmware",
        "Xid 119, 120: the GPU's firmware processor does not answer; processes on it hang.",
        "nvidia-bug-report.sh; drain the host and reset the GPU, mostly a reboot is needed",
    ),
    _check(
        C.GPU_INTERNAL_FAULT,
        _FATAL,
        "Log: GPU unit stopped",
        "A unit of the GPU stopped or the driver could not start it (Xid 46, 62, 109, 143 ...).",
        "Drain the host and reset the GPU: nvidia-smi --gpu-reset -i GPU, else reboot",
    ),
    _check(
        C.NVLINK_ERROR,
        _FATAL,
        "Log: NVLink",
        "Xid 74, 136, 144 to 150. Non-fatal records are retries, and a fault when they come back.",
        "nvidia-smi nvlink -s; drain, reset the GPUs and restart nvidia-fabricmanager, or reboot",
    ),
    _check(
        C.XID_FOLLOWUP,
        _FATAL,
        "Log: recovery of a GPU",
        "Xid 43 and 45 clean up after something else. Xid 154 says what the driver wants done, "
        "and its last word counts.",
        "Find the first Xid of this GPU: dmesg -T | grep -i xid; do what Xid 154 says",
    ),
    _check(
        C.XID_APPLICATION_FAULT,
        _WARNING,
        "Log: programs that faulted",
        "Xid 13, 31 and their kin are faults of a program. A warning only where one GPU shows "
        "them time and again.",
        "Nothing at once; the same GPU with several programs: dcgmi diag -r 3",
    ),
    _check(
        C.NVSWITCH_FATAL,
        _FATAL,
        "Log: NVSwitch",
        "A switch between the GPUs failed and took links, or the whole fabric, down.",
        "nvidia-bug-report.sh; reboot the host; again: have the baseboard looked at",
    ),
    _check(
        C.NVSWITCH_NONFATAL,
        _WARNING,
        "Log: NVSwitch, survived",
        "A switch corrected or retried something. Many retries on a port announce a bad link.",
        "dmesg -T | grep -i sxid; plan a reset of the host when they are many",
    ),
    _check(
        C.NIC_FIRMWARE_FAULT,
        _FATAL,
        "Log: adapter firmware",
        "The adapter's firmware stopped or reports itself unwell: peers time out.",
        "Power-cycle the host (a warm reboot may not reset the adapter); mlxfwmanager; replace it",
    ),
    _check(
        C.NIC_LINK_DOWN,
        _WARNING,
        "Log: links lost",
        "A network link went down after the boot was done. A warning when it did so repeatedly; "
        "whether it is up now is another check.",
        "dmesg -T | grep -iE 'link (up|down)'; clean, reseat or swap the cable",
    ),
    _check(
        C.PCIE_ERROR,
        _FATAL,
        "Log: PCIe",
        "Uncorrected fatal errors lost a device. Others are warnings: a slot may have been "
        "emptied on purpose, and corrected errors are harmless when rare.",
        "lspci -s ADDRESS; drain, reseat the device and its riser, then replace",
    ),
    _check(
        C.HOST_MEMORY_ERROR,
        _FATAL,
        "Log: host memory",
        "Memory or processor gave an error that could not be corrected. Corrected ones matter "
        "when they are many.",
        "ras-mc-ctl --errors; ipmitool sel elist; drain the host and replace the module",
    ),
    _check(
        C.OOM_KILL,
        _NOTE,
        "Log: out of memory",
        "The kernel killed a process for memory: of a job's own limit, mostly.",
        "dmesg -T | grep -iA30 oom-killer",
    ),
    _check(
        C.KERNEL_STALL,
        _FAULT,
        "Log: stuck tasks",
        "A task or processor did not move for minutes. A fault when it came back and tasks are "
        "stuck now.",
        "Read the stack below the line in dmesg; what cannot be killed needs a reboot",
    ),
    _check(
        C.STORAGE_ERROR,
        _FAULT,
        "Log: storage",
        "A disk or file system failed. A fault where a disk of this host does so repeatedly; a "
        "file system that several hosts use accuses none of them.",
        "dmesg -T | grep -iE 'nvme|i/o error'; nvme smart-log /dev/nvme0; df -h",
    ),
    _check(
        C.THERMAL_POWER,
        _WARNING,
        "Log: heat and power",
        "Heat or power made hardware slow down.",
        "ipmitool sdr; ipmitool sel elist; look at fans, supplies and the neighbours",
    ),
    _check(
        C.HOST_CONFIG_WARNING,
        _WARNING,
        "Log: versions of the driver",
        "The driver in the kernel and its libraries are of different versions: GPUs cannot be "
        "used until the module is loaded anew.",
        "Reload the nvidia modules, or reboot",
    ),
)
_OWN_ROW = frozenset(str(check.class_) for check in _CLASSES)

CHECKS = (
    *_CLASSES,
    Check(
        id="kernel_other",
        title="Log: anything else",
        severity=Severity.WARNING,
        meaning="What else the kernel says of adapters and processes.",
        fix="Read dmesg -T around the line",
        sources=(Source.KERNEL_LOG,),
        rule=_others,
    ),
)
