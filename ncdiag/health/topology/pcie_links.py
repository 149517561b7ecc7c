"""The PCIe links of a host's GPUs and adapters as they run now, against what they could be.

A topology dump of NCCL does not show a link that came up too narrow or too slow: for all but GPUs
it holds the most that device and slot can do.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ncdiag.health.sysfs import read_text
from ncdiag.model.json_text import encode
from ncdiag.model.topology import NotATopologyError, TopologyFinding, TopologySeverity

SCHEMA: Final = "ncdiag/pcie-links/1"
KIND: Final = "pcie-links"

# PCI base classes (PCI Code and ID Assignment specification): network 02, display 03, processing
# accelerator 12.
_GPU_CLASSES: Final = (0x03, 0x12)
_NETWORK_CLASS: Final = 0x02
_BUS_ID: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# "16.0 GT/s PCIe", in older kernels "16 GT/s"; "Unknown" for what has no link.
_SPEED: Final = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s")
_MOST_LANES: Final = 32  # an unknown width reads as 255


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One end of a PCIe link: GT/s of a lane, and lanes; ``None`` where the kernel cannot say."""

    gigatransfers_per_s: float | None = None
    lanes: int | None = None


class PcieDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or adapter; ``slot`` is the most that the port above it can do."""

    busid: str
    gpu: bool
    names: tuple[str, ...] = ()
    vendor: str | None = None
    device: str | None = None
    current: Link = Link()
    maximum: Link = Link()
    slot: Link = Link()


class PcieLinks(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs and adapters of one host that have a PCIe link."""

    schema: str = SCHEMA
    devices: tuple[PcieDevice, ...] = ()


def collect_links(root: Path = Path("/")) -> PcieLinks:
    """The links of this host from sysfs; ``root`` stands in for the real system in tests."""
    folder = root / "sys/bus/pci/devices"
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        entries = []
    return PcieLinks(devices=tuple(found for one in entries if (found := _device(one))))


def encode_links(links: PcieLinks) -> bytes:
    """The links as a file holds them."""
    return encode(links, indent=1) + b"\n"


def decode_links(data: bytes) -> PcieLinks:
    """The links in a file; raises ``NotATopologyError``."""
    try:
        links = msgspec.json.decode(data, type=PcieLinks)
    except msgspec.MsgspecError as error:
        raise NotATopologyError(f"not PCIe links as ncdiag writes them: {error}") from None
    if links.schema != SCHEMA:
        raise NotATopologyError(f"not PCIe links of schema {SCHEMA}")
    return links


def check_links(links: PcieLinks) -> tuple[TopologyFinding, ...]:
    """Links that run below what both of their ends can do."""
    return tuple(finding for device in links.devices for finding in _check(device))


def _check(device: PcieDevice) -> Iterator[TopologyFinding]:
    best = best_link(device.maximum, device.slot)
    now = device.current
    called = f" ({', '.join(device.names)})" if device.names else ""
    if now.lanes is not None and best.lanes is not None and now.lanes < best.lanes:
        yield TopologyFinding(
            name="pcie_downgraded_width",
            severity=TopologySeverity.DEGRADED,
            where=device.busid,
            explanation=f"{device.busid}{called} runs with {now.lanes} lanes; it and its slot can "
            f"both do {best.lanes}",
        )
    speed, most = now.gigatransfers_per_s, best.gigatransfers_per_s
    if speed is not None and most is not None and speed < most:
        # A GPU saves power by a slower link while nothing uses it.
        idle = "; an idle GPU lowers its speed, so look again under load" if device.gpu else ""
        yield TopologyFinding(
            name="pcie_downgraded_speed",
            severity=TopologySeverity.INFO if device.gpu else TopologySeverity.DEGRADED,
            where=device.busid,
            explanation=f"{device.busid}{called} runs at {speed:g} GT/s; it and its slot can "
            f"both do {most:g} GT/s{idle}",
        )
    if now.lanes is None and now.gigatransfers_per_s is None:
        yield TopologyFinding(
            name="pcie_unknown",
            severity=TopologySeverity.INFO,
            where=device.busid,
            explanation=f"the kernel does not say how the link of {device.busid}{called} runs",
        )


def best_link(own: Link, slot: Link) -> Link:
    """What a link should come up with: the most that both of its ends can do."""
    speeds = [one.gigatransfers_per_s for one in (own, slot) if one.gigatransfers_per_s is not None]
    lanes = [one.lanes for one in (own, slot) if one.lanes is not None]
    return Link(
        gigatransfers_per_s=min(speeds) if own.gigatransfers_per_s is not None else None,
        lanes=min(lanes) if own.lanes is not None else None,
    )


def _device(path: Path) -> PcieDevice | None:
    """A GPU or adapter with a link of its own; a virtual function has none."""
    base = (_hexadecimal(path / "class") or 0) >> 16
    gpu = base in _GPU_CLASSES
    if not (gpu or base == _NETWORK_CLASS) or not _BUS_ID.fullmatch(path.name):
        return None
    if (path / "physfn").exists() or not (path / "max_link_speed").exists():
        return None
    return PcieDevice(
        busid=path.name,
        gpu=gpu,
        names=_names(path),
        vendor=read_text(path / "vendor"),
        device=read_text(path / "device"),
        current=_link(path, "current"),
        maximum=_link(path, "max"),
        slot=_link(path.resolve().parent, "max"),
    )


def _names(path: Path) -> tuple[str, ...]:
    """What programs call it: the names of its RDMA devices, else of its interfaces."""
    for kind in ("infiniband", "net"):
        with contextlib.suppress(OSError):
            if names := sorted(one.name for one in (path / kind).iterdir()):
                return tuple(names)
    return ()


def _link(path: Path, which: str) -> Link:
    speed, width = read_text(path / f"{which}_link_speed"), read_text(path / f"{which}_link_width")
    return link_of(speed, width)


def link_of(speed_text: str | None, width_text: str | None) -> Link:
    """One end of a link from what stands in its two files of sysfs."""
    speed = _SPEED.match(speed_text or "")
    width = width_text or ""
    lanes = int(width) if re.fullmatch(r"\d{1,3}", width, re.ASCII) else 0
    return Link(
        gigatransfers_per_s=float(speed[1]) if speed else None,
        lanes=lanes if 0 < lanes <= _MOST_LANES else None,
    )


def _hexadecimal(path: Path) -> int | None:
    text = read_text(path) or ""
    return int(text, 16) if re.fullmatch(r"0x[0-9a-f]{1,8}", text) else None
