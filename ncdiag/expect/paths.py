"""The paths between GPUs and to adapters: as the dump has them, and as NCCL sees them."""

from ncdiag.expect.gpu_links import link_gb_per_s, to_switch
from ncdiag.expect.nccl_links import (
    LOCAL_GB_PER_S,
    PARTITION_GB_PER_S,
    between_cpus_gb_per_s,
    pcie_gb_per_s,
)
from ncdiag.expect.nccl_paths import nccl_paths
from ncdiag.expect.path_type import Path, PathType
from ncdiag.expect.places import cpu_name, host_of, pci_name
from ncdiag.model.topology import Adapter, Gpu, GpuLink, GpuLinkKind, NcclTopology, PciDevice

__all__ = ["Path", "PathType", "gpu_adapter_path", "gpu_pair_path", "nearest_adapters"]


def gpu_pair_path(
    topology: NcclTopology, first: Gpu, second: Gpu, *, as_nccl: bool = False
) -> Path:
    """Return the path from one GPU of ``topology`` to another.

    By itself: links that the dump lists, else the PCI tree, every bridge one switch. ``as_nccl``
    searches as NCCL does: through another GPU, over C2C, with the halves of a switch made one.
    """
    if as_nccl:
        return nccl_paths(topology).gpu_pair(first, second)
    if first.pci == second.pci:
        same = first == second
        return Path(PathType.LOC, LOCAL_GB_PER_S if same else PARTITION_GB_PER_S)
    linked = _linked_path(topology, first, second)
    return linked or _tree_path(topology, first.pci, second.pci, topology.pci[second.pci].cpu)


def gpu_adapter_path(
    topology: NcclTopology, gpu: Gpu, adapter: Adapter, *, as_nccl: bool = False
) -> Path:
    """Return the path from a GPU to an adapter of ``topology``.

    By itself: the PCI tree, without the adapter's own speed. ``as_nccl`` counts that too, goes
    through C2C or a GPU nearer to the adapter (PXN) where NCCL would, and through the CPU where
    either end cannot do GPUDirect RDMA.
    """
    if as_nccl:
        return nccl_paths(topology).gpu_adapter(gpu, adapter)
    return _tree_path(topology, gpu.pci, adapter.pci, adapter.cpu)


def nearest_adapters(
    topology: NcclTopology, gpu: Gpu, *, as_nccl: bool = False
) -> tuple[PathType | None, tuple[Adapter, ...]]:
    """Return the best type of path from ``gpu`` to an adapter of its host, and all adapters there.

    ``None`` and nothing if there is no adapter on its host.
    """
    best: PathType | None = None
    nearest: list[Adapter] = []
    for adapter in topology.adapters:
        kind = gpu_adapter_path(topology, gpu, adapter, as_nccl=as_nccl).type
        if kind >= PathType.NET or (best is not None and kind > best):
            continue
        if kind != best:
            best, nearest = kind, []
        nearest.append(adapter)
    return best, tuple(nearest)


def _linked_path(topology: NcclTopology, first: Gpu, second: Gpu) -> Path | None:
    """Return the path over NVLink or xGMI, if the two are linked to each other or by switches."""
    if _same_host(topology, first.pci, second.pci):
        for one, other in ((first, second), (second, first)):
            busid = topology.busid(other)
            rows = [link for link in one.links if busid is not None and link.target == busid]
            if rows:
                return Path(PathType.NVL, _rate(one, rows))
    sides = [[link for link in gpu.links if to_switch(link)] for gpu in (first, second)]
    if not all(sides):
        return None
    rates = [_rate(gpu, rows) for gpu, rows in zip((first, second), sides, strict=True)]
    return Path(PathType.NVL, _least(rates, whole=True), ("NVSwitch",))


def _rate(gpu: Gpu, rows: list[GpuLink]) -> float | None:
    rate = link_gb_per_s(gpu, rows[0].kind if rows else GpuLinkKind.NVLINK)
    if rate is None or any(link.count is None for link in rows):
        return None
    return round(rate * sum(link.count or 0 for link in rows), 4)


def _same_host(topology: NcclTopology, first: int, second: int) -> bool:
    one, other = topology.pci[first].cpu, topology.pci[second].cpu
    return host_of(topology, one) == host_of(topology, other)


def _ancestry(topology: NcclTopology, pci: int | None) -> list[int]:
    """Return a PCI device and all above it, upwards."""
    chain: list[int] = []
    while pci is not None:
        chain.append(pci)
        pci = topology.pci[pci].parent
    return chain


def _tree_path(topology: NcclTopology, start: int, end: int | None, end_cpu: int) -> Path:
    """Return the path through the PCI tree; ``end`` is ``None`` for what hangs on a CPU itself."""
    up = _ancestry(topology, start)
    down = _ancestry(topology, end)
    common = next((pci for pci in up if pci in down), None)
    if common is not None:
        above, below = up[: up.index(common)], down[: down.index(common)]
        between = above[1:] + [common] * (common not in {start, end}) + below[:0:-1]
        switches = sum(_is_switch(topology.pci[pci]) for pci in between)
        rates = [pcie_gb_per_s(topology.pci[pci]) for pci in above + below]
        kind = PathType.PIX if switches <= 1 else PathType.PXB
        return Path(kind, _least(rates), tuple(pci_name(topology, pci) for pci in between))
    cpu = topology.pci[start].cpu
    rates = [pcie_gb_per_s(topology.pci[pci]) for pci in up + down]
    names = [pci_name(topology, pci) for pci in up[1:]]
    names.append(cpu_name(topology, cpu))
    kind = PathType.PHB
    if cpu != end_cpu:
        if host_of(topology, cpu) != host_of(topology, end_cpu):
            return Path(PathType.NET, None)
        kind = PathType.SYS
        names.append(cpu_name(topology, end_cpu))
        rates.append(between_cpus_gb_per_s(topology.cpus[cpu]))
    names += [pci_name(topology, pci) for pci in down[:0:-1]]
    return Path(kind, _least(rates), tuple(names))


def _is_switch(device: PciDevice) -> bool:
    """Whether a device that has others below it is a bridge; one without a class can be no else."""
    return device.pci_class is None or device.pci_class >> 8 == 0x0604


def _least(rates: list[float | None], *, whole: bool = False) -> float | None:
    """Return the least of what is known; ``whole`` asks for all of it."""
    known = [rate for rate in rates if rate is not None]
    if not known or (whole and len(known) < len(rates)):
        return None
    return min(known)
