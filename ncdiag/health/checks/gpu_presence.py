"""Whether all GPUs are there, and what the driver wants done with them."""

from collections.abc import Iterator
from dataclasses import replace

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    NVIDIA_SOURCES,
    Case,
    Check,
    Outcome,
    Silent,
    Trip,
    for_each_gpu,
    gpu_name,
    quoted,
)
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import GpuHealth, PciKind, Severity, Source, SourceState
from ncdiag.model.units import format_count
from ncdiag.read.gpu.words import DRIVER_NOT_LOADED

# The vendor whose driver lists all its GPUs that are on the bus.
_NVIDIA = "10de"
_NO_GPUS = (
    "Make sure that this host is meant, and no machine or container without GPUs; "
    "lspci | grep -iE 'nvidia|3d|display'; then dmesg -T | grep -i pci"
)
_DRIVERS = frozenset(("nvidia", "amdgpu", "xe", "habanalabs"))


def _missing(case: Case) -> Iterator[Outcome]:
    lost = [gpu for gpu in case.facts.gpus if gpu.lost]
    for gpu in lost:
        why = f": {quoted(gpu.reason)}" if gpu.reason else ""
        yield Trip(
            text=f"the driver lists {gpu_name(gpu)} and cannot reach it{why}",
            device=gpu_name(gpu),
            severity=Severity.FATAL,
            class_=FindingClass.GPU_FELL_OFF_BUS,
        )
    listed, on_bus, wanted = _listed(case), _on_bus(case), case.expected.gpus
    if listed is not None and wanted is not None and listed < wanted:
        yield _fewer("the driver lists", listed, wanted, f"by {case.expected.gpus_from}")
    elif listed is not None and case.read(*NVIDIA_SOURCES) and listed < on_bus:
        yield _fewer_than_on_bus("the driver lists", listed, on_bus, case)
    elif listed is None and not wanted and on_bus and _is_not_loaded(case):
        yield _fewer_than_on_bus("the driver is not loaded and lists", 0, on_bus, case)
    elif listed is None and wanted and _has_no_driver(case):
        yield from _without_driver(on_bus, wanted, case)
    elif listed is None and not lost:
        yield Silent(_why_not_counted(case))


def _listed(case: Case) -> int | None:
    """How many GPUs the driver lists; ``None`` where nobody could count them."""
    return len(case.facts.gpus) if case.read(*GPU_SOURCES) else None


def _on_bus(case: Case) -> int:
    """The GPUs that NVIDIA's driver should have; others are handed to virtual machines, say."""
    return sum(
        device.kind is PciKind.GPU
        and _NVIDIA in (device.vendor or "").lower()
        and device.driver in {None, "nvidia"}
        for device in case.facts.pci_devices
    )


def _is_not_loaded(case: Case) -> bool:
    """Whether a tool of NVIDIA is installed and says so, and the kernel's modules agree."""
    said = any(
        one.state is SourceState.ABSENT and one.reason == DRIVER_NOT_LOADED
        for one in case.facts.sources
    )
    return said and "nvidia" not in (case.facts.modules or ())


def _fewer_than_on_bus(what: str, listed: int, on_bus: int, case: Case) -> Trip:
    """Containers see the whole bus, and only the GPUs that they are given."""
    trip = _fewer(what, listed, on_bus, "on the PCIe bus")
    if not any(one.path == "/" and one.kind == "overlay" for one in case.facts.mounts):
        return trip
    text = f"{trip.text}; a container may be given fewer"
    return replace(trip, text=text, severity=Severity.WARNING)


def _has_no_driver(case: Case) -> bool:
    """Whether nothing that could count GPUs is there, while the PCIe bus could be looked at."""
    asked = [one for one in case.facts.sources if one.source in GPU_SOURCES]
    return case.read(Source.PCIE) and all(one.state is SourceState.ABSENT for one in asked)


def _without_driver(on_bus: int, wanted: int, case: Case) -> Iterator[Outcome]:
    """A driver may be there without its tools: the bus and the kernel's modules tell then."""
    kinds = [device.kind for device in case.facts.pci_devices]
    seen = max(on_bus, kinds.count(PciKind.GPU))
    modules, by = case.facts.modules, f"by {case.expected.gpus_from}"
    if seen < wanted:
        trip = _fewer("the PCIe bus has", seen, wanted, by)
        yield trip if seen else replace(trip, next=_NO_GPUS)
    elif modules is not None and not set(modules) & _DRIVERS:
        yield _fewer("no driver is loaded, so there are", 0, wanted, by)
    else:
        yield Silent("no tool is installed that counts the driver's GPUs")


def _why_not_counted(case: Case) -> str:
    for one in case.facts.sources:
        if one.source in GPU_SOURCES and one.state is not SourceState.ABSENT:
            return f"{one.source}: {one.state}"
    return "no driver of GPUs here, and no GPUs expected"


def _fewer(what: str, there: int, wanted: int, where: str) -> Trip:
    return Trip(
        text=f"{what} {format_count(there, 'GPU')}, and there should be {wanted} ({where})",
        severity=Severity.FAULT,
        measured=str(there),
        limit=str(wanted),
    )


# Numbers of NVML's recovery action and of Xid 154.
RECOVERY_ACTIONS = {
    1: "a reset of the GPU",
    2: "a reboot of the host",
    3: "to drain peer-to-peer traffic",
    4: "to drain the GPU and reset it",
    5: "a recovery of the IMEX domain",
    6: "a reset of its bus",
    7: "a reboot of the system",
}


def _recovery(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    del case
    if gpu.recovery_action is None:
        return None
    if gpu.recovery_action == 0:
        return []
    wanted = RECOVERY_ACTIONS.get(gpu.recovery_action, f"action {gpu.recovery_action}")
    known = gpu.recovery_action in RECOVERY_ACTIONS
    return [
        Trip(
            text=f"the driver asks for {wanted} before this GPU can be used again",
            severity=Severity.FATAL if known else Severity.FAULT,
        )
    ]


CHECKS = (
    Check(
        id="gpu_missing",
        title="GPUs there",
        severity=Severity.FATAL,
        meaning="A GPU is lost, or there are fewer than the hosts file or the PCIe bus says. Only "
        "a GPU that the driver lists and cannot reach drains the host.",
        fix="Look for Xid 79 and PCIe errors: dmesg -T | grep -iE 'xid|aer'; power-cycle the host",
        sources=(*GPU_SOURCES, Source.PCIE),
        also=(Source.MODULES, Source.MOUNTS),
        rule=_missing,
    ),
    Check(
        id="recovery_action",
        title="Recovery that the driver asks for",
        severity=Severity.FATAL,
        meaning="The driver says itself that a GPU has to be reset, or the host rebooted.",
        fix="Drain the host and do it: nvidia-smi --gpu-reset -i GPU, or reboot",
        sources=(Source.NVML, Source.NVIDIA_SMI),
        rule=for_each_gpu(_recovery, "no GPU tells a recovery action"),
    ),
)
