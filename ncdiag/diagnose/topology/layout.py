"""How GPUs and adapters are spread over sockets and switches, and what the file itself is worth."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.topology.findings import degraded, info
from ncdiag.diagnose.topology.machine import Machine, is_invented
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, ONE_ODD_OF, Item, by, grouped, listed
from ncdiag.model.topology import Adapter, Gpu, NcclTopology, TopologyFinding
from ncdiag.model.units import format_count

_GPU_MISSING = "gpu_missing"
_LEAST_GPUS = 3
SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Holder:
    """A socket or a switch with the GPUs and the ports below it."""

    kind: str
    name: str
    gpus: tuple[Gpu, ...]
    adapters: tuple[Adapter, ...]
    """Ports of any speed but sockets: a port that came up slow is not missing."""


def levels(machine: Machine) -> Iterator[tuple[Holder, ...]]:
    """Yield what holds GPUs, level by level: sockets, then switches from the socket down."""
    gpus = {gpu.pci: gpu for gpu in machine.topology.gpus}.values()
    if not gpus:
        return
    fabric = machine.rdma()
    sockets = by(gpus, machine.cpu)
    ports = by(fabric, machine.cpu)
    several = len({cpu.host_hash for cpu in machine.topology.cpus}) > 1
    yield tuple(
        Holder("socket", _socket_name(machine, cpu, several=several), found, ports.get(cpu, ()))
        for cpu, found in sockets.items()
    )
    ends = {gpu.pci for gpu in gpus} | {port.pci for port in fabric}
    ways = {pci: machine.bridges_above(pci)[::-1] for pci in ends}
    for depth in range(max(map(len, ways.values()), default=0)):
        at = {pci: way[depth] for pci, way in ways.items() if len(way) > depth}
        held = grouped((gpu, at[gpu.pci]) for gpu in gpus if gpu.pci in at)
        below = grouped((port, at[port.pci]) for port in fabric if port.pci in at)
        yield tuple(
            Holder(SWITCH, _device_name(machine, index), found, below.get(index, ()))
            for index, found in held.items()
        )


def even(counts: Sequence[tuple[Item, int]]) -> bool:
    """Whether at least two hold as much as each other: what is not here is then elsewhere."""
    return len(counts) > 1 and len({count for _, count in counts}) == 1


def fewest(counts: Sequence[tuple[Item, int]], *, least_agreeing: int) -> tuple[Item, int] | None:
    """Return the only one that has fewer than all the others, which agree, and their figure."""
    low = min((count for _, count in counts), default=0)
    lowest = [item for item, count in counts if count == low]
    others = [count for _, count in counts if count != low]
    if len(lowest) != 1 or len(others) < least_agreeing or len(set(others)) != 1:
        return None
    return lowest[0], others[0]


def check_layout(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield GPUs that are missing, devices that are there twice, and what the file lacks."""
    numbered = list(_gaps(machine))
    yield from numbered or _fewer_gpus(machine)
    yield from _duplicates(machine)
    yield from _numa(machine.topology)
    yield from _flattened(machine)


def _socket_name(machine: Machine, cpu: int, *, several: bool) -> str:
    numa = machine.topology.cpus[cpu].numa
    name = f"NUMA node {numa}" if numa is not None else f"CPU {cpu}"
    return f"{name} of host {machine.host(cpu)}" if several else name


def _device_name(machine: Machine, index: int) -> str:
    return machine.topology.pci[index].busid or f"PCI device {index}"


def _fewer_gpus(machine: Machine) -> Iterator[TopologyFinding]:
    for level in levels(machine):
        counts = [(holder, len(holder.gpus)) for holder in level]
        if even(counts):
            break
        low = fewest(counts, least_agreeing=3)
        if low is not None:
            holder, usual = low
            labels = [machine.gpu_label(gpu) for gpu in holder.gpus]
            yield degraded(
                _GPU_MISSING,
                holder.name,
                f"{holder.kind} {holder.name} has {format_count(len(holder.gpus), 'GPU')} "
                f"({listed(labels)}); each of the other {len(level) - 1} has {usual}",
            )
            return
    yield from _without_gpu(machine)


def _without_gpu(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield the only switch that has the adapters of all the others and no GPU."""
    full = next((level for level in levels(machine) if level[0].kind == SWITCH), ())
    names = {holder.name for holder in full}
    ports = by(machine.rdma(), lambda port: machine.top_bridge(port.pci))
    bare = [top for top in ports if top is not None and _device_name(machine, top) not in names]
    kinds = {_kinds(machine, holder.adapters) for holder in full}
    sizes = {len(holder.gpus) for holder in full}
    if len(bare) != 1 or len(full) < LEAST_ALIKE or len(sizes) != 1:
        return
    if kinds != {_kinds(machine, ports[bare[0]])}:
        return
    name = _device_name(machine, bare[0])
    yield info(
        _GPU_MISSING,
        name,
        f"switch {name} has no GPU; each of the {len(full)} others has {sizes.pop()} beside like "
        "adapters",
    )


def _kinds(machine: Machine, ports: Sequence[Adapter]) -> tuple[tuple[str, float], ...]:
    """Return models and speeds of ports, in order."""
    devices = [(machine.device(port), port.speed_gbit_per_s or 0) for port in ports]
    return tuple(sorted((f"{d.vendor}:{d.device}" if d else "", speed) for d, speed in devices))


def _gaps(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield GPUs that the numbering lets expect."""
    known = {device.busid for device in machine.topology.pci}
    hosts = by(machine.topology.gpus, lambda gpu: machine.host(machine.cpu(gpu)))
    for host, gpus in hosts.items():
        of_host = f" of host {host}" if len(hosts) > 1 else ""
        indexes = {gpu.index for gpu in gpus if gpu.index is not None}
        ranks = {gpu.rank for gpu in gpus if gpu.rank is not None}
        lacking = _gap(indexes)
        unranked = _gap(ranks)
        if not lacking and indexes == ranks and _few(min(indexes, default=0), len(indexes)):
            lacking = unranked = list(range(min(indexes, default=0)))
        if not lacking and not unranked:
            continue
        missing = lacking or unranked
        what = "index" if lacking else "rank"
        text = (
            f"no GPU with {what} {listed([str(number) for number in missing])} among the "
            f"{len(gpus)} GPUs from {min(indexes or ranks)} to {max(indexes or ranks)}"
            f"{_leading_there(known, gpus)}"
        )
        where = f"{'GPU' if lacking else 'rank'} {missing[0]}{of_host}"
        if lacking and (unranked or not ranks):
            yield degraded(_GPU_MISSING, where, text)
        else:
            whole = "ranks" if lacking else "indexes"
            yield info(
                _GPU_MISSING,
                where,
                f"{text}; the {whole} have no gap, so the communicator may not use it",
            )


def _gap(numbers: set[int]) -> list[int]:
    """Return the few numbers that a row of equal steps lacks."""
    if len(numbers) < _LEAST_GPUS:
        return []
    row = sorted(numbers)
    step = math.gcd(*(b - a for a, b in itertools.pairwise(row)))
    whole = (row[-1] - row[0]) // step + 1
    if not _few(whole - len(row), len(row)):
        return []
    return [number for number in range(row[0], row[-1], step) if number not in numbers]


def _few(missing: int, there: int) -> bool:
    return there >= _LEAST_GPUS and missing * ONE_ODD_OF <= there + missing


def _leading_there(known: set[str | None], gpus: Sequence[Gpu]) -> str:
    """Say which bus id the others' links lead to, where the file has no such device."""
    nowhere = {
        link.target
        for gpu in gpus
        for link in gpu.links
        if link.target and link.target not in known and (link.target_class or 0) >> 16 in {3, 0x12}
    }
    return f"; links of the others lead to {listed(sorted(nowhere))}" if nowhere else ""


def _duplicates(machine: Machine) -> Iterator[TopologyFinding]:
    topology = machine.topology
    halves = {gpu.pci for gpu in topology.gpus if gpu.mlopart is not None}
    devices = by(
        [
            device
            for index, device in enumerate(topology.pci)
            if index not in halves and device.busid is not None and not is_invented(device.busid)
        ],
        lambda device: (machine.host(device.cpu), device.busid),
    )
    doubled = sum(len(found) > 1 for found in devices.values())
    for (_, busid), found in devices.items():
        if len(found) > 1:
            yield degraded(
                "duplicate_busid",
                busid or "",
                f"{len(found)} PCI devices have the bus id {busid}, which only one can have; "
                f"{len(devices) - doubled} of the {len(devices)} bus ids belong to one device",
            )
    indexes = by(
        [gpu for gpu in topology.gpus if gpu.index is not None and gpu.mlopart is None],
        lambda gpu: (machine.host(machine.cpu(gpu)), gpu.index),
    )
    for (_, index), gpus in indexes.items():
        if len(gpus) > 1:
            labels = [machine.gpu_where(gpu) for gpu in gpus]
            yield degraded(
                "duplicate_busid",
                labels[-1],
                f"{len(gpus)} GPUs have the index {index}: {listed(labels)}",
            )


def _numa(topology: NcclTopology) -> Iterator[TopologyFinding]:
    unknown = [
        index for index, cpu in enumerate(topology.cpus) if (cpu.numa or 0) < 0 or cpu.numa is None
    ]
    if unknown:
        yield info(
            "numa_unknown",
            f"CPU {unknown[0]}",
            f"{len(unknown)} of {len(topology.cpus)} CPU elements state no NUMA node",
        )


def _flattened(machine: Machine) -> Iterator[TopologyFinding]:
    devices = machine.topology.pci
    if not devices:
        return
    invented = [device.busid for device in devices if is_invented(device.busid)]
    bare = [d for d in devices if d.pci_class is None and d.link_speed is None]
    bridges = [index for index in range(len(devices)) if machine.is_bridge(index)]
    if invented:
        where, text = invented[0], f"{len(invented)} switches have invented bus ids"
    elif bare:
        where, text = bare[0].busid, f"{len(bare)} of {len(devices)} devices state a bus id only"
    elif not bridges:
        where, text = devices[0].busid, f"none of the {len(devices)} PCI devices is a bridge"
    else:
        return
    yield info("vm_flattened", where or "PCI device 0", f"{text}: a template or a virtual machine")
