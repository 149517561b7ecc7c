"""GPUs, adapters, NVSwitches and drives on the PCIe bus, and the bridges above them, from sysfs."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ncdiag.health.nics import PCI_ADDRESS
from ncdiag.health.sources.acs import WHOLE, acs_redirects
from ncdiag.health.sources.found import Found, absent, read
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.values import hexadecimal, whole_number
from ncdiag.health.topology.pcie_links import best_link, link_of
from ncdiag.model.gpu_parts import LinkCapability
from ncdiag.model.health import PciDevice, PciKind

_DEVICES: Final = "/sys/bus/pci/devices"
# Devices of a host with eight GPUs number some hundreds; virtual functions come on top.
_MOST_DEVICES: Final = 8192
_NVIDIA, _AMD, _INTEL = 0x10DE, 0x1002, 0x8086
# PCI Code and ID Assignment Specification: base class and subclass.
_VGA, _ACCELERATOR_3D = 0x0300, 0x0302
_NVME, _BRIDGE, _OTHER_BRIDGE = 0x0108, 0x0604, 0x0680
_NETWORK_BASE, _ACCELERATOR_BASE = 0x02, 0x12
_NAMED_BY: Final[Mapping[PciKind, tuple[str, ...]]] = {
    PciKind.NIC: ("infiniband", "net"),
    PciKind.NVME: ("nvme",),
}
_TOTAL: Final = re.compile(r"^TOTAL_ERR_\w{1,16} (\d{1,19})$", re.ASCII | re.MULTILINE)
_AER: Final = ("correctable", "nonfatal", "fatal")


@dataclass(frozen=True, slots=True)
class _Seen:
    """A device, and the addresses of the bridges above it, the nearest last."""

    address: str
    kind: PciKind
    vendor: str | None
    above: tuple[str, ...]


def collect(root: HostRoot) -> Found:
    """All such devices by their addresses."""
    seen = [
        one
        for name in root.names(_DEVICES)[:_MOST_DEVICES]
        if PCI_ADDRESS.fullmatch(name) and (one := _look(root, name))
    ]
    if not seen:
        return absent("no PCIe devices of interest")
    # Of bridges those matter that traffic between GPUs and adapters passes. A recorded folder may
    # not tell which those are.
    above = {bridge for one in seen if one.kind is not PciKind.BRIDGE for bridge in one.above}
    kept = (one for one in seen if one.kind is not PciKind.BRIDGE or one.address in above)
    return read(pci_devices=tuple(_device(root, one) for one in (kept if above else seen)))


def _look(root: HostRoot, address: str) -> _Seen | None:
    folder = f"{_DEVICES}/{address}"
    vendor = hexadecimal(root.text(f"{folder}/vendor"))
    kind = kind_of(hexadecimal(root.text(f"{folder}/class")), vendor)
    if kind is None or root.exists(f"{folder}/physfn"):  # a virtual function has no link of its own
        return None
    parts = os.path.realpath(root.path(folder)).split("/")[:-1]
    above = tuple(part for part in parts if PCI_ADDRESS.fullmatch(part))
    return _Seen(address, kind, None if vendor is None else f"0x{vendor:04x}", above)


def kind_of(class_code: int | None, vendor: int | None) -> PciKind | None:
    """What a device is to us by its class code of 24 bits; ``None`` for everything else."""
    if class_code is None:
        return None
    base, both = class_code >> 16, class_code >> 8
    # A display is a GPU where it is of those who make GPUs for computing, and no console.
    is_display = both == _VGA and vendor in {_NVIDIA, _AMD}
    if is_display or both == _ACCELERATOR_3D or (base == _ACCELERATOR_BASE and vendor != _INTEL):
        return PciKind.GPU
    if base == _NETWORK_BASE:
        return PciKind.NIC
    if both == _OTHER_BRIDGE and vendor == _NVIDIA:
        return PciKind.NVSWITCH
    return {_NVME: PciKind.NVME, _BRIDGE: PciKind.BRIDGE}.get(both)


def _device(root: HostRoot, one: _Seen) -> PciDevice:
    folder = f"{_DEVICES}/{one.address}"
    is_bridge = one.kind is PciKind.BRIDGE
    return PciDevice(
        address=one.address,
        kind=one.kind,
        vendor=one.vendor,
        name=_name(root, folder, one.kind),
        driver=None if is_bridge else root.target(f"{folder}/driver")[:64] or None,
        link=None if is_bridge else _link(root, folder, one.above),
        aer=_aer(root, folder),
        acs_redirects=_acs(root, folder) if is_bridge else None,
    )


def _name(root: HostRoot, folder: str, kind: PciKind) -> str | None:
    for by in _NAMED_BY.get(kind, ()):
        if names := root.names(f"{folder}/{by}"):
            return names[0]
    return None


def _link(root: HostRoot, folder: str, above: tuple[str, ...]) -> LinkCapability | None:
    """The link as it runs, and the most that the device and the port above it can both do."""

    def end(of: str, which: str) -> tuple[str | None, str | None]:
        return root.text(f"{of}/{which}_link_speed"), root.text(f"{of}/{which}_link_width")

    current, own = link_of(*end(folder, "current")), link_of(*end(folder, "max"))
    slot = link_of(*(end(f"{_DEVICES}/{above[-1]}", "max") if above else (None, None)))
    best = best_link(own, slot)
    link = LinkCapability(
        current_gigatransfers_per_s=current.gigatransfers_per_s,
        current_lanes=current.lanes,
        max_gigatransfers_per_s=best.gigatransfers_per_s,
        max_lanes=best.lanes,
    )
    return None if link == LinkCapability() else link


def _aer(root: HostRoot, folder: str) -> dict[str, int]:
    """The sums of errors; nothing where the kernel does not handle them."""
    found: dict[str, int] = {}
    for name in _AER:
        total = _TOTAL.search(root.text(f"{folder}/aer_dev_{name}") or "")
        number = whole_number(total[1]) if total else None
        if number is not None:
            found[name] = number
    return found


def _acs(root: HostRoot, folder: str) -> bool | None:
    try:
        return acs_redirects(root.read(f"{folder}/config", WHOLE))
    except OSError:
        return None
