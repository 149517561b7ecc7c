"""PCIe: links as wide and fast as they can be, errors, and what stands in the way of peers."""

from collections.abc import Iterator

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    Case,
    Check,
    Outcome,
    Silent,
    Trip,
    answering_gpus,
    for_each,
    for_each_gpu,
    gpu_before,
    pci_key,
    quoted,
    risen,
)
from ncdiag.model.finding import FindingClass
from ncdiag.model.gpu_parts import LinkCapability
from ncdiag.model.health import GpuHealth, PciDevice, PciKind, Severity, Source
from ncdiag.model.host import IDLE_GIGATRANSFERS_PER_S
from ncdiag.model.units import format_count

_WATCHED = (PciKind.GPU, PciKind.NIC, PciKind.NVME, PciKind.NVSWITCH)
# The widest link that PCI Express knows; virtual bridges tell more, or nonsense.
_MOST_LANES = 32
# Chips whose CPU and GPU share memory through the IOMMU, by design.
_COHERENT = ("GH200", "GB200", "GB300", "MI300A")


def device_name(device: PciDevice) -> str:
    """``mlx5_0`` or ``nvme0`` where the driver names it, else the address."""
    return device.name or device.address


def _downtrained(device: PciDevice, case: Case) -> list[Trip] | None:
    link = device.link or _of_gpu(device, case)
    if link is None or device.kind not in _WATCHED:
        return None
    width, speed = _width(link), _speed(link)
    if width is None and speed is None:
        return None
    if width:
        now, most = f"x{link.current_lanes}", f"x{link.max_lanes}"
        return [Trip(text=width, severity=_weight(device, case), measured=now, limit=most)]
    if speed and not _saves_power(device, link):
        worst = Severity.WARNING if device.kind is PciKind.GPU else _weight(device, case)
        now = f"{link.current_gigatransfers_per_s:g} GT/s"
        most = f"{link.max_gigatransfers_per_s:g} GT/s"
        return [Trip(text=speed, severity=worst, measured=now, limit=most)]
    return []


def _of_gpu(device: PciDevice, case: Case) -> LinkCapability | None:
    if device.kind is not PciKind.GPU:
        return None
    key = pci_key(device.address)
    return next((gpu.pcie for gpu in case.facts.gpus if pci_key(gpu.pci_address) == key), None)


def _width(link: LinkCapability) -> str | None:
    """What is wrong with the width; empty where nothing is, ``None`` where it is not known."""
    now, most = link.current_lanes, link.max_lanes
    if now is None or most is None or not 0 < now <= _MOST_LANES or not 0 < most <= _MOST_LANES:
        return None
    return f"runs x{now}, both ends can do x{most}" if now < most else ""


def _speed(link: LinkCapability) -> str | None:
    now, most = link.current_gigatransfers_per_s, link.max_gigatransfers_per_s
    if now is None or most is None or now <= 0 or most <= 0:
        return None
    return f"runs at {now:g} GT/s, both ends can do {most:g} GT/s" if now < most else ""


def _saves_power(device: PciDevice, link: LinkCapability) -> bool:
    """An idle GPU falls back to the first generation; under load it comes back by itself.

    The link of an NVSwitch is for its management alone.
    """
    return device.kind in {PciKind.GPU, PciKind.NVSWITCH} and link.current_gigatransfers_per_s == (
        IDLE_GIGATRANSFERS_PER_S
    )


def _weight(device: PciDevice, case: Case) -> Severity:
    """A fault where jobs depend on it: GPUs, and adapters that RDMA or the hosts file uses."""
    if device.kind is PciKind.GPU:
        return Severity.FAULT
    key = pci_key(device.address)
    rdma = any(pci_key(port.pci_address) == key for port in case.facts.ib_ports)
    named = any(
        port.name in case.expected.nics and pci_key(port.pci_address) == key
        for port in case.facts.ethernet_ports
    )
    return Severity.FAULT if device.kind is PciKind.NIC and (rdma or named) else Severity.WARNING


def _aer(device: PciDevice, case: Case) -> list[Trip] | None:
    if not device.aer:
        return None
    before = _aer_before(device, case)
    rose = {kind: risen(count, before.get(kind)) for kind, count in device.aer.items()}
    trips = []
    for kind, alone, rising in (
        ("fatal", Severity.WARNING, Severity.FAULT),
        ("nonfatal", Severity.NOTE, Severity.WARNING),
    ):
        count, more = device.aer.get(kind, 0), rose.get(kind, 0)
        if count > 0:
            text = f"{count:,} {kind} PCIe errors" + (f", {more:,} of them new" if more else "")
            trips.append(Trip(text=text, severity=rising if more else alone, measured=str(count)))
    corrected = rose.get("correctable", 0)
    rate, most = case.per_hour(corrected), case.limits.corrected_pcie_per_h
    if corrected >= case.limits.least_errors and rate > most:
        text = f"{corrected:,} PCIe errors were corrected between two readings"
        measured, limit = f"{rate:,.0f}/h", f"{most:,.0f}/h"
        trips.append(Trip(text=text, severity=Severity.WARNING, measured=measured, limit=limit))
    return trips


def _aer_before(device: PciDevice, case: Case) -> dict[str, int]:
    devices = case.before.pci_devices if case.before else ()
    return next((dict(one.aer) for one in devices if one.address == device.address), {})


def _replays(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    earlier = gpu_before(gpu, case)
    if gpu.pcie_replays is None or earlier is None or earlier.pcie_replays is None:
        return None
    rose = risen(gpu.pcie_replays, earlier.pcie_replays)
    rate, most = case.per_hour(rose), case.limits.pcie_replays_per_h
    if rose < case.limits.least_errors or rate <= most:
        return []
    text = f"PCIe packets were sent again {rose:,} times between two readings"
    return [Trip(text=text, measured=f"{rate:,.0f}/h", limit=f"{most:,.0f}/h")]


def _acs(case: Case) -> Iterator[Outcome]:
    told = [d for d in case.facts.pci_devices if d.acs_redirects is not None]
    if not told:
        yield Silent("no bridge tells whether it redirects traffic")
        return
    if not _has_peers(case):
        yield Silent("no two devices here that would talk to each other over PCIe")
        return
    wrong = [device for device in told if device.acs_redirects]
    if wrong:
        names = ", ".join(quoted(device.address) for device in wrong[:4])
        more = " ..." if len(wrong) > 4 else ""
        send = "sends" if len(wrong) == 1 else "send"
        yield Trip(
            text=f"{format_count(len(wrong), 'PCIe bridge')} {send} traffic between peers up to "
            f"the processor: {names}{more}"
        )


def _has_peers(case: Case) -> bool:
    gpus = len(answering_gpus(case))
    return gpus > 1 or (gpus == 1 and bool(case.facts.ib_ports))


def _iommu(case: Case) -> Iterator[Outcome]:
    mode = case.facts.settings.get("iommu")
    if mode is None:
        yield Silent("the kernel does not tell how its IOMMU is set")
        return
    gpus = answering_gpus(case)
    if not gpus or any(chip in (gpu.name or "").upper() for gpu in gpus for chip in _COHERENT):
        yield Silent("no GPU here that the IOMMU would slow down")
        return
    if mode == "on":
        text = "the IOMMU translates what devices read and write"
        yield Trip(text=text, measured="on", limit="passthrough")


CHECKS = (
    Check(
        id="pcie_downtrained",
        title="PCIe link below its best",
        severity=Severity.FAULT,
        meaning="A link runs narrower or slower than both its ends can. An idle GPU slows its link "
        "down to save power: that is no finding.",
        fix="lspci -vvv -s ADDRESS | grep LnkSta; reseat the device and its riser; then replace",
        sources=(Source.PCIE,),
        also=(*GPU_SOURCES, Source.INFINIBAND, Source.ETHERNET),
        rule=for_each(
            lambda case: case.facts.pci_devices,
            device_name,
            _downtrained,
            "no GPU, adapter or drive tells its PCIe link",
        ),
        class_=FindingClass.PCIE_ERROR,
    ),
    Check(
        id="pcie_aer",
        title="PCIe errors",
        severity=Severity.FAULT,
        meaning="A device or bridge counted errors since boot. Fatal ones that come between two "
        "readings are a fault; corrected ones matter only in numbers.",
        fix="dmesg -T | grep -iE 'aer|dpc'; reseat device and riser, then replace",
        sources=(Source.PCIE,),
        rule=for_each(
            lambda case: case.facts.pci_devices, device_name, _aer, "no device counts PCIe errors"
        ),
        class_=FindingClass.PCIE_ERROR,
    ),
    Check(
        id="gpu_pcie_replays",
        title="PCIe replays of GPUs",
        severity=Severity.WARNING,
        meaning="Packets between host and GPU have to be sent again: slot, riser or cable is bad.",
        fix="nvidia-smi -q -d PCIE; reseat the GPU and its riser",
        sources=GPU_SOURCES,
        rule=for_each_gpu(_replays, "needs two readings of PCIe replays"),
        class_=FindingClass.PCIE_ERROR,
    ),
    Check(
        id="acs_enabled",
        title="ACS",
        severity=Severity.WARNING,
        meaning="Access Control Services of a bridge send traffic between GPUs, or GPU and "
        "adapter, through the processor: GPUDirect is slow. Virtual machines need it that way.",
        fix="Disable ACS in the BIOS, or with setpci at boot; in virtual machines enable ATS",
        sources=(Source.PCIE,),
        also=(*GPU_SOURCES, Source.INFINIBAND),
        rule=_acs,
        configuration=True,
    ),
    Check(
        id="iommu_on",
        title="IOMMU",
        severity=Severity.WARNING,
        meaning="Every access of a device is translated: GPUDirect RDMA is slow, or fails.",
        fix="Boot with iommu=pt, or switch the IOMMU off in the BIOS",
        sources=(Source.PROC,),
        also=GPU_SOURCES,
        rule=_iommu,
        configuration=True,
    ),
)
