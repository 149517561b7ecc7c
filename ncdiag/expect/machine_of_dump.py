"""A machine out of an NCCL topology dump: what the dump says, and nothing it does not."""

from collections import Counter
from collections.abc import Sequence

from ncdiag.expect.gpu_links import link_gb_per_s, nvlink_generation, to_switch
from ncdiag.expect.gpus import (
    BLACKWELL_MULTICAST,
    HOPPER_MULTICAST,
    MI200_LINK,
    MI300_LINK,
    MI350_LINK,
)
from ncdiag.expect.machine import GpuFabric, HostPath, LinkLayer, Machine, Rail
from ncdiag.expect.paths import PathType, gpu_adapter_path, gpu_pair_path, nearest_adapters
from ncdiag.expect.places import host_of
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import PcieLink
from ncdiag.model.text import visible
from ncdiag.model.topology import Adapter, Gpu, GpuLinkKind, NcclTopology, PciDevice

# What one link signals, GB/s each way, by the architecture it begins with: data sheets of V100,
# A100 and H100 25, Blackwell 50, bridges of sm 86 14.
_RAW_NVLINK = ((100, 50.0), (87, 25.0), (86, 14.0), (70, 25.0), (60, 20.0))
_XGMI = (("gfx95", MI350_LINK), ("gfx94", MI300_LINK), ("gfx90a", MI200_LINK))
_GENERATIONS = ((100, "Blackwell"), (90, "Hopper"), (80, "Ampere"), (70, "Volta"))
_MULTICAST = {"Hopper": HOPPER_MULTICAST, "Blackwell": BLACKWELL_MULTICAST}
_INFINIBAND_CLASS = 0x0207
_AMAZON = "0x1d0f"
_NO_GUIDS = {None, "0", "0x0"}
_LANES_WHERE_NONE = 16  # as NCCL takes a width of 0
# PCI Express base specification: 32 lanes are the widest link, 128 GT/s the fastest, gen7.
_MOST_LANES = 32
_MOST_GIGATRANSFERS_PER_S = 128.0
# Far more than any host has; what is worked out for each pair stays within a second.
_MAX_GPUS, _MAX_ADAPTERS = 128, 512
# A port this much slower than the fastest is no rail but there for management or storage.
_RAIL_SHARE = 0.25
_MOST_GBIT_PER_S = 1600.0  # no port is faster: what says more is damaged


def machine_of_dump(topology: object, name: str) -> Machine:
    """The host that a dump describes; of several hosts in one dump, the first.

    Raises :class:`UsageError` for dumps of other kinds, :class:`UndecidedError` for one without a
    GPU or a NIC.
    """
    shown = visible(name)
    if not isinstance(topology, NcclTopology):
        raise UsageError(f"{shown} is no NCCL topology (XML), which bandwidths are derived from")
    host = _first_host(topology)
    gpus = [gpu for gpu in topology.gpus if host_of(topology, _cpu(topology, gpu)) == host]
    if not gpus and not topology.adapters:
        raise UndecidedError(f"{shown} shows neither a GPU nor a NIC")
    if len(gpus) > _MAX_GPUS:
        raise UsageError(f"{shown} has {len(gpus)} GPUs on one host; {_MAX_GPUS} are the most")
    if len(topology.adapters) > _MAX_ADAPTERS:
        raise UsageError(f"{shown} has {len(topology.adapters)} NICs; {_MAX_ADAPTERS} are the most")
    adapters = _rail_adapters(topology, gpus)
    generation = _generation(gpus)
    fabric = _fabric(topology, gpus, generation)
    rails = tuple(_rail(topology, gpus, adapter, adapters) for adapter in adapters)
    return Machine(
        name=shown,
        gpu=_gpu_name(gpus),
        generation=generation,
        gpus=len(gpus),
        rails=rails,
        gpu_slot=_slowest_slot(topology, gpus),
        fabric=fabric,
        fabric_known=fabric is not None or any(gpu.has_element for gpu in gpus),
        host_path=_host_path(topology, gpus),
        c2c_gb_per_s=_slowest_c2c(gpus),
        sharp=any(rail.layer is LinkLayer.INFINIBAND for rail in rails),
        near_rails=_near_rails(topology, gpus, adapters),
        sources={"gpus": shown, "rails": shown, "fabric": shown, "slot": shown},
    )


def _first_host(topology: NcclTopology) -> str | None:
    places = [_cpu(topology, gpu) for gpu in topology.gpus] or [
        adapter.cpu for adapter in topology.adapters
    ]
    return host_of(topology, places[0]) if places else None


def _cpu(topology: NcclTopology, gpu: Gpu) -> int:
    return topology.pci[gpu.pci].cpu


def _gpu_name(gpus: Sequence[Gpu]) -> str:
    kinds = {gpu.gcn or gpu.sm for gpu in gpus} - {None}
    if len(kinds) != 1:
        return "GPU"
    kind = visible(f"{kinds.pop()}")
    return kind if kind.startswith("gfx") else f"sm {kind}"


def _generation(gpus: Sequence[Gpu]) -> str:
    """The oldest generation among the GPUs; empty for others than NVIDIA's."""
    found = [_sm(gpu) for gpu in gpus]
    known = [sm for sm in found if sm is not None]
    if not known or len(known) < len(found):
        return ""
    return next((name for least, name in _GENERATIONS if min(known) >= least), "")


def _sm(gpu: Gpu) -> int | None:
    return None if nvlink_generation(gpu) is None else int(gpu.sm or 0)


# --- GPUs -----------------------------------------------------------------------------------------


def _fabric(topology: NcclTopology, gpus: Sequence[Gpu], generation: str) -> GpuFabric | None:
    kinds = Counter(link.kind for gpu in gpus for link in gpu.links if link.count)
    if not kinds or not gpus:
        return None
    kind = kinds.most_common(1)[0][0]
    rates = [_effective(gpu, kind) for gpu in gpus]
    effective = min((rate for rate in rates if rate is not None), default=None)
    if effective is None:
        return None
    links = min(sum(_count(gpu, kind)) for gpu in gpus)
    switched = all(any(to_switch(link) for link in gpu.links) for gpu in gpus)
    product = None if kind is GpuLinkKind.XGMI else nvlink_generation(gpus[0])
    if product is not None and links > product.most_links:
        # All links are listed again for each peer: a switch that is not shown stands between.
        links, switched = product.most_links, True
    between = () if switched else _pair_links(topology, gpus)
    return GpuFabric(
        name="xGMI" if kind is GpuLinkKind.XGMI else "NVLink",
        links=links,
        raw_gb_per_s=_raw(gpus[0], kind, effective),
        effective_gb_per_s=effective,
        switched=switched,
        domain_gpus=len(topology.gpus) if switched else len(gpus),
        multicast_share=_MULTICAST.get(generation) if switched else None,
        ring_links=() if switched else _ring_links(between),
        pair_links=between,
    )


def _count(gpu: Gpu, kind: GpuLinkKind) -> list[int]:
    return [max(0, link.count or 0) for link in gpu.links if link.kind is kind]


def _effective(gpu: Gpu, kind: GpuLinkKind) -> float | None:
    known = _xgmi(gpu) if kind is GpuLinkKind.XGMI else None
    return link_gb_per_s(gpu, kind) if known is None else known[1]


def _raw(gpu: Gpu, kind: GpuLinkKind, effective: float) -> float:
    if kind is GpuLinkKind.XGMI:
        known = _xgmi(gpu)
        return effective if known is None else known[0]
    sm = _sm(gpu) or 0
    return next((rate for least, rate in _RAW_NVLINK if sm >= least), effective)


def _xgmi(gpu: Gpu) -> tuple[float, float] | None:
    """What a link signals and what a kernel gets out of it, GB/s each way."""
    name = gpu.gcn or gpu.sm or ""
    return next((rates for prefix, rates in _XGMI if name.startswith(prefix)), None)


def _pair_links(topology: NcclTopology, gpus: Sequence[Gpu]) -> tuple[tuple[int, ...], ...]:
    """Links from each GPU straight to each other; the fewer where the two ends disagree."""
    places = {topology.busid(gpu): place for place, gpu in enumerate(gpus)}
    listed = [[0] * len(gpus) for _ in gpus]
    for place, gpu in enumerate(gpus):
        for link in gpu.links:
            if link.target in places and link.target is not None:
                listed[place][places[link.target]] += max(0, link.count or 0)
    size = range(len(gpus))
    return tuple(tuple(min(listed[a][b], listed[b][a]) for b in size) for a in size)


def _ring_links(between: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int], ...]:
    """What rings over the first so many GPUs can use: the least that one of them has to others.

    0 where some are not joined to the others.
    """
    found = []
    for gpus in range(2, len(between) + 1):
        least = min(sum(row[:gpus]) for row in between[:gpus])
        found.append((gpus, least if _joined(between, gpus) else 0))
    return tuple(found)


def _joined(between: tuple[tuple[int, ...], ...], gpus: int) -> bool:
    reached, todo = {0}, [0]
    while todo:
        row = between[todo.pop()]
        new = {place for place in range(gpus) if row[place]} - reached
        reached |= new
        todo += new
    return len(reached) == gpus


def _slowest_c2c(gpus: Sequence[Gpu]) -> float | None:
    rates = [gpu.c2c_gb_per_s for gpu in gpus]
    return min((rate for rate in rates if rate is not None and rate > 0), default=None)


def _slowest_slot(topology: NcclTopology, gpus: Sequence[Gpu]) -> PcieLink | None:
    slots = [_slot(topology.pci[gpu.pci]) for gpu in gpus]
    known = [slot for slot in slots if slot is not None]
    return min(known, key=lambda slot: slot.gigatransfers_per_s * slot.lanes, default=None)


def _slot(device: PciDevice) -> PcieLink | None:
    rate, lanes = device.gigatransfers_per_s, device.lanes
    if rate is None or lanes is None or not (0 < rate <= _MOST_GIGATRANSFERS_PER_S):
        return None
    lanes = lanes or _LANES_WHERE_NONE
    if not 0 < lanes <= _MOST_LANES:
        return None
    return PcieLink(gigatransfers_per_s=rate, lanes=lanes)


def _host_path(topology: NcclTopology, gpus: Sequence[Gpu]) -> HostPath:
    """Whether GPUs meet below host bridges; the first GPU's paths tell, as boards are regular."""
    paths = [gpu_pair_path(topology, gpus[0], gpu).type for gpu in gpus[1:]]
    return HostPath.HOST_BRIDGE if max(paths, default=0) > PathType.PXB else HostPath.SWITCH


# --- NICs -----------------------------------------------------------------------------------------


def _rail_adapters(topology: NcclTopology, gpus: Sequence[Gpu]) -> tuple[Adapter, ...]:
    """The adapters that GPUs would use: those nearest to any, of a speed to speak of."""
    if gpus:
        near = {id(one): one for gpu in gpus for one in nearest_adapters(topology, gpu)[1]}
        candidates = [one for one in topology.adapters if id(one) in near]
    else:
        candidates = list(topology.adapters)
    speeds = [plausible_speed(one) for one in candidates]
    most = max((speed for speed in speeds if speed), default=None)
    if most is None:
        return ()
    chosen = [
        one
        for one, speed in zip(candidates, speeds, strict=True)
        if speed and speed >= most * _RAIL_SHARE
    ]
    # An adapter that is listed below each CPU is one.
    return tuple({_identity(one, place): one for place, one in enumerate(chosen)}.values())


def _identity(adapter: Adapter, place: int) -> tuple[object, ...]:
    named = adapter.pci is None and adapter.name is not None
    return (adapter.name, adapter.port) if named else (place,)


def plausible_speed(adapter: Adapter) -> float | None:
    """Gbit/s of a port; ``None`` where the dump tells none, or one that no port has."""
    speed = adapter.speed_gbit_per_s
    return speed if speed is not None and 0 < speed <= _MOST_GBIT_PER_S else None


def adapter_slot(topology: NcclTopology, adapter: Adapter) -> PcieLink | None:
    """The PCIe link of an adapter; ``None`` where the dump tells none."""
    return None if adapter.pci is None else _slot(topology.pci[adapter.pci])


def _rail(
    topology: NcclTopology, gpus: Sequence[Gpu], adapter: Adapter, every: Sequence[Adapter]
) -> Rail:
    slot = adapter_slot(topology, adapter)
    if slot is not None:
        ports = sum(one.pci == adapter.pci for one in every)
        if ports > 1:
            lanes = max(1, slot.lanes // ports)
            slot = PcieLink(gigatransfers_per_s=slot.gigatransfers_per_s, lanes=lanes)
    return Rail(
        name=visible(adapter.name or f"nic{every.index(adapter)}"),
        gbit_per_s=adapter.speed_gbit_per_s or 0.0,
        layer=_layer(topology, adapter),
        slot=slot,
        near=_is_near(topology, gpus, adapter),
    )


def _layer(topology: NcclTopology, adapter: Adapter) -> LinkLayer:
    device = None if adapter.pci is None else topology.pci[adapter.pci]
    if device is not None and device.vendor == _AMAZON:
        return LinkLayer.EFA
    if device is not None and (device.pci_class or 0) >> 8 == _INFINIBAND_CLASS:
        return LinkLayer.INFINIBAND
    if adapter.guid in _NO_GUIDS and not adapter.gdr:
        return LinkLayer.TCP
    return LinkLayer.ROCE


def _is_near(topology: NcclTopology, gpus: Sequence[Gpu], adapter: Adapter) -> bool:
    """Whether GPUDirect RDMA works with one GPU at least, as far as the dump says."""
    if not gpus:
        return adapter.gdr is not False
    return any(
        gpu_adapter_path(topology, gpu, adapter).type <= PathType.PXB
        and gpu.gdr is not False
        and adapter.gdr is not False
        for gpu in gpus
    )


def _near_rails(
    topology: NcclTopology, gpus: Sequence[Gpu], adapters: Sequence[Adapter]
) -> tuple[tuple[int, ...], ...]:
    found = []
    for gpu in gpus:
        kinds = [gpu_adapter_path(topology, gpu, one).type for one in adapters]
        best = min(kinds, default=None)
        found.append(tuple(place for place, kind in enumerate(kinds) if kind == best))
    return tuple(found)
