"""What a report says of each GPU and each adapter of an NCCL topology, one row each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ncdiag.expect.gpu_links import NVSWITCH_CLASS, nvlink_gb_per_s, to_switch
from ncdiag.expect.nccl_links import pcie_gb_per_s
from ncdiag.expect.paths import PathType, nearest_adapters
from ncdiag.expect.rates import PCIE_GENERATIONS
from ncdiag.model.topology import Adapter, Cpu, Gpu, GpuLink, GpuLinkKind, NcclTopology, PciDevice

_GENERATIONS: Final = {
    one.gigatransfers_per_s: number for number, one in enumerate(PCIE_GENERATIONS, start=1)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One GPU: its own PCIe link as NCCL counts it, its links to others, its nearest adapters.

    ``nvlink_to`` is ``switch``, ``gpu``, ``mixed`` or ``none``; ``nearest_path_nccl`` is what the
    nearest path is once NCCL has rewritten the topology, if that was asked for.
    """

    busid: str | None
    index: int | None
    rank: int | None
    sm: str | None
    pcie_gen: int | None
    pcie_lanes: int | None
    pcie_gb_per_s: float | None
    nvlinks: int
    link_kind: str | None
    nvlink_gb_per_s: float | None
    nvlink_to: str
    c2c_gb_per_s: float | None
    nearest_nics: tuple[str, ...]
    nearest_path: str | None
    nearest_nics_nccl: tuple[str, ...]
    nearest_path_nccl: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NicRow:
    """One port of an adapter."""

    name: str | None
    speed_gbit_per_s: float | None
    port: int | None
    guid: str | None
    gdr: bool | None
    busid: str | None
    pcie_gen: int | None
    pcie_lanes: int | None
    pcie_gb_per_s: float | None


class NcclRows:
    """The rows of one topology, worked out when they are first asked for.

    ``nccl`` also has NCCL's view of each GPU worked out, which takes longer.
    """

    def __init__(self, topology: NcclTopology, *, nccl: bool = False) -> None:
        self._topology = topology
        self._nccl = nccl

    @cached_property
    def gpus(self) -> tuple[GpuRow, ...]:
        """A row for each GPU the file shows."""
        busids = {self._topology.busid(gpu) for gpu in self._topology.gpus}
        return tuple(
            _gpu_row(self._topology, gpu, busids, nccl=self._nccl) for gpu in self._topology.gpus
        )

    @cached_property
    def adapters(self) -> tuple[Adapter, ...]:
        """The adapters; one that is listed under two sockets is one."""
        return tuple(_distinct(self._topology))

    @cached_property
    def nics(self) -> tuple[NicRow, ...]:
        """A row for each adapter."""
        return tuple(_nic_row(self._topology, adapter) for adapter in self.adapters)

    @cached_property
    def nvswitches(self) -> int:
        """How many distinct switches the GPUs name; one hidden from a virtual machine is none."""
        named = {
            link.target
            for gpu in self._topology.gpus
            for link in gpu.links
            if link.target and link.target_class == NVSWITCH_CLASS
        }
        return sum(not to_switch(GpuLink(GpuLinkKind.NVLINK, one, None)) for one in named)

    @cached_property
    def hosts(self) -> int:
        """How many hosts the file describes: several only where they share an NVLink domain."""
        return max(1, len({cpu.host_hash for cpu in self._topology.cpus if cpu.host_hash}))


def cpu_name(cpu: Cpu) -> str:
    """``CPU 0 GenuineIntel x86_64``, as much of it as is known."""
    number = "?" if cpu.numa is None or cpu.numa < 0 else f"{cpu.numa}"
    return " ".join(part for part in (f"CPU {number}", cpu.vendor, cpu.arch) if part)


def adapter_name(topology: NcclTopology, adapter: Adapter) -> str | None:
    """The adapter's name, or its bus id where it has none."""
    return adapter.name or (topology.pci[adapter.pci].busid if adapter.pci is not None else None)


def pcie_gen(device: PciDevice) -> int | None:
    """The generation of the device's link; ``None`` where the file gives no known speed."""
    return _GENERATIONS.get(device.gigatransfers_per_s or 0.0)


def pcie_text(device: PciDevice) -> str:
    """``gen5 x16``; ``?`` stands for what is not known."""
    generation = pcie_gen(device)
    if generation is None and device.lanes is None:
        return "link unknown"
    return f"gen{generation or '?'} x{'?' if device.lanes is None else device.lanes}"


def _gpu_row(topology: NcclTopology, gpu: Gpu, busids: set[str | None], *, nccl: bool) -> GpuRow:
    device = topology.pci[gpu.pci]
    path, adapters = nearest_adapters(topology, gpu)
    nccl_path, nccl_adapters = nearest_adapters(topology, gpu, as_nccl=True) if nccl else (None, ())
    kinds = {link.kind for link in gpu.links}
    kind = GpuLinkKind.XGMI if GpuLinkKind.XGMI in kinds else next(iter(kinds), None)
    return GpuRow(
        busid=device.busid,
        index=gpu.index,
        rank=gpu.rank,
        # RCCL counts compute units under sm.
        sm=gpu.gcn or gpu.sm,
        pcie_gen=pcie_gen(device),
        pcie_lanes=device.lanes,
        pcie_gb_per_s=pcie_gb_per_s(device),
        nvlinks=sum(link.count or 0 for link in gpu.links),
        link_kind=kind.value if kind else None,
        nvlink_gb_per_s=None if kind is GpuLinkKind.XGMI else nvlink_gb_per_s(gpu),
        nvlink_to=_linked_to(gpu, busids),
        c2c_gb_per_s=gpu.c2c_gb_per_s,
        nearest_nics=_names(topology, adapters),
        nearest_path=_path_name(path),
        nearest_nics_nccl=_names(topology, nccl_adapters),
        nearest_path_nccl=_path_name(nccl_path),
    )


def _nic_row(topology: NcclTopology, adapter: Adapter) -> NicRow:
    device = None if adapter.pci is None else topology.pci[adapter.pci]
    return NicRow(
        name=adapter_name(topology, adapter),
        speed_gbit_per_s=adapter.speed_gbit_per_s,
        port=adapter.port,
        guid=adapter.guid,
        gdr=adapter.gdr,
        busid=device.busid if device else None,
        pcie_gen=pcie_gen(device) if device else None,
        pcie_lanes=device.lanes if device else None,
        pcie_gb_per_s=pcie_gb_per_s(device) if device else None,
    )


def _linked_to(gpu: Gpu, busids: set[str | None]) -> str:
    ends = {_end(link, busids) for link in gpu.links if link.count is None or link.count > 0}
    if not ends:
        return "none"
    return "mixed" if len(ends) > 1 else ends.pop()


def _end(link: GpuLink, busids: set[str | None]) -> str:
    return "switch" if link.target not in busids and to_switch(link) else "gpu"


def _names(topology: NcclTopology, adapters: Iterable[Adapter]) -> tuple[str, ...]:
    names = (adapter_name(topology, one) for one in adapters)
    return tuple(dict.fromkeys(name for name in names if name))


def _path_name(path: PathType | None) -> str | None:
    return None if path is None else path.name


def _distinct(topology: NcclTopology) -> Iterator[Adapter]:
    seen = set()
    for number, adapter in enumerate(topology.adapters):
        host = topology.cpus[adapter.cpu].host_hash if topology.cpus else None
        key = (host, adapter.name, adapter.port, adapter.guid) if adapter.name else number
        if key not in seen:
            seen.add(key)
            yield adapter
