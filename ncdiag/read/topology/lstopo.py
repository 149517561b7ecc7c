"""hwloc's XML (``lstopo --of xml``), versions 1 to 3: NUMA nodes and PCI tree, no GPU links."""

import re

from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    NcclTopology,
    NotATopologyError,
    PciDevice,
    TruncatedTopologyError,
)
from ncdiag.read.topology.nccl_xml import GPU_CLASSES, NETWORK_CLASS, bounded
from ncdiag.read.topology.text import bus_id, integer
from ncdiag.read.topology.xml_elements import Element

# Display controllers of management processors: ASPEED and Matrox (PCI ID repository).
_CONSOLE_VENDORS = {0x1A03, 0x102B}
# hwloc_obj_osdev_type_t (hwloc.h); hwloc 3 writes names in place of numbers.
_NETWORK = {"2", "Network"}
_OPENFABRICS = {"3", "OpenFabrics"}
_PCI_TYPE = re.compile(r"([0-9a-fA-F]{4})\s*\[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\]")
_PCI_SUBSYSTEM = re.compile(r"\[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\]\s*\[([0-9a-fA-F]{4}):(\w{4})\]")
_GPU_INDEX = re.compile(r"(?:nvml|cuda|rsmi)([0-9]{1,4})")


def read(root: Element) -> NcclTopology:
    """Return the NUMA nodes as CPUs, and the bridges, GPUs and network adapters below them.

    ``link_speed`` is hwloc's figure in GB/s; it does not say generation and lanes. Raises
    ``TruncatedTopologyError`` if there is nothing in the file, ``NotATopologyError`` if what is in
    it is not hwloc's.
    """
    if not root.children:
        raise TruncatedTopologyError("cut short: <topology> with nothing in it")
    collector = _Collector()
    for child in root.children:
        collector.visit(child, None, None)
    if not collector.objects:
        raise NotATopologyError("XML <topology> without an <object>: of another program")
    return bounded(
        cpus=tuple(collector.cpus) or (Cpu(numa=None),),
        pci=tuple(collector.pci),
        gpus=tuple(collector.gpus),
        adapters=tuple(collector.adapters),
    )


class _Collector:
    """Flattens the tree of objects."""

    def __init__(self) -> None:
        self.cpus: list[Cpu] = []
        self.pci: list[PciDevice] = []
        self.gpus: list[Gpu] = []
        self.adapters: list[Adapter] = []
        self.objects = 0
        self._outside: int | None = None

    def visit(self, element: Element, cpu: int | None, pci: int | None) -> None:
        """Take an object, near a CPU and below a PCI device or neither, and all that it holds."""
        if element.name != "object":
            return
        self.objects += 1
        near = _near_node(element)
        if near is not None:
            cpu = self._numa_node(near)
        if element.get("pci_busid") is not None:
            pci = self._device(element, cpu, pci)
        for child in element.children:
            if child is not near:
                self.visit(child, cpu, pci)

    def _numa_node(self, element: Element) -> int:
        affinity = element.get("cpuset")
        self.cpus.append(Cpu(numa=integer(element.get("os_index")), affinity=affinity))
        return len(self.cpus) - 1

    def _device(self, element: Element, cpu: int | None, parent: int | None) -> int:
        if cpu is None:
            cpu = self._outside
        if cpu is None:
            self.cpus.append(Cpu(numa=None))
            cpu = self._outside = len(self.cpus) - 1
        said = element.get("pci_type") or ""
        match = _PCI_TYPE.match(said)
        subsystem = _PCI_SUBSYSTEM.search(said)
        device = PciDevice(
            cpu=cpu,
            parent=parent,
            busid=bus_id(element.get("pci_busid")),
            pci_class=int(match[1], 16) << 8 if match else None,
            vendor=f"0x{match[2].lower()}" if match else None,
            device=f"0x{match[3].lower()}" if match else None,
            subsystem_vendor=f"0x{subsystem[3].lower()}" if subsystem else None,
            subsystem_device=f"0x{subsystem[4].lower()}" if subsystem else None,
            link_speed=element.get("pci_link_speed"),
        )
        self.pci.append(device)
        index = len(self.pci) - 1
        base = None if device.pci_class is None else device.pci_class >> 16
        if base in GPU_CLASSES and match and int(match[2], 16) not in _CONSOLE_VENDORS:
            self.gpus.append(Gpu(pci=index, index=_gpu_index(element), has_element=False))
        elif base == NETWORK_CLASS:
            self.adapters.append(
                Adapter(name=_net_name(element), cpu=cpu, pci=index, has_element=False)
            )
        return index


def _near_node(element: Element) -> Element | None:
    """Return the NUMA node of an object: itself, or in version 2 the one beside its devices."""
    if element.get("type") == "NUMANode":
        return element
    nodes = [child for child in element.children if child.get("type") == "NUMANode"]
    if len(nodes) != 1 or any(child.name == "object" for child in nodes[0].children):
        return None
    return nodes[0]


def _gpu_index(element: Element) -> int | None:
    for child in element.children:
        match = _GPU_INDEX.fullmatch(child.get("name") or "")
        if match:
            return int(match[1])
    return None


def _net_name(element: Element) -> str | None:
    """Return the RDMA device of an adapter, else its interface, as NCCL names it."""
    for kinds in (_OPENFABRICS, _NETWORK):
        for child in element.children:
            if child.get("osdev_type") in kinds and child.get("name"):
                return child.get("name")
    return None
