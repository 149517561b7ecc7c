"""Hosts and the network interfaces found on them."""

from dataclasses import dataclass, field
from enum import StrEnum

IDLE_GIGATRANSFERS_PER_S = 2.5
"""Rate of the first PCIe generation: what an idle GPU falls back to, as its current speed tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One entry of a hosts file.

    ``nics`` are in rail order; empty means they are looked up on the host.
    ``rate_gbit_per_s`` is the line rate of each NIC and overrides what the system says;
    ``uplink_gbit_per_s`` is the rate of this host's leaf towards the spine. ``root`` is an absolute
    folder on the host that its health facts are read from in place of ``/``.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    nics: tuple[str, ...] = ()
    rate_gbit_per_s: float | None = None
    uplink_gbit_per_s: float | None = None
    leaf: str | None = None
    rack: str | None = None
    gpus: int | None = None
    root: str | None = None


class NicKind(StrEnum):
    """How a NIC is driven, which decides where its counters are."""

    ETHERNET = "ethernet"
    INFINIBAND = "infiniband"


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieLink:
    """A PCIe link as it runs now: transfer rate of one lane in GT/s, and the number of lanes."""

    gigatransfers_per_s: float
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One measurable port of a host.

    ``name`` is what the operator calls it: ``eth0``, ``mlx5_0`` or ``mlx5_0:2``.
    ``interface`` is the network interface that carries ``address`` (``None`` without IP);
    ``hca`` and ``hca_port`` name the RDMA port (``None`` for plain Ethernet).
    ``speed_gbit_per_s`` is ``None`` where the system reports no real speed, as virtual NICs do.
    """

    name: str
    kind: NicKind
    interface: str | None = None
    address: str | None = None
    hca: str | None = None
    hca_port: int | None = None
    mtu: int | None = None
    speed_gbit_per_s: float | None = None
    pcie: PcieLink | None = None
    pci_address: str | None = None
    described_in: str | None = None
    """The topology dump that speed and PCIe link are from; ``None``: the host itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDump:
    """What a topology dump says of a host's NICs; ``host`` is empty for a dump of all alike."""

    host: str
    file: str
    nics: tuple[Nic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU of a host; ``pci_address`` is used to find the GPU nearest to a NIC."""

    index: int
    name: str
    pci_address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What a host says of itself before it is measured.

    ``versions`` maps ``ncdiag``, ``python``, ``torch`` and so on to a version, absent if not there.
    ``nics`` are in rail order; ``missing_nics`` were asked for and are not there or cannot be used,
    each with the reason.
    """

    hostname: str
    versions: dict[str, str] = field(default_factory=dict)
    cpus: int = 1
    nics: tuple[Nic, ...] = ()
    missing_nics: dict[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
