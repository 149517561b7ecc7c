"""A topology as the graph NCCL builds of it, and NCCL's search (src/graph/topo.cc, paths.cc)."""

from dataclasses import dataclass
from enum import Enum, auto

from ncdiag.expect.gpu_links import link_gb_per_s, to_switch
from ncdiag.expect.nccl_links import (
    LOCAL_GB_PER_S,
    between_cpus_gb_per_s,
    pcie_gb_per_s_as_nccl,
)
from ncdiag.expect.path_type import PathType
from ncdiag.expect.places import cpu_name, host_of, pci_name
from ncdiag.model.topology import Gpu, NcclTopology, PciDevice

# POWER's NVLink to the CPU.
_NVLINK_CPU_CLASS = 0x068001
# Broadcom switches that show themselves as two levels: vendor, device, subsystem vendor, and of the
# subsystem device the bits of the mask, at the upper and at the lower level (getBcmGen).
_BROADCOM = (
    ((0x1000, 0xC010, 0x1000), 0xA000, 0xA000),
    ((0x1000, 0xC030, 0x1000), 0x0000, 0x1000),
)


class _Node(Enum):
    """What a node is; a GPU passes nothing on, except over NVLink."""

    CPU = auto()
    SWITCH = auto()
    GPU = auto()
    ADAPTER = auto()
    NVSWITCH = auto()


@dataclass(slots=True)
class _Link:
    """One direction of a link; the types of NVLink, C2C, PCIe and between CPUs are path types."""

    to: int
    type: PathType
    gb_per_s: float
    upwards: bool = False


@dataclass(slots=True)
class Reach:
    """How the search came to a node."""

    type: PathType = PathType.DIS
    gb_per_s: float = 0.0
    hops: int = 0
    before: int | None = None


class NcclGraphView:
    """Nodes and links: the CPUs first, then the PCI devices, then one for all NVSwitches."""

    def __init__(self, topology: NcclTopology) -> None:
        self._topology = topology
        self._cpus = len(topology.cpus)
        self._switch = self._cpus + len(topology.pci)
        self._kinds = [_Node.CPU] * self._cpus + [_Node.SWITCH] * len(topology.pci)
        self._kinds.append(_Node.NVSWITCH)
        for adapter in topology.adapters:
            if adapter.pci is not None:
                self._kinds[self.pci_node(adapter.pci)] = _Node.ADAPTER
        for gpu in topology.gpus:
            self._kinds[self.pci_node(gpu.pci)] = _Node.GPU
        self._by_busid = {
            (host_of(topology, device.cpu), device.busid): self.pci_node(place)
            for place, device in reversed(list(enumerate(topology.pci)))
            if device.busid is not None
        }
        self._links: list[list[_Link]] = [[] for _ in self._kinds]
        self._connect_pci()
        for gpu in topology.gpus:
            self._connect_gpu(gpu)
        self._connect_cpus()
        for links in self._links:
            links.sort(key=lambda link: (link.upwards, -link.gb_per_s))

    def pci_node(self, pci: int) -> int:
        """Return the node of a PCI device."""
        return self._cpus + pci

    def name(self, node: int) -> str:
        """Return a node as it is spoken of."""
        if node < self._cpus:
            return cpu_name(self._topology, node)
        if node == self._switch:
            return "NVSwitch"
        return pci_name(self._topology, node - self._cpus)

    def search(self, base: int) -> list[Reach]:
        """Return how each node is reached from ``base``, a GPU."""
        reached = [Reach() for _ in self._kinds]
        reached[base] = Reach(PathType.LOC, LOCAL_GB_PER_S)
        current = [base]
        while current:
            following: dict[int, None] = {}
            for node in current:
                for link in self._links[node]:
                    if self._improve(reached, base, node, link):
                        following[link.to] = None
            current = list(following)
        return reached

    def _improve(self, reached: list[Reach], base: int, node: int, link: _Link) -> bool:
        """Reach a neighbour of ``node`` through it, if that is better than what is known."""
        path, there = reached[node], reached[link.to]
        through_gpu = node != base and self._kinds[node] is _Node.GPU
        if through_gpu and (
            link.type is not PathType.NVL or self._kinds[link.to] is not _Node.GPU or path.hops > 1
        ):
            return False
        gb_per_s = min(path.gb_per_s, link.gb_per_s)
        # More of it, over no more links than it took before.
        if gb_per_s <= there.gb_per_s or (there.gb_per_s and there.hops <= path.hops):
            return False
        kind = link.type
        ends = {self._kinds[node], self._kinds[link.to]}
        if ends == {_Node.SWITCH}:
            kind = PathType.PXB
        elif kind is PathType.PIX and _Node.CPU in ends:
            kind = PathType.PHB
        if through_gpu and path.type is PathType.NVL:
            kind = PathType.NVB
        reached[link.to] = Reach(max(path.type, kind), gb_per_s, path.hops + 1, node)
        return True

    def _connect(self, one: int, other: int, kind: PathType, gb_per_s: float) -> None:
        """Add one direction; links of the same kind between the same two are one."""
        for link in self._links[one]:
            if link.to == other and link.type is kind:
                link.gb_per_s = round(link.gb_per_s + gb_per_s, 4)
                return
        self._links[one].append(_Link(other, kind, round(gb_per_s, 4)))

    def _connect_pci(self) -> None:
        topology = self._topology
        parents = _flattened(topology.pci)
        for pci, device in enumerate(topology.pci):
            if pci not in parents:
                continue
            parent = parents[pci]
            above = device.cpu if parent is None else self.pci_node(parent)
            gb_per_s = pcie_gb_per_s_as_nccl(device)
            self._links[self.pci_node(pci)].append(
                _Link(above, PathType.PIX, gb_per_s, upwards=True)
            )
            self._links[above].append(_Link(self.pci_node(pci), PathType.PIX, gb_per_s))
        for pci, target in topology.pci_peer_links:
            other = self._by_busid.get((host_of(topology, topology.pci[pci].cpu), target))
            if other is not None and pci in parents and other - self._cpus in parents:
                self._connect(self.pci_node(pci), other, PathType.LOC, LOCAL_GB_PER_S)

    def _connect_gpu(self, gpu: Gpu) -> None:
        topology, node = self._topology, self.pci_node(gpu.pci)
        cpu = topology.pci[gpu.pci].cpu
        here = host_of(topology, cpu)
        for link in gpu.links:
            rate = link_gb_per_s(gpu, link.kind)
            gb_per_s = (rate or 0.0) * (link.count or 0)
            if gb_per_s <= 0:
                continue
            if to_switch(link):
                self._connect(node, self._switch, PathType.NVL, gb_per_s)
                self._connect(self._switch, node, PathType.NVL, gb_per_s)
            elif link.target_class == _NVLINK_CPU_CLASS:
                self._connect(node, cpu, PathType.NVL, gb_per_s)
                self._connect(cpu, node, PathType.NVL, gb_per_s)
            else:
                target = self._by_busid.get((here, link.target or ""))
                if target not in {None, node} and self._kinds[target] is _Node.GPU:
                    self._connect(node, target, PathType.NVL, gb_per_s)
        if gpu.c2c_gb_per_s:
            self._connect(node, cpu, PathType.C2C, gpu.c2c_gb_per_s)
            self._connect(cpu, node, PathType.C2C, gpu.c2c_gb_per_s)

    def _connect_cpus(self) -> None:
        topology = self._topology
        for one, cpu in enumerate(topology.cpus):
            gb_per_s = between_cpus_gb_per_s(cpu) or LOCAL_GB_PER_S
            for other in range(self._cpus):
                if one != other and host_of(topology, one) == host_of(topology, other):
                    self._links[one].append(_Link(other, PathType.SYS, gb_per_s))


def _flattened(pci: tuple[PciDevice, ...]) -> dict[int, int | None]:
    """Return the parent of each PCI device once the lower halves of switches are taken out."""
    parents = {place: device.parent for place, device in enumerate(pci)}
    below: dict[int, list[int]] = {}
    for place, parent in parents.items():
        if parent is not None:
            below.setdefault(parent, []).append(place)
    for upper, device in enumerate(pci):
        family = _broadcom(device, 0)
        if upper not in parents or family is None:
            continue
        kept: list[int] = []
        for place in below.get(upper, ()):
            if _broadcom(pci[place], 1) == family:
                kept += below.get(place, ())
                del parents[place]
            else:
                kept.append(place)
        below[upper] = kept
        parents.update(dict.fromkeys(kept, upper))
    return parents


def _broadcom(device: PciDevice, level: int) -> int | None:
    """Return which of the two-level switches ``device`` is, at the upper (0) or lower level."""
    if device.pci_class is None or device.pci_class >> 16 in {0x02, 0x03}:
        return None
    fields = (device.vendor, device.device, device.subsystem_vendor, device.subsystem_device)
    numbers = [_hexadecimal(field) for field in fields]
    for family, (known, *levels) in enumerate(_BROADCOM):
        if tuple(numbers[:3]) == known and numbers[3] & 0xF000 == levels[level]:
            return family
    return None


def _hexadecimal(text: str | None) -> int:
    try:
        return int(text or "0", 16)
    except ValueError:
        return 0
