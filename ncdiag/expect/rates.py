"""How much of a line is payload: header sizes and measured limits, each with its source."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Framing:
    """What each packet of a transport adds to its payload.

    Of an MTU of ``m`` bytes ``m - inside_bytes`` are payload, and ``m + outside_bytes`` go over
    the line.
    """

    name: str
    inside_bytes: int
    outside_bytes: int

    def efficiency(self, mtu_bytes: int) -> float:
        """Share of the line that is payload, 0 to 1."""
        return (mtu_bytes - self.inside_bytes) / (mtu_bytes + self.outside_bytes)


# An IPv4 header is 20 bytes (RFC 791), a TCP header 20 and its time stamps, which Linux sends by
# default, 12 (RFC 9293, RFC 7323). An IPv6 header has 20 more: 1.3 % at MTU 1500, left out.
_TCP_IP_BYTES = 20 + 20 + 12
# IEEE 802.3: destination, source and type 14; preamble 8, check sequence 4 and gap 12 besides.
_FRAME_BYTES = 14
_WIRE_BYTES = _FRAME_BYTES + 8 + 4 + 12

# `rate=` is counted as traffic shapers and policers of an operating system or a cloud count: whole
# frames without what only the wire sees (Linux: qdisc_pkt_len). 500 Mbit/s give 478 at MTU 1500.
TCP_SHAPED = Framing("TCP", _TCP_IP_BYTES, _FRAME_BYTES)
# The speed of a NIC is that of the wire.
TCP_WIRE = Framing("TCP", _TCP_IP_BYTES, _WIRE_BYTES)
# Over the path MTU of RDMA: IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand specification, annex A17).
ROCE_V2 = Framing("RoCEv2", 0, 20 + 8 + 12 + 4 + _WIRE_BYTES)
# LRH 8, BTH 12, ICRC 4, VCRC 2 (InfiniBand specification, volume 1, chapter 5).
INFINIBAND = Framing("InfiniBand", 0, 8 + 12 + 4 + 2)
# IP over InfiniBand: its own header of 4 (RFC 4391) and InfiniBand's 26 around the IP packet.
TCP_IPOIB = Framing("TCP over IPoIB", _TCP_IP_BYTES, 4 + 26)

# Ethernet without jumbo frames; the 2044 of IPoIB in datagram mode differs from it by 1 %.
DEFAULT_MTU_BYTES = 1500
# Path MTUs of RDMA (InfiniBand specification, 9.7.1), and what RoCEv2 needs beside one inside the
# MTU of its interface: IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4.
RDMA_MTUS_BYTES = (256, 512, 1024, 2048, 4096)
ROCE_ROOM_BYTES = 20 + 8 + 12 + 16 + 4
# IPoIB takes 4 bytes of the MTU of its port: 2044 there is 2048 below.
IPOIB_ROOM_BYTES = -4

# Of a PCIe link's data rate, what DMA with packets of 256 bytes reaches: 55.4 of 63 GB/s each way
# on gen5 x16 (H200, pair copy); 256 of 256 + 24 bytes of TLP and framing, less link-layer traffic.
PCIE_TLP = 0.87


@dataclass(frozen=True, slots=True)
class PcieGeneration:
    """A generation of PCIe: its name, GT/s of a lane, and the share that encoding leaves."""

    name: str
    gigatransfers_per_s: float
    encoding: float


# PCI Express base specification: 8b/10b to gen2, 128b/130b to gen5, FLITs of 236 data bytes of 256
# in gen6.
PCIE_GENERATIONS = (
    PcieGeneration("gen1", 2.5, 8 / 10),
    PcieGeneration("gen2", 5.0, 8 / 10),
    PcieGeneration("gen3", 8.0, 128 / 130),
    PcieGeneration("gen4", 16.0, 128 / 130),
    PcieGeneration("gen5", 32.0, 128 / 130),
    PcieGeneration("gen6", 64.0, 236 / 256),
)
