"""What the payload of one link should reach, from what is known of its two ends."""
# ruff: noqa: RUF001 (a derivation is written with the multiplication sign operators read)

from dataclasses import dataclass
from enum import StrEnum

from ncdiag.expect.rates import (
    DEFAULT_MTU_BYTES,
    INFINIBAND,
    IPOIB_ROOM_BYTES,
    PCIE_GENERATIONS,
    PCIE_TLP,
    RDMA_MTUS_BYTES,
    ROCE_ROOM_BYTES,
    ROCE_V2,
    TCP_IPOIB,
    TCP_SHAPED,
    TCP_WIRE,
    Framing,
)
from ncdiag.model.host import Host, Nic, NicKind, PcieLink
from ncdiag.model.measurement import Expectation


class Transport(StrEnum):
    """What carries the bytes of a measurement."""

    TCP = "tcp"
    RDMA = "rdma"


@dataclass(frozen=True, slots=True)
class _Limit:
    """One thing that a link cannot outrun."""

    gbit_per_s: float
    derivation: str


def expect_link(
    source: Host,
    source_nic: Nic,
    target: Host,
    target_nic: Nic,
    *,
    transport: Transport | None = None,
) -> Expectation | None:
    """Payload rate from ``source`` to ``target``, or ``None`` if either NIC's rate is not known.

    The least of both NICs, both PCIe links and, between different leaves, both uplinks. ``rate=``
    replaces what a topology dump or the system says of a NIC and of its slot. ``transport`` is
    taken to be RDMA where both NICs can do it, unless given.
    """
    if transport is None:
        transport = Transport.RDMA if source_nic.hca and target_nic.hca else Transport.TCP
    limits: list[_Limit] = []
    for host, nic in ((source, source_nic), (target, target_nic)):
        line = _line_limit(host, nic, transport)
        if line is None:
            return None
        limits.append(line)
        if host.rate_gbit_per_s is None and nic.pcie is not None:
            limits.append(_pcie_limit(nic.pcie, _origin(nic)))
    if source.leaf is not None and target.leaf is not None and source.leaf != target.leaf:
        for host, nic in ((source, source_nic), (target, target_nic)):
            if host.uplink_gbit_per_s is not None:
                limits.append(_uplink_limit(host.uplink_gbit_per_s, nic, transport))
    parts = list(dict.fromkeys(limit.derivation for limit in limits))
    return Expectation(
        gbit_per_s=min(limit.gbit_per_s for limit in limits),
        derivation=parts[0] if len(parts) == 1 else f"min({', '.join(parts)})",
    )


def _line_limit(host: Host, nic: Nic, transport: Transport) -> _Limit | None:
    """Return what the NIC's line carries; ``None`` if nobody says how fast that is."""
    given = host.rate_gbit_per_s
    rate = nic.speed_gbit_per_s if given is None else given
    if rate is None:
        return None
    if given is not None:
        return _framed("rate", rate, nic, transport, shaped=True)
    line = _framed("NIC", rate, nic, transport, shaped=False)
    return _Limit(line.gbit_per_s, line.derivation + _origin(nic))


def _uplink_limit(rate_gbit_per_s: float, nic: Nic, transport: Transport) -> _Limit:
    return _framed("uplink", rate_gbit_per_s, nic, transport, shaped=True)


def _framed(what: str, rate: float, nic: Nic, transport: Transport, *, shaped: bool) -> _Limit:
    framing, mtu = _framing(nic, transport, shaped=shaped)
    share = framing.efficiency(mtu)
    return _Limit(rate * share, f"{what} {_rate(rate)} × {share:.3g} {framing.name} MTU {mtu}")


def _framing(nic: Nic, transport: Transport, *, shaped: bool) -> tuple[Framing, int]:
    """Return how payload is packed on this NIC, and in how many bytes."""
    infiniband = nic.kind is NicKind.INFINIBAND
    if transport is Transport.TCP:
        mtu = nic.mtu or DEFAULT_MTU_BYTES
        return TCP_IPOIB if infiniband else TCP_SHAPED if shaped else TCP_WIRE, mtu
    if infiniband:
        return INFINIBAND, _rdma_mtu(nic.mtu, IPOIB_ROOM_BYTES)
    return ROCE_V2, _rdma_mtu(nic.mtu, ROCE_ROOM_BYTES)


def _rdma_mtu(interface_mtu: int | None, room_bytes: int) -> int:
    """Return the largest path MTU of RDMA that fits the interface (the largest if unknown)."""
    if interface_mtu is None:
        return RDMA_MTUS_BYTES[-1]
    fitting = [mtu for mtu in RDMA_MTUS_BYTES if mtu + room_bytes <= interface_mtu]
    return fitting[-1] if fitting else RDMA_MTUS_BYTES[0]


def _pcie_limit(link: PcieLink, origin: str) -> _Limit:
    """Return what the slot moves; the nearest generation names it."""
    generation = min(
        PCIE_GENERATIONS, key=lambda one: abs(one.gigatransfers_per_s - link.gigatransfers_per_s)
    )
    rate = link.gigatransfers_per_s * generation.encoding * link.lanes
    derivation = f"PCIe {generation.name} x{link.lanes} {_rate(rate)} × {PCIE_TLP} TLP"
    return _Limit(rate * PCIE_TLP, derivation + origin)


def _origin(nic: Nic) -> str:
    """Return which topology dump speed and slot are from, if one."""
    return "" if nic.described_in is None else f" from {nic.described_in}"


def _rate(gbit_per_s: float) -> str:
    """Return a line rate as it is spoken of: ``400 Gbit/s``, ``500 Mbit/s``."""
    value, unit = (gbit_per_s * 1000, "Mbit/s") if gbit_per_s < 1 else (gbit_per_s, "Gbit/s")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
