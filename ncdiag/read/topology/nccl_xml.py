"""NCCL's and RCCL's topology XML (``NCCL_TOPO_DUMP_FILE``, ``NCCL_TOPO_FILE``)."""

import math
import re
from functools import lru_cache

from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    GpuLink,
    GpuLinkKind,
    NcclTopology,
    NotATopologyError,
    PciDevice,
    TruncatedTopologyError,
)
from ncdiag.read.topology.text import bus_id, integer, number
from ncdiag.read.topology.xml_elements import Element

# PCI base classes (PCI Code and ID Assignment): network 02, display 03; AMD's later accelerators
# are 12, processing accelerators.
NETWORK_CLASS = 0x02
GPU_CLASSES = (0x03, 0x12)

# NCCL takes 640 nodes of a kind (NCCL_TOPO_MAX_NODES, src/include/graph.h, 2.30).
_MOST_OF_A_KIND = 640
_MOST_PCI = 4096

_GIGATRANSFERS = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*GT/s", re.IGNORECASE)


def read(root: Element) -> NcclTopology:
    """Return what the ``system`` element holds; unknown elements and attributes are left out.

    Raises ``TruncatedTopologyError`` if there is nothing in it, ``NotATopologyError`` if what is
    in it is of no topology.
    """
    collector = _Collector()
    for child in root.children:
        collector.visit(child, None, None)
    if not collector.cpus:
        if root.children:
            raise NotATopologyError("XML <system> without a <cpu>: of another program")
        raise TruncatedTopologyError("cut short: <system> with nothing in it")
    return bounded(
        cpus=tuple(collector.cpus),
        pci=tuple(collector.pci),
        gpus=tuple(collector.gpus) or _gpus_by_class(collector.pci),
        adapters=tuple(collector.adapters) or _adapters_by_class(collector.pci),
        pci_peer_links=tuple(collector.peer_links),
        version=root.get("version"),
    )


def bounded(
    *,
    cpus: tuple[Cpu, ...],
    pci: tuple[PciDevice, ...],
    gpus: tuple[Gpu, ...],
    adapters: tuple[Adapter, ...],
    pci_peer_links: tuple[tuple[int, str], ...] = (),
    version: str | None = None,
) -> NcclTopology:
    """Return a topology of these, or raise ``NotATopologyError`` where they are too many."""
    if max(len(cpus), len(gpus), len(adapters)) > _MOST_OF_A_KIND or len(pci) > _MOST_PCI:
        raise NotATopologyError(
            f"{len(cpus)} CPUs, {len(pci)} PCI devices, {len(gpus)} GPUs and {len(adapters)} "
            "adapters: more than any topology has"
        )
    return NcclTopology(cpus, pci, gpus, adapters, pci_peer_links, version)


class _Collector:
    """Flattens the tree; each device knows its parent by index."""

    def __init__(self) -> None:
        self.cpus: list[Cpu] = []
        self.pci: list[PciDevice] = []
        self.gpus: list[Gpu] = []
        self.adapters: list[Adapter] = []
        self.peer_links: list[tuple[int, str]] = []
        self._outside: int | None = None

    def visit(self, element: Element, cpu: int | None, pci: int | None) -> None:
        """Take ``element``, below a CPU and a PCI device or neither, and all that it holds."""
        match element.name:
            case "cpu":
                self.cpus.append(_cpu(element))
                cpu, pci = len(self.cpus) - 1, None
            case "pci":
                cpu = self._cpu_index(cpu)
                self.pci.append(_pci(element, cpu, pci))
                pci = len(self.pci) - 1
            case "gpu":
                cpu = self._cpu_index(cpu)
                if pci is None:
                    self.pci.append(PciDevice(cpu=cpu))
                    pci = len(self.pci) - 1
                self.gpus.append(_gpu(element, pci))
                return
            case "net":
                self.adapters.append(_adapter(element, self._cpu_index(cpu), pci))
                return
            case "pcilink":
                target = bus_id(element.get("target"))
                if pci is not None and target is not None:
                    self.peer_links.append((pci, target))
                return
            case "nic":
                pass
            case _:
                return
        for child in element.children:
            self.visit(child, cpu, pci)

    def _cpu_index(self, cpu: int | None) -> int:
        """Return ``cpu``; for a device outside of every CPU, one of which nothing is known."""
        if cpu is not None:
            return cpu
        if self._outside is None:
            self.cpus.append(Cpu(numa=None))
            self._outside = len(self.cpus) - 1
        return self._outside


def _cpu(element: Element) -> Cpu:
    return Cpu(
        numa=integer(element.get("numaid")),
        arch=_said(element, "arch"),
        vendor=_said(element, "vendor"),
        family_id=integer(element.get("familyid")),
        model_id=integer(element.get("modelid")),
        affinity=_said(element, "affinity"),
        host_hash=_said(element, "host_hash"),
    )


def _pci(element: Element, cpu: int, parent: int | None) -> PciDevice:
    speed = element.get("link_speed")
    lanes = integer(element.get("link_width"))
    return PciDevice(
        cpu=cpu,
        parent=parent,
        busid=bus_id(element.get("busid")),
        pci_class=integer(element.get("class"), 16),
        vendor=_said(element, "vendor"),
        device=_said(element, "device"),
        subsystem_vendor=_said(element, "subsystem_vendor"),
        subsystem_device=_said(element, "subsystem_device"),
        link_speed=speed,
        gigatransfers_per_s=_gigatransfers_per_s(speed),
        lanes=lanes if lanes is not None and lanes >= 0 else None,
    )


@lru_cache(maxsize=64)
def _gigatransfers_per_s(speed: str | None) -> float | None:
    match = _GIGATRANSFERS.match(speed or "")
    return number(match[1]) if match else None


def _gpu(element: Element, pci: int) -> Gpu:
    links: list[GpuLink] = []
    c2c: list[float] = []
    for child in element.children:
        count = _count(child.get("count"))
        if child.name in {"nvlink", "xgmi"}:
            links.append(_link(child.name, child.get("target"), count, child.get("tclass")))
        elif child.name == "c2c":
            # MB/s of one link (src/graph/topo.cc).
            rate = number(child.get("bw"))
            if rate is not None and count is not None:
                c2c.append(rate * count / 1000)
    return Gpu(
        pci=pci,
        index=integer(element.get("dev")),
        sm=_said(element, "sm"),
        rank=integer(element.get("rank")),
        gdr=_flag(element, "gdr"),
        mlopart=integer(element.get("mlopart")),
        gcn=_said(element, "gcn"),
        links=tuple(links),
        c2c_gb_per_s=_finite(sum(c2c)) if c2c else None,
    )


def _count(text: str | None) -> int | None:
    """Return a number of links; ``None`` for what is none, or below nought."""
    count = integer(text)
    return None if count is None or count < 0 else count


@lru_cache(maxsize=4096)  # the hosts of a fleet have the same few links
def _link(kind: str, target: str | None, count: int | None, target_class: str | None) -> GpuLink:
    return GpuLink(GpuLinkKind(kind), bus_id(target), count, integer(target_class, 16))


def _adapter(element: Element, cpu: int, pci: int | None) -> Adapter:
    speed = number(element.get("speed"))
    return Adapter(
        name=_said(element, "name"),
        cpu=cpu,
        pci=pci,
        index=integer(element.get("dev")),
        # Mbit/s in the file.
        speed_gbit_per_s=None if speed is None else speed / 1000,
        port=integer(element.get("port")),
        guid=_said(element, "guid"),
        gdr=_flag(element, "gdr"),
        latency_us=number(element.get("latency")),
        max_connections=integer(element.get("maxconn")),
        is_used_by_nccl=_flag(element, "net"),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _said(element: Element, name: str) -> str | None:
    """Return an attribute that says something; blanks belong to some CPU vendors' names."""
    value = element.get(name)
    return value if value and value.strip() else None


def _flag(element: Element, name: str) -> bool | None:
    value = integer(element.get(name))
    return None if value is None else value != 0


def _gpus_by_class(pci: list[PciDevice]) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(pci=index, has_element=False)
        for index, device in enumerate(pci)
        if device.pci_class is not None and device.pci_class >> 16 in GPU_CLASSES
    )


def _adapters_by_class(pci: list[PciDevice]) -> tuple[Adapter, ...]:
    return tuple(
        Adapter(name=None, cpu=device.cpu, pci=index, has_element=False)
        for index, device in enumerate(pci)
        if device.pci_class is not None and device.pci_class >> 16 == NETWORK_CLASS
    )
