"""What the rules ask of an NCCL topology: who is above whom, what is called what."""

import re
from dataclasses import dataclass

from ncdiag.model.topology import Adapter, Gpu, NcclTopology, PciDevice

# PCI base class and subclass: 06 bridge, 04 PCI-to-PCI (PCI Code and ID Assignment, 1.11).
PCI_BRIDGE = 0x0604
# NCCL, graph/xml.h: the class it writes for an NVSwitch.
NVSWITCH_CLASS = 0x068000
# Base classes of GPUs: 03 display controller; AMD's Instinct write 12, processing accelerator.
GPU_CLASSES = frozenset({0x03, 0x12})
# Slower ports are for management: 40 Gbit/s is the slowest port that carried collectives (QDR).
LEAST_FABRIC_GBIT_PER_S = 40.0
# Bus ids that no PCI domain has; topology files of virtual machines name invented switches so.
_INVENTED = re.compile(r"f{4,}:")
# Names Linux gives to interfaces that no card is behind.
_VIRTUAL = re.compile(
    r"(?:veth|docker|br-|br\d|bridge|virbr|cali|cni|flannel|cilium|lxc|lxd|vxlan|geneve|gre|tun|tap"
    r"|tunl|wg|vnet|kube-|nodelocaldns|weave|ovs|dummy|macv|ipv)",
    re.IGNORECASE,
)
# Names of network interfaces; RDMA devices are called mlx5_0, rdmap79s0, cxi0, bnxt_re0, irdma0.
_INTERFACE = re.compile(
    r"(?:eth\d|en[opsxbic][a-z0-9]*\d|ib\d|ibp\d|ibs\d|bond\d|team\d|lo$|wl)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Machine:
    """An NCCL topology with the questions the rules have."""

    topology: NcclTopology

    def device(self, owner: Gpu | Adapter) -> PciDevice | None:
        """Return the PCI device of a GPU or an adapter."""
        return None if owner.pci is None else self.topology.pci[owner.pci]

    def host(self, cpu: int) -> str:
        """Return the host hash above ``cpu``; one file may hold several hosts."""
        return self.topology.cpus[cpu].host_hash or ""

    def cpu(self, owner: Gpu | Adapter) -> int:
        """Return the index of the CPU above a GPU or an adapter."""
        return owner.cpu if isinstance(owner, Adapter) else self.topology.pci[owner.pci].cpu

    def above(self, pci: int | None) -> tuple[int, ...]:
        """Return the PCI devices above ``pci``, nearest first."""
        found: list[int] = []
        parent = None if pci is None else self.topology.pci[pci].parent
        while parent is not None and len(found) < len(self.topology.pci):
            found.append(parent)
            parent = self.topology.pci[parent].parent
        return tuple(found)

    def is_bridge(self, pci: int) -> bool:
        """Whether a PCI device is a bridge or a switch."""
        pci_class = self.topology.pci[pci].pci_class
        return pci_class is not None and pci_class >> 8 == PCI_BRIDGE

    def bridges_above(self, pci: int | None) -> tuple[int, ...]:
        """Return the bridges above ``pci``, nearest first."""
        return tuple(index for index in self.above(pci) if self.is_bridge(index))

    def top_bridge(self, pci: int | None) -> int | None:
        """Return the bridge right below the socket: what shares it is at PIX or PXB."""
        return next(iter(self.bridges_above(pci)[-1:]), None)

    def gpu_where(self, gpu: Gpu) -> str:
        """Return what a finding calls ``gpu``: its bus id, or its index."""
        named = f"PCI device {gpu.pci}" if gpu.index is None else f"GPU {gpu.index}"
        return self.topology.busid(gpu) or named

    def gpu_label(self, gpu: Gpu) -> str:
        """Return bus id and index."""
        where = self.gpu_where(gpu)
        return f"{where} (GPU {gpu.index})" if gpu.index is not None else where

    def adapter_where(self, adapter: Adapter) -> str:
        """Return what a finding calls ``adapter``: its name, or its bus id."""
        device = self.device(adapter)
        named = adapter.name or (device.busid if device else None)
        return named or f"adapter {'without a name' if adapter.index is None else adapter.index}"

    def adapter_label(self, adapter: Adapter) -> str:
        """Return name, bus id and the port where it is not the first."""
        device = self.device(adapter)
        where = self.adapter_where(adapter)
        port = f" port {adapter.port}" if adapter.port and adapter.port > 1 else ""
        at = f" ({device.busid})" if device and device.busid and device.busid != where else ""
        return f"{where}{port}{at}"

    def rdma(self) -> tuple[Adapter, ...]:
        """Return the ports on PCI that NCCL does not reach through TCP."""
        return tuple(a for a in self.topology.adapters if a.pci is not None and not is_socket(a))

    def fabric(self) -> tuple[Adapter, ...]:
        """Return the ports that may carry RDMA between hosts.

        Slow ports are for management, unless they are of the same model as a fast one: those came
        up slow.
        """
        ports = self.rdma()
        models = {self.model(port) for port in ports if is_fabric(port)} - {None}
        return tuple(port for port in ports if is_fabric(port) or self.model(port) in models)

    def model(self, adapter: Adapter) -> tuple[str, str] | None:
        """Return vendor and device of an adapter's card; ``None`` where they are not stated."""
        device = self.device(adapter)
        if device is None or not device.vendor or not device.device:
            return None
        return device.vendor, device.device


def is_virtual(adapter: Adapter) -> bool:
    """Whether ``adapter`` is a software interface: a bridge, a tunnel, a container's end."""
    return adapter.name is not None and _VIRTUAL.match(adapter.name) is not None


def is_socket(adapter: Adapter) -> bool:
    """Whether NCCL reaches ``adapter`` through TCP: it writes port 0 for those."""
    if not adapter.has_element:
        return False
    named = adapter.name is not None and _INTERFACE.match(adapter.name) is not None
    return adapter.port == 0 or named or is_virtual(adapter)


def is_fabric(adapter: Adapter) -> bool:
    """Whether ``adapter`` may carry RDMA: on PCI, no socket, and fast as far as is known."""
    if adapter.pci is None or is_socket(adapter):
        return False
    speed = adapter.speed_gbit_per_s
    return speed is None or not 0 < speed < LEAST_FABRIC_GBIT_PER_S


def merged_ports(adapter: Adapter) -> int:
    """Return how many ports stand under one name (``mlx5_0+mlx5_1`` is two)."""
    return (adapter.name or "").count("+") + 1


def port_speed(adapter: Adapter) -> float | None:
    """Return the speed of one port in Gbit/s."""
    speed = adapter.speed_gbit_per_s
    return None if speed is None else speed / merged_ports(adapter)


def is_invented(busid: str | None) -> bool:
    """Whether a bus id is one that no real device has."""
    return busid is not None and _INVENTED.match(busid) is not None
