"""What topology dumps hold, kind by kind, as they say it: nothing here is inferred.

What a dump does not say is ``None``. Bus ids are lower case (``0000:1b:00.0``); paths and rates
that follow from these records are worked out in :mod:`ncdiag.expect`.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.errors import UndecidedError, UsageError


class NotATopologyError(UsageError):
    """The input is no topology dump of any kind ncdiag knows."""


class TruncatedTopologyError(UndecidedError):
    """The input is a topology dump that ends too early to be judged."""


class TopologyKind(StrEnum):
    """The formats, by what they describe; the values are those of the JSON contract."""

    NCCL_TOPOLOGY = "nccl-topology"
    NCCL_GRAPH = "nccl-graph"
    GPU_MATRIX = "gpu-matrix"
    IB_FABRIC = "ib-fabric"
    IB_PORTS = "ib-ports"
    SLURM_TOPOLOGY = "slurm-topology"


class TopologySeverity(StrEnum):
    """How much a finding matters: ``info`` alone leaves the exit code 0."""

    FATAL = "fatal"
    DEGRADED = "degraded"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class TopologyFinding:
    """One thing that is wrong, or odd, with one object of a dump.

    ``name`` is the finding's class (``nvlink_missing``); ``where`` names the one object.
    """

    name: str
    severity: TopologySeverity
    where: str
    explanation: str


# --- NCCL topology (NCCL_TOPO_DUMP_FILE, RCCL's likewise, lstopo) ---------------------------------


class GpuLinkKind(StrEnum):
    """What joins two GPUs besides PCIe."""

    NVLINK = "nvlink"
    XGMI = "xgmi"


@dataclass(frozen=True, slots=True)
class Cpu:
    """One NUMA node of one host; ``numa`` is -1 or ``None`` where unknown."""

    numa: int | None
    arch: str | None = None
    vendor: str | None = None
    family_id: int | None = None
    model_id: int | None = None
    affinity: str | None = None
    host_hash: str | None = None


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One ``pci`` element. ``cpu`` and ``parent`` are indexes into the topology's tuples.

    ``link_speed`` is the text of the file; ``gigatransfers_per_s`` and ``lanes`` are ``None`` where
    the file gives none, an empty one or nonsense. ``lanes`` 0 stays 0 (NCCL takes it for 16).
    """

    cpu: int
    parent: int | None = None
    busid: str | None = None
    pci_class: int | None = None
    vendor: str | None = None
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    link_speed: str | None = None
    gigatransfers_per_s: float | None = None
    lanes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuLink:
    """One ``nvlink`` or ``xgmi`` row of a GPU: ``count`` links to ``target`` (a bus id).

    ``count`` is ``None`` where the file gives no number, or one that no count can be.
    """

    kind: GpuLinkKind
    target: str | None
    count: int | None
    target_class: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: a ``gpu`` element, or a PCI device of class 0x03 where the file has no elements.

    ``pci`` is an index into ``NcclTopology.pci``. ``sm`` is the architecture as written (``90``,
    ``gfx942``). ``has_element`` is false where only the PCI class tells of the GPU.
    """

    pci: int
    index: int | None = None
    sm: str | None = None
    rank: int | None = None
    gdr: bool | None = None
    mlopart: int | None = None
    gcn: str | None = None
    links: tuple[GpuLink, ...] = ()
    c2c_gb_per_s: float | None = None
    has_element: bool = True


@dataclass(frozen=True, slots=True)
class Adapter:
    """One ``net`` element (a port), or a PCI device of class 0x02 where the file has none.

    ``pci`` is ``None`` for an adapter directly under a CPU (socket, virtual).
    """

    name: str | None
    cpu: int
    pci: int | None = None
    index: int | None = None
    speed_gbit_per_s: float | None = None
    port: int | None = None
    guid: str | None = None
    gdr: bool | None = None
    latency_us: float | None = None
    max_connections: int | None = None
    has_element: bool = True
    is_used_by_nccl: bool | None = None
    """False (``net="0"``) for one that NCCL does not use by itself: it is part of a virtual one."""


@dataclass(frozen=True, slots=True)
class NcclTopology:
    """A whole NCCL topology: CPUs, PCI tree, GPUs and adapters; several hosts with MNNVL."""

    cpus: tuple[Cpu, ...]
    pci: tuple[PciDevice, ...]
    gpus: tuple[Gpu, ...]
    adapters: tuple[Adapter, ...]
    pci_peer_links: tuple[tuple[int, str], ...] = ()
    """``pcilink`` elements: index of the PCI device, bus id of its target."""
    version: str | None = None
    kind: TopologyKind = TopologyKind.NCCL_TOPOLOGY

    def busid(self, gpu: Gpu) -> str | None:
        """Bus id of ``gpu``."""
        return self.pci[gpu.pci].busid


# --- NCCL graph (NCCL_GRAPH_DUMP_FILE) ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GraphChannel:
    """One channel: adapters (``net`` ids) and GPUs (``dev`` or rank as written) in order."""

    nets: tuple[str, ...]
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NcclGraph:
    """One ``graph`` element; rates are those of one channel."""

    id: int | None
    pattern: str | None
    """``ring``, ``tree``, ``split_tree``, ``balanced_tree``, ``nvls``, ``collnet_direct``, or the
    number as written."""
    nchannels: int | None
    intra_gb_per_s: float | None
    inter_gb_per_s: float | None
    intra_path: str | None
    inter_path: str | None
    cross_nic: int | None = None
    same_channels: bool | None = None
    inter_latency_us: float | None = None
    channels: tuple[GraphChannel, ...] = ()


@dataclass(frozen=True, slots=True)
class NcclGraphs:
    """All graphs of one dump."""

    graphs: tuple[NcclGraph, ...]
    kind: TopologyKind = TopologyKind.NCCL_GRAPH


# --- GPU matrix (nvidia-smi topo -m, rocm-smi --showtopo, amd-smi topology) -----------------------


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """What row ``a`` says of column ``b``: ``NV18``, ``PIX``, ``XGMI``, as written."""

    a: str
    b: str
    path: str


@dataclass(frozen=True, slots=True)
class GpuMatrix:
    """A table of GPUs and NICs against each other. Every readable cell is kept, both directions.

    ``damage`` has a line for each thing that could not be read.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    nic_names: dict[str, str] = field(default_factory=dict)
    numa: dict[str, int | None] = field(default_factory=dict)
    cpu_affinity: dict[str, str] = field(default_factory=dict)
    damage: tuple[str, ...] = ()
    kind: TopologyKind = TopologyKind.GPU_MATRIX


# --- InfiniBand (ibnetdiscover, iblinkinfo; ibstat, ibstatus) -------------------------------------


class IbNodeKind(StrEnum):
    """What stands at the end of a cable."""

    SWITCH = "switch"
    CA = "ca"
    ROUTER = "router"


@dataclass(frozen=True, slots=True)
class IbPort:
    """One port line of a node's record; the peer is ``None`` where nothing is connected.

    ``width`` counts lanes; ``speed`` is the generation (``HDR``). ``state`` and ``physical`` are
    as written (``Active``, ``LinkUp``, ``Down``, ``Polling``) where the format says them.
    """

    number: int
    peer_guid: str | None = None
    peer_port: int | None = None
    peer_description: str | None = None
    width: int | None = None
    speed: str | None = None
    state: str | None = None
    physical: str | None = None
    could_be: str | None = None
    """What the tool says that both ends could do and do not: ``4X``, ``25.78125 Gbps``."""


@dataclass(frozen=True, slots=True)
class IbNode:
    """One record: a switch, a channel adapter or a router; ``guid`` is lower-case hex, no 0x.

    Where a format gives no GUID, ``guid`` is what the dump knows the node by: the name in a net
    file of ibsim, a description, ``lid 12``.
    """

    kind: IbNodeKind
    guid: str
    description: str | None
    ports: tuple[IbPort, ...]
    lid: int | None = None
    has_record: bool = True
    """False for a node known only as somebody's peer."""
    device_id: str | None = None
    """The part (``0x1021``), where the format says it."""


@dataclass(frozen=True, slots=True)
class IbFabric:
    """The nodes of one fabric, each with its own view of its links."""

    nodes: tuple[IbNode, ...]
    kind: TopologyKind = TopologyKind.IB_FABRIC


@dataclass(frozen=True, slots=True)
class IbLocalPort:
    """One port of this host as ibstat or ibstatus shows it.

    ``width`` counts the lanes and ``speed`` is the generation that stand beside the rate, and
    ``part`` is the adapter's type (``MT4129``), each where the tool says it.
    """

    ca: str
    port: int
    state: str | None
    physical: str | None
    rate_gbit_per_s: float | None
    link_layer: str | None
    guid: str | None = None
    width: int | None = None
    speed: str | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class IbPorts:
    """The InfiniBand (or RoCE) ports of one host."""

    ports: tuple[IbLocalPort, ...]
    kind: TopologyKind = TopologyKind.IB_PORTS


# --- Slurm (topology.conf, topology.yaml) ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlurmSwitch:
    """One ``SwitchName=`` or ``BlockName=``: the switches and nodes right below it."""

    name: str
    switches: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmTopology:
    """``plugin`` is ``tree`` or ``block``; of blocks, ``switches`` holds the blocks."""

    plugin: str
    switches: tuple[SlurmSwitch, ...]
    block_sizes: tuple[int, ...] = ()
    kind: TopologyKind = TopologyKind.SLURM_TOPOLOGY


Topology = NcclTopology | NcclGraphs | GpuMatrix | IbFabric | IbPorts | SlurmTopology
