"""What a host's NICs carry together, and one of them alone: line, framing, PCIe, GPUDirect."""

import math

from ncdiag.expect.derivation import Limit, Term, least, of_line, product
from ncdiag.expect.machine import HostPath, LinkLayer, Machine, Rail
from ncdiag.expect.rates import (
    DEFAULT_MTU_BYTES,
    INFINIBAND,
    PCIE_GENERATIONS,
    PCIE_TLP,
    RDMA_MTUS_BYTES,
    ROCE_V2,
    TCP_WIRE,
    Framing,
)
from ncdiag.model.errors import UsageError
from ncdiag.model.host import IDLE_GIGATRANSFERS_PER_S, PcieLink

# EFA's own protocol runs over Ethernet frames with headers of about RoCE's size.
_FRAMINGS = {
    LinkLayer.INFINIBAND: INFINIBAND,
    LinkLayer.ROCE: ROCE_V2,
    LinkLayer.EFA: ROCE_V2,
    LinkLayer.TCP: TCP_WIRE,
}
# Without GPUDirect RDMA a byte goes GPU, host memory, NIC: it crosses the host bridge twice.
_CROSSINGS_OF_HOST_MEMORY = 2
# NCCL 2.30, src/graph/topo.h, INTEL_P2P_OVERHEAD: what goes from one GPU to another through a
# host bridge takes 6/5 of its bytes.
HOST_BRIDGE_SHARE = 5 / 6


def check_mtu(mtu_bytes: int | None) -> int:
    """The MTU to count with; raises :class:`UsageError` for one that RDMA does not have."""
    if mtu_bytes is None:
        return RDMA_MTUS_BYTES[-1]
    if mtu_bytes not in RDMA_MTUS_BYTES:
        known = ", ".join(map(str, RDMA_MTUS_BYTES))
        raise UsageError(f"RDMA has no MTU of {mtu_bytes} bytes; it has {known}")
    return mtu_bytes


def pcie_limit(what: str, slot: PcieLink, *, why: str = "") -> Limit:
    """What DMA gets through one slot, each way."""
    generation = min(
        PCIE_GENERATIONS, key=lambda one: abs(one.gigatransfers_per_s - slot.gigatransfers_per_s)
    )
    line = product(
        f"PCIe {generation.name} x{slot.lanes} of {what}",
        Term(slot.gigatransfers_per_s, "GT/s"),
        Term(slot.lanes, "lanes"),
        Term(8, "bit", inverse=True),
        Term(generation.encoding, "encoding"),
        Term(PCIE_TLP, "packets"),
        why=why,
    )
    return of_line(f"PCIe of {what}", line)


def gpu_host_limit(machine: Machine) -> Limit | None:
    """What one GPU moves to or from a NIC: its slot, or the link to its CPU; ``None`` unknown."""
    if machine.c2c_gb_per_s is not None:
        return of_line("C2C", product("C2C of one GPU", Term(machine.c2c_gb_per_s, "GB/s")))
    slot = machine.gpu_slot
    if slot is None or slot.gigatransfers_per_s <= IDLE_GIGATRANSFERS_PER_S:
        return None  # an idle GPU's link: it speeds up with traffic
    return pcie_limit("the GPU", slot)


def gpu_to_gpu_by_host(machine: Machine) -> Limit | None:
    """What two GPUs exchange each way without a fabric of their own; ``None`` unknown."""
    slot = machine.gpu_slot
    if slot is None or slot.gigatransfers_per_s <= IDLE_GIGATRANSFERS_PER_S:
        return None
    limit = pcie_limit("the GPU", slot, why="nothing else is known to join these GPUs")
    if machine.host_path is HostPath.SWITCH:
        return limit
    return limit.then(
        "through the host bridge",
        Term(HOST_BRIDGE_SHARE, "peer to peer"),
        resource="PCIe host bridge",
    )


def line_limit(gbit_per_s: float, layer: LinkLayer, mtu_bytes: int) -> Limit:
    """Payload of one port's line."""
    framing: Framing = _FRAMINGS[layer]
    if layer is LinkLayer.TCP:
        mtu_bytes = DEFAULT_MTU_BYTES
    line = product(
        f"one NIC, {layer}",
        Term(gbit_per_s, "Gbit/s"),
        Term(8, "bit", inverse=True),
        Term(framing.efficiency(mtu_bytes), f"MTU {mtu_bytes}"),
    )
    return of_line("NIC", line)


def rail_limit(machine: Machine, rail: Rail, *, gdr: bool, mtu_bytes: int) -> Limit:
    """What one NIC moves between a GPU's memory and the wire, each way."""
    limits = [line_limit(rail.gbit_per_s, rail.layer, mtu_bytes)]
    direct = (gdr and rail.near) or machine.c2c_gb_per_s is not None
    slot = rail.slot if rail.slot is not None or direct else machine.gpu_slot
    if slot is not None:
        limit = pcie_limit("the NIC", slot)
        if not direct:
            limit = limit.then(
                "without GPUDirect RDMA",
                Term(_CROSSINGS_OF_HOST_MEMORY, "crossings", inverse=True),
                why="every byte goes through the host's memory"
                if not gdr
                else "no GPU reaches this NIC below a host bridge",
                resource="host memory (no GPUDirect RDMA)",
            )
        limits.append(limit)
    return least(limits)


def host_limit(machine: Machine, gpus: int, *, gdr: bool, mtu_bytes: int) -> Limit:
    """What all NICs of one host carry together for ``gpus`` GPUs, each way.

    Channels are alike, so NICs of different rates count as many times the slowest one of those
    used; the choice that yields most is taken. Raises :class:`UsageError` without NICs.
    """
    if not machine.rails:
        raise UsageError(f"{machine.name} has no NIC, so nothing can be expected between hosts")
    every = [rail_limit(machine, rail, gdr=gdr, mtu_bytes=mtu_bytes) for rail in machine.rails]
    # A GPU uses the NICs beside it; the others are beside GPUs that take no part.
    near = math.ceil(len(every) * min(1.0, gpus / max(1, machine.gpus)))
    limits = sorted(every, key=lambda limit: -limit.gb_per_s)[:near]
    best = max(range(len(limits)), key=lambda index: (index + 1) * limits[index].gb_per_s)
    chosen = limits[best]
    together = chosen.then(
        "all NICs of one host",
        Term(best + 1, "NICs"),
        why="" if best + 1 == len(every) else f"of {len(every)}: {_left_out(best + 1, near)}",
    )
    own = gpu_host_limit(machine)
    if own is None:
        return together
    own_together = own.then(f"{own.resource}, all together", Term(gpus, "GPUs"))
    if own_together.gb_per_s >= together.gb_per_s:
        return together  # the usual case, of which a derivation need not speak
    return least([together, own_together])


def _left_out(used: int, near: int) -> str:
    return "those beside the GPUs used" if used == near else "slower ones would hold back the rest"
