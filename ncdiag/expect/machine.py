"""What a host is made of, as far as bandwidth goes: from the catalogue or from a topology dump."""

from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.host import PcieLink


class LinkLayer(StrEnum):
    """What frames the packets of a NIC; the values are what a derivation says."""

    INFINIBAND = "InfiniBand"
    ROCE = "RoCEv2"
    EFA = "EFA"
    TCP = "TCP"


class HostPath(StrEnum):
    """How GPUs without a fabric of their own reach each other."""

    SWITCH = "PCIe switch"
    HOST_BRIDGE = "PCIe host bridge"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFabric:
    """What joins GPUs besides PCIe, seen from one GPU, per direction.

    ``raw_gb_per_s`` is what one link signals, ``effective_gb_per_s`` what a kernel of the library
    gets out of it. Behind switches (``switched``) all links reach every peer; without them
    ``ring_links`` says how many links rings over so many GPUs can use (the entry for the most
    GPUs not above holds, and beyond the last one there is only PCIe), and ``pair_links`` how many
    join each GPU to each, where that is known. ``multicast_share`` is the share that NVLS reaches
    (``None``: no NVLS). ``domain_gpus`` counts the GPUs that one fabric joins, also of several
    hosts.
    """

    name: str
    links: int
    raw_gb_per_s: float
    effective_gb_per_s: float
    switched: bool
    domain_gpus: int
    multicast_share: float | None = None
    ring_links: tuple[tuple[int, int], ...] = ()
    pair_links: tuple[tuple[int, ...], ...] = ()

    def links_for(self, gpus: int) -> int:
        """How many links rings over ``gpus`` GPUs use; 0 where the fabric does not join them."""
        if self.switched:
            return self.links if gpus <= self.domain_gpus else 0
        if not self.ring_links or gpus > self.ring_links[-1][0]:
            return 0
        return next((links for count, links in reversed(self.ring_links) if count <= gpus), 0)

    def links_between(self, first: int, second: int) -> int:
        """How many links join two GPUs of one host, by their places on it."""
        if self.switched:
            return self.links
        if self.pair_links:
            return self.pair_links[first][second]
        if self.domain_gpus == 2 and first // 2 != second // 2:
            return 0  # bridges join the GPUs in twos
        return self.links_for(2)

    def between(self, first: int, second: int) -> int | None:
        """The GPU that bytes from one to the other go to next, ``second`` where links join them.

        Of those in between it is the one with most links to both; ``None`` where there is none.
        """
        if self.links_between(first, second):
            return second
        others = range(len(self.pair_links))
        best = max(others, key=lambda gpu: self._links_by(first, gpu, second), default=first)
        return best if self.pair_links and self._links_by(first, best, second) else None

    def _links_by(self, first: int, gpu: int, second: int) -> int:
        if gpu in (first, second):
            return 0
        return min(self.links_between(first, gpu), self.links_between(gpu, second))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    """One port for GPU traffic. ``slot`` is ``None`` where the port has no PCIe link to speak of.

    ``near`` is false where no GPU reaches the port below a host bridge, so that GPUDirect RDMA is
    not used.
    """

    name: str
    gbit_per_s: float
    layer: LinkLayer
    slot: PcieLink | None = None
    near: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One host. ``generation`` is the GPU's (``Hopper``), as the tables of latencies have it.

    ``fabric_known`` is false where the source does not say whether anything joins the GPUs.
    ``near_rails`` lists for each GPU the rails beside it; empty means they are spread evenly.
    """

    name: str
    gpu: str
    generation: str
    gpus: int
    rails: tuple[Rail, ...]
    gpu_slot: PcieLink | None = None
    fabric: GpuFabric | None = None
    fabric_known: bool = True
    host_path: HostPath = HostPath.SWITCH
    c2c_gb_per_s: float | None = None
    sharp: bool = False
    near_rails: tuple[tuple[int, ...], ...] = ()
    sources: dict[str, str] = field(default_factory=dict, hash=False)
    """Where each figure is from, by the name of the figure."""

    def rails_near(self, gpu: int) -> tuple[int, ...]:
        """The rails that one GPU uses, by their places; none where the host has no NIC."""
        if self.near_rails:
            return self.near_rails[gpu]
        if not self.rails:
            return ()
        share = len(self.rails) / self.gpus
        first = int(gpu * share)
        return tuple(range(first, max(first + 1, int((gpu + 1) * share))))
