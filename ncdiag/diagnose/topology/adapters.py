"""Adapters: too far from a GPU, missing, slower than the others, unusable for GPUDirect."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ncdiag.diagnose.topology.findings import degraded, info, sides
from ncdiag.diagnose.topology.layout import SWITCH, Holder, even, fewest, levels
from ncdiag.diagnose.topology.machine import (
    Machine,
    is_socket,
    is_virtual,
    port_speed,
)
from ncdiag.diagnose.topology.peers import below_the_usual, by, listed, split
from ncdiag.expect.nccl_links import ADAPTER_DEFAULT_GBIT_PER_S
from ncdiag.model.topology import Adapter, Gpu, TopologyFinding
from ncdiag.model.units import format_count

# The fastest port there is: XDR over eight lanes.
_FASTEST_GBIT_PER_S = 1600.0
# A choice of ours: as many as a usual host has rails, so that more of them hide the real ones.
_MANY_VIRTUAL = 8


def check_adapters(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield what is wrong with the adapters."""
    yield from _far(machine)
    yield from _missing(machine)
    yield from _implausible(machine)
    yield from _mixed(machine)
    yield from _gpudirect(machine)
    yield from _kinds(machine)


def _far(machine: Machine) -> Iterator[TopologyFinding]:
    fabric = machine.fabric()
    gpus = {gpu.pci: gpu for gpu in machine.topology.gpus}.values()
    ports = Counter(machine.top_bridge(port.pci) for port in fabric)
    close = [gpu for gpu in gpus if _near(machine, gpu, ports)]
    cards = {port.pci for port in fabric}
    # Fewer adapters than pairs of GPUs: some GPU is far by design.
    if len(close) * 2 <= len(gpus) or len(cards) * 2 < len(gpus):
        return
    served = {machine.top_bridge(gpu.pci) for gpu in close}
    lone = [machine.adapter_label(a) for a in fabric if machine.top_bridge(a.pci) not in served]
    elsewhere = f"; near no GPU is {listed(lone)}" if lone else ""
    for gpu in gpus:
        if not _near(machine, gpu, ports) and not gpu.c2c_gb_per_s:
            yield degraded(
                "gpu_nic_far",
                machine.gpu_where(gpu),
                f"{machine.gpu_label(gpu)} shares a PCIe switch with no adapter; {len(close)} of "
                f"the {len(gpus)} GPUs do{elsewhere}",
            )


def _near(machine: Machine, gpu: Gpu, ports: Counter[int | None]) -> int:
    """Return how many of ``ports``, by topmost bridge, a GPU reaches by PIX or PXB."""
    top = machine.top_bridge(gpu.pci)
    return 0 if top is None else ports[top]


def _missing(machine: Machine) -> Iterator[TopologyFinding]:
    for level in levels(machine):
        counts = [(holder, len(holder.adapters)) for holder in level]
        # Sockets may be even because one of them has an adapter besides those of its switches.
        if even(counts) and level[0].kind == SWITCH:
            return
        for group in by(level, lambda holder: len(holder.gpus)).values():
            low = fewest([(holder, len(holder.adapters)) for holder in group], least_agreeing=2)
            if low is None:
                continue
            holder, usual = low
            yield degraded(
                "nic_missing",
                holder.name,
                f"{holder.kind} {holder.name} with {_gpus(machine, holder)} has "
                f"{_adapters(holder)}{_those(machine, holder)}; each of the "
                f"other {len(group) - 1} with as many GPUs has {usual}",
            )
            return


def _gpus(machine: Machine, holder: Holder) -> str:
    return listed([machine.gpu_label(gpu) for gpu in holder.gpus])


def _adapters(holder: Holder) -> str:
    return format_count(len(holder.adapters), "adapter") if holder.adapters else "no adapters"


def _those(machine: Machine, holder: Holder) -> str:
    names = [machine.adapter_where(adapter) for adapter in holder.adapters]
    return f" ({listed(names)})" if names else ""


def _implausible(machine: Machine) -> Iterator[TopologyFinding]:
    yield from _unstated(machine)
    ports = [
        adapter
        for adapter in machine.topology.adapters
        if adapter.speed_gbit_per_s is not None and not is_socket(adapter)
    ]
    wrong = [adapter for adapter in ports if not _is_plausible(adapter)]
    if not wrong:
        return
    few = len(wrong) < len(ports) - len(wrong)
    for adapter in wrong if few else wrong[:1]:
        speed = adapter.speed_gbit_per_s
        yield (degraded if few else info)(
            "nic_speed_implausible",
            machine.adapter_where(adapter),
            f"{machine.adapter_label(adapter)} states {speed:,g} Gbit/s, which no port has; "
            f"{len(ports) - len(wrong)} of the {len(ports)} ports state a speed that can be, and "
            "no sum can use this one",
        )


def _unstated(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield the few fabric ports without a speed, or with one that is no number."""
    ports = [port for port in machine.rdma() if port.has_element]
    result = split((port, port.speed_gbit_per_s is not None) for port in ports)
    if result is None or not result.usual:
        return
    for port, _ in result.odd:
        yield degraded(
            "nic_speed_implausible",
            machine.adapter_where(port),
            f"{machine.adapter_label(port)} states no number as its speed, for which NCCL takes "
            f"{ADAPTER_DEFAULT_GBIT_PER_S:g} Gbit/s; {result.agree} of the {result.total} ports "
            "state theirs",
        )


def _is_plausible(adapter: Adapter) -> bool:
    speed = port_speed(adapter)
    return speed is None or 0 < speed <= _FASTEST_GBIT_PER_S


def _mixed(machine: Machine) -> Iterator[TopologyFinding]:
    ports = [
        (adapter, speed)
        for adapter in machine.fabric()
        if (speed := port_speed(adapter)) and _is_plausible(adapter)
    ]
    result = below_the_usual(ports)
    if result is None:
        if speeds := split(ports):
            yield _differing(machine, ports, speeds.groups)
        return
    rails = [adapter for adapter, speed in ports if speed >= result.usual]
    purpose = _Purposes(machine, rails, [adapter for adapter, _ in result.odd])
    for adapter, speed in result.odd:
        text = (
            f"{machine.adapter_label(adapter)} is at {speed:g} Gbit/s; {result.agree} of the "
            f"{result.total} fabric ports are at {result.usual:g} Gbit/s"
        )
        reason = purpose.of(adapter)
        if reason:
            yield info("nic_speed_mixed", machine.adapter_where(adapter), f"{text}; {reason}")
        else:
            yield degraded("nic_speed_mixed", machine.adapter_where(adapter), text)
    if not result.odd:
        yield _differing(machine, ports, result.groups)


def _differing(
    machine: Machine,
    ports: Sequence[tuple[Adapter, float]],
    groups: Mapping[float, tuple[Adapter, ...]],
) -> TopologyFinding:
    slowest = min(ports, key=lambda pair: pair[1])[0]
    told = sides(groups, lambda speed: f"{speed:g} Gbit/s", machine.adapter_label)
    return info(
        "nic_speed_mixed",
        machine.adapter_where(slowest),
        f"fabric ports differ, and no majority says which are wrong: {told}",
    )


class _Purposes:
    """What slow ports are for, where their model or their place tells."""

    def __init__(self, machine: Machine, rails: Sequence[Adapter], odd: Sequence[Adapter]) -> None:
        self._machine = machine
        self._models = {machine.model(rail) for rail in rails}
        ports = Counter(machine.top_bridge(rail.pci) for rail in rails)
        near = [_near(machine, gpu, ports) for gpu in machine.topology.gpus]
        self._served = any(near)
        self._even = len(set(near)) == 1
        self._switches = {machine.top_bridge(gpu.pci) for gpu in machine.topology.gpus} - {None}
        self._several = len(odd) > 1
        self._cards = {rail.pci for rail in rails}

    def of(self, adapter: Adapter) -> str | None:
        """Say what a slow port is for; ``None`` where it should be as fast as the others."""
        model = self._machine.model(adapter)
        if model is not None and model not in self._models:
            return "it is another model, so probably for storage or management"
        if self._served and self._machine.top_bridge(adapter.pci) not in self._switches:
            return "it is near no GPU while the others are, so probably for storage or management"
        if self._served and self._even:
            return "every GPU has as many fast ports without it, so probably for storage"
        if not self._served and self._several and adapter.pci not in self._cards:
            return "there are several of them, so probably for storage or management"
        return None


def _gpudirect(machine: Machine) -> Iterator[TopologyFinding]:
    gpus = [
        (machine.gpu_where(gpu), machine.gpu_label(gpu), gpu.gdr)
        for gpu in machine.topology.gpus
        if gpu.gdr is not None
    ]
    yield from _without("GPUs", gpus)
    ports = [a for a in machine.fabric() if a.gdr is not None]
    for like in by(ports, machine.model).values():
        yield from _without(
            "adapters",
            [(machine.adapter_where(a), machine.adapter_label(a), bool(a.gdr)) for a in like],
        )


def _without(what: str, having: Sequence[tuple[str, str, bool]]) -> Iterator[TopologyFinding]:
    off = [entry for entry in having if not entry[2]]
    if not off:
        return
    result = split((entry, entry[2]) for entry in having)
    if result is not None and result.odd and result.usual:
        for (where, label, _), _ in result.odd:
            yield degraded(
                "gdr_unavailable",
                where,
                f"no GPUDirect RDMA on {label}; {result.agree} of the {result.total} {what} "
                "have it",
            )
        return
    labels = [label for _, label, _ in off]
    yield info(
        "gdr_unavailable",
        off[0][0],
        f"no GPUDirect RDMA on {len(off)} of {len(having)} {what}: {listed(labels)}",
    )


def _kinds(machine: Machine) -> Iterator[TopologyFinding]:
    adapters = [adapter for adapter in machine.topology.adapters if adapter.has_element]
    virtual = [adapter for adapter in adapters if is_virtual(adapter)]
    if len(virtual) > _MANY_VIRTUAL:
        names = [machine.adapter_where(adapter) for adapter in virtual]
        yield info(
            "virtual_nics_many",
            names[0],
            f"{len(names)} of {len(adapters)} adapters are bridges, tunnels or ends of "
            f"containers: {listed(names)}",
        )
    if adapters and all(map(is_socket, machine.topology.adapters)):
        names = [machine.adapter_where(adapter) for adapter in adapters]
        yield info("no_rdma_nic", names[0], f"only socket adapters: {listed(names)}")
