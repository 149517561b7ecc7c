"""The paths NCCL works out for itself from a topology (NCCL src/graph/paths.cc, topo.cc).

A breadth-first search from every GPU, then what NCCL changes: halves of a switch made one, C2C
before the CPU's PCIe (P2C), a neighbour nearer to the adapter (PXN), no GPUDirect RDMA. Paths of
GPUs that are too far apart for peer access keep their type, since that is what NCCL prints.
"""

from functools import lru_cache

from ncdiag.expect.nccl_graph import NcclGraphView, Reach
from ncdiag.expect.nccl_links import LOCAL_GB_PER_S, PARTITION_GB_PER_S, adapter_gb_per_s
from ncdiag.expect.path_type import Path, PathType
from ncdiag.expect.places import cpu_name, host_of
from ncdiag.model.topology import Adapter, Gpu, NcclTopology

# Channels over which NCCL spreads the GPUs of an adapter (MAXCHANNELS, 64 since 2.19).
_CHANNELS = 64


class NcclPaths:
    """All paths of one topology, each worked out when it is first asked for."""

    def __init__(self, topology: NcclTopology) -> None:
        self._topology = topology
        self._graph = NcclGraphView(topology)
        self._reached: dict[int, list[Reach]] = {}
        self._to_adapters: list[list[Path]] | None = None
        self._places = {
            id(record): place
            for records in (topology.gpus, topology.adapters)
            for place, record in enumerate(records)
        }

    def gpu_pair(self, first: Gpu, second: Gpu) -> Path:
        """Return the path from one GPU to another."""
        if first.pci == second.pci:
            same = first == second
            return Path(PathType.LOC, LOCAL_GB_PER_S if same else PARTITION_GB_PER_S)
        path = self._path(first.pci, self._graph.pci_node(second.pci))
        return path if path.type is not PathType.DIS else Path(PathType.NET, None)

    def gpu_adapter(self, gpu: Gpu, adapter: Adapter) -> Path:
        """Return the path from a GPU to an adapter's port."""
        if self._to_adapters is None:
            self._to_adapters = _Rewriting(self._topology, self).paths()
        gpus, adapters = self._topology.gpus, self._topology.adapters
        return self._to_adapters[self._place(gpu, gpus)][self._place(adapter, adapters)]

    def _place(self, record: Gpu | Adapter, records: tuple[Gpu | Adapter, ...]) -> int:
        """Return where a record stands: itself, or else the first that says the same."""
        place = self._places.get(id(record))
        return records.index(record) if place is None else place

    def to_port(self, gpu: Gpu, adapter: Adapter) -> Path:
        """Return the path to an adapter's port as the search alone finds it."""
        if adapter.is_used_by_nccl is False:
            return Path(PathType.NET, None)
        if adapter.pci is None:
            path = self.to_cpu(gpu, adapter.cpu)
            name = cpu_name(self._topology, adapter.cpu)
            if path.type is not PathType.DIS:
                path = Path(max(path.type, PathType.PHB), path.gb_per_s, (*path.via, name))
        else:
            path = self._path(gpu.pci, self._graph.pci_node(adapter.pci))
        if path.type is PathType.DIS:
            return Path(PathType.NET, None)
        return Path(path.type, min(path.gb_per_s or 0.0, adapter_gb_per_s(adapter)), path.via)

    def to_cpu(self, gpu: Gpu, cpu: int) -> Path:
        """Return the path to a CPU."""
        return self._path(gpu.pci, cpu)

    def local_cpu(self, gpu: Gpu) -> int:
        """Return the CPU fewest links away from ``gpu``."""
        reached = self._from(gpu.pci)
        near = [cpu for cpu in range(len(self._topology.cpus)) if reached[cpu].hops]
        own = self._topology.pci[gpu.pci].cpu
        return min(near, key=lambda cpu: reached[cpu].hops, default=own)

    def _from(self, pci: int) -> list[Reach]:
        if pci not in self._reached:
            self._reached[pci] = self._graph.search(self._graph.pci_node(pci))
        return self._reached[pci]

    def _path(self, pci: int, node: int) -> Path:
        reached = self._from(pci)
        end = reached[node]
        if end.type is PathType.DIS:
            return Path(PathType.DIS, None)
        via: list[str] = []
        before = end.before
        while before is not None and reached[before].before is not None:
            via.append(self._graph.name(before))
            before = reached[before].before
        return Path(end.type, end.gb_per_s, tuple(reversed(via)))


class _Key:
    """A topology by identity: to compare two by what is in them takes longer than the search."""

    __slots__ = ("topology",)

    def __init__(self, topology: NcclTopology) -> None:
        self.topology = topology

    def __hash__(self) -> int:
        return id(self.topology)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.topology is other.topology


def nccl_paths(topology: NcclTopology) -> NcclPaths:
    """Return the paths of ``topology``; those of the last few are kept."""
    return _kept(_Key(topology))


@lru_cache(maxsize=4)
def _kept(key: _Key) -> NcclPaths:
    return NcclPaths(key.topology)


class _Rewriting:
    """What NCCL makes of the paths to adapters after its search."""

    def __init__(self, topology: NcclTopology, searched: NcclPaths) -> None:
        self._topology = topology
        self._searched = searched
        gpus, adapters = topology.gpus, topology.adapters
        self._found = [[searched.to_port(gpu, one) for one in adapters] for gpu in gpus]
        for place, gpu in enumerate(gpus):
            self._prefer_c2c(place, gpu)
        self._local_adapters = [_local(row) for row in self._found]
        self._local_gpus = [
            _local([row[adapter] for row in self._found]) for adapter in range(len(adapters))
        ]

    def paths(self) -> list[list[Path]]:
        """Return the path from each GPU to each adapter."""
        relays = [self._relay(adapter) for adapter in range(len(self._topology.adapters))]
        return [
            [self._path(gpu, adapter, relay) for adapter, relay in enumerate(relays)]
            for gpu in range(len(self._topology.gpus))
        ]

    def _prefer_c2c(self, place: int, gpu: Gpu) -> None:
        """Make C2C and then PCIe of a GPU's own CPU one kind of path, to its nearest adapters."""
        cpu = self._searched.local_cpu(gpu)
        if self._searched.to_cpu(gpu, cpu).type is not PathType.C2C:
            return
        row = self._found[place]
        for adapter in _local(row):
            path = row[adapter]
            if path.type is PathType.PHB and self._topology.adapters[adapter].cpu == cpu:
                row[adapter] = Path(PathType.P2C, path.gb_per_s, path.via)

    def _relay(self, adapter: int) -> int | None:
        """Return the GPU an adapter counts as its own, if it may relay for the others."""
        gpu = self._own_gpu(adapter)
        if gpu is None or self._found[gpu][adapter].type > PathType.P2C:
            return None
        return gpu if self._direct(gpu, adapter) else None

    def _own_gpu(self, adapter: int) -> int | None:
        """Return the first of the nearest GPUs that NCCL gives this adapter on some channel."""
        for channel in range(_CHANNELS):
            for gpu in self._local_gpus[adapter]:
                local = self._local_adapters[gpu]
                sharing = max(1, len(self._local_gpus[local[0]])) if local else 1
                each = -(-len(local) // sharing)
                if channel < each and adapter == local[self._turn(gpu, channel, each)]:
                    return gpu
        return None

    def _turn(self, gpu: int, channel: int, each: int) -> int:
        count = len(self._local_adapters[gpu])
        device = self._topology.gpus[gpu].index or 0
        if count & (count - 1) == 0:
            bits = count.bit_length() - 1
            device = sum(1 << (bits - 1 - bit) for bit in range(bits) if device >> bit & 1)
        return (device + channel % each) % count

    def _direct(self, gpu: int, adapter: int) -> bool:
        """Whether neither end says that it cannot do GPUDirect RDMA."""
        ends = (self._topology.gpus[gpu].gdr, self._topology.adapters[adapter].gdr)
        return False not in ends

    def _path(self, gpu: int, adapter: int, relay: int | None) -> Path:
        path = self._found[gpu][adapter]
        if relay is not None and relay != gpu:
            relayed = self._relayed(gpu, adapter, relay)
            if relayed is not None:
                return relayed
        if path.type < PathType.PHB and not self._direct(gpu, adapter):
            return self._diverted(gpu, path)
        return path

    def _relayed(self, gpu: int, adapter: int, relay: int) -> Path | None:
        """Return the path through the neighbour, where NCCL would rather take it."""
        topology = self._topology
        one, other = topology.gpus[gpu], topology.gpus[relay]
        own, near = self._found[gpu][adapter], self._found[relay][adapter]
        cpus = (topology.pci[one.pci].cpu, topology.pci[other.pci].cpu)
        if host_of(topology, cpus[0]) != host_of(topology, cpus[1]):
            return None
        link = self._searched.gpu_pair(one, other)
        faster = (near.gb_per_s or 0.0) > (own.gb_per_s or 0.0)
        if link.type > PathType.NVL or not (faster or own.type > PathType.PXN):
            return None
        gb_per_s = min(link.gb_per_s or 0.0, near.gb_per_s or 0.0)
        name = topology.busid(other) or "GPU"
        return Path(PathType.PXN, gb_per_s, (*link.via, name, *near.via))

    def _diverted(self, gpu: int, path: Path) -> Path:
        """Return the path by way of the CPU next to the GPU."""
        cpu = self._searched.local_cpu(self._topology.gpus[gpu])
        name = cpu_name(self._topology, cpu)
        return Path(max(PathType.PHB, path.type), path.gb_per_s, (name, *path.via))


def _local(paths: list[Path]) -> list[int]:
    """Return which of ``paths`` carry most and, of those, are the nearest type."""
    reachable = [place for place, path in enumerate(paths) if path.type < PathType.NET]
    if not reachable:
        return []

    def rank(place: int) -> tuple[float, int]:
        return -(paths[place].gb_per_s or 0.0), paths[place].type

    best = min(map(rank, reachable))
    return [place for place in reachable if rank(place) == best]
