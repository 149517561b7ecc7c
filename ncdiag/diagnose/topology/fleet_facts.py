"""What of a dump is compared between hosts: facts by subject, without what differs by nature.

Left out: guids, host hashes, ranks, the order of rows, indexes that programs count up, which
switch takes the odd link of a GPU, and interfaces that containers come and go with.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from ncdiag.diagnose.topology.machine import NVSWITCH_CLASS, Machine, is_invented, is_virtual
from ncdiag.diagnose.topology.peers import by
from ncdiag.model.topology import (
    Adapter,
    Gpu,
    GpuLink,
    GpuMatrix,
    IbFabric,
    IbPorts,
    NcclGraphs,
    NcclTopology,
    SlurmTopology,
    Topology,
)


class Subject(NamedTuple):
    """One thing a dump speaks of; ``ends`` are the GPUs or adapters that a link or path joins."""

    kind: str
    name: str
    ends: tuple[str, ...] = ()


Aspects = tuple[tuple[str, Hashable], ...]
Item = tuple[Subject, Aspects]

# Aspects that tell hosts apart without a fault: told, and never degraded.
MINOR = frozenset({"name", "affinity"})
# Aspects that hold bus numbers and names: two models of a server differ in them.
OF_PLACE = frozenset({"place", "name", "affinity"})


def items_of(topology: Topology) -> Iterator[Item]:
    """Yield every subject of ``topology`` once, with its facts."""
    facts = list(_facts(topology))
    if len({subject for subject, _ in facts}) == len(facts):
        yield from facts
        return
    times: Counter[Subject] = Counter()
    for subject, aspects in sorted(facts, key=repr):
        times[subject] += 1
        number = f" #{times[subject]}" if times[subject] > 1 else ""
        yield subject._replace(name=f"{subject.name}{number}"), aspects


def _facts(topology: Topology) -> Iterator[Item]:
    match topology:
        case NcclTopology():
            yield from _of_nccl(topology)
        case NcclGraphs():
            yield from _of_graphs(topology)
        case GpuMatrix():
            yield from _of_matrix(topology)
        case IbPorts():
            yield from _of_ports(topology)
        case IbFabric():
            yield from _of_fabric(topology)
        case SlurmTopology():
            yield from _of_slurm(topology)


def _of_nccl(topology: NcclTopology) -> Iterator[Item]:
    machine = Machine(topology)
    hosts = list(dict.fromkeys(cpu.host_hash for cpu in topology.cpus))
    prefixes = {host: f"host {at} " if len(hosts) > 1 else "" for at, host in enumerate(hosts)}
    for cpu in topology.cpus:
        yield (
            Subject("CPU", f"{prefixes[cpu.host_hash]}NUMA node {cpu.numa}"),
            (
                ("model", f"{cpu.vendor} {cpu.family_id}/{cpu.model_id} {cpu.arch}"),
                ("affinity", cpu.affinity),
            ),
        )
    for gpu in topology.gpus:
        yield from _of_gpu(machine, gpu, prefixes)
    yield from _of_adapters(machine, prefixes)
    yield from _of_bridges(machine, prefixes)


def _prefix(machine: Machine, cpu: int, prefixes: Mapping[str | None, str]) -> str:
    return prefixes[machine.topology.cpus[cpu].host_hash]


def _link(machine: Machine, pci: int) -> Aspects:
    device = machine.topology.pci[pci]
    return (
        ("model", f"{device.vendor}:{device.device}"),
        ("rate", device.gigatransfers_per_s),
        ("lanes", device.lanes),
        ("place", _place(machine, pci)),
    )


def _place(machine: Machine, pci: int) -> str:
    numa = machine.topology.cpus[machine.topology.pci[pci].cpu].numa
    above = [machine.topology.pci[index].busid or "?" for index in machine.above(pci)]
    return " > ".join([f"NUMA node {numa}", *above[::-1]])


def _of_gpu(machine: Machine, gpu: Gpu, prefixes: Mapping[str | None, str]) -> Iterator[Item]:
    prefix = _prefix(machine, machine.cpu(gpu), prefixes)
    half = "" if gpu.mlopart is None else f" part {gpu.mlopart}"
    name = f"{prefix}{machine.topology.busid(gpu)}{half}"
    switched = [link for link in gpu.links if _to_switch(link)]
    yield (
        Subject("GPU", name),
        (
            *_link(machine, gpu.pci),
            ("sm", gpu.gcn or gpu.sm),
            ("GPUDirect", gpu.gdr),
            ("NVLinks", sum(link.count or 0 for link in switched)),
            ("C2C", gpu.c2c_gb_per_s),
        ),
    )
    direct: Counter[str] = Counter()
    for link in gpu.links:
        if link not in switched:
            direct[f"{prefix}{link.target}"] += link.count or 0
    for target, count in direct.items():
        yield Subject("link", f"{name} to {target}", (name, target)), (("links", count),)


def _to_switch(link: GpuLink) -> bool:
    return link.target_class == NVSWITCH_CLASS or is_invented(link.target)


def _of_adapters(machine: Machine, prefixes: Mapping[str | None, str]) -> Iterator[Item]:
    """Yield cards with their ports, and ports that are on no card."""
    ports = [port for port in machine.topology.adapters if not is_virtual(port)]
    for pci, those in by(ports, lambda port: port.pci).items():
        if pci is None:
            for port in those:
                numa = machine.topology.cpus[port.cpu].numa
                prefix = _prefix(machine, port.cpu, prefixes)
                yield Subject("adapter", f"{prefix}{port.name} of NUMA node {numa}"), _of_port(port)
            continue
        card = f"{_prefix(machine, those[0].cpu, prefixes)}{machine.topology.pci[pci].busid}"
        names = ",".join(sorted(port.name for port in those if port.name))
        yield Subject("adapter", card), (*_link(machine, pci), ("name", names))
        for port in those:
            number = f" port {port.port}" if port.port is not None else ""
            yield Subject("port", f"{card}{number}", (card,)), _of_port(port)


def _of_port(port: Adapter) -> Aspects:
    return ("speed", port.speed_gbit_per_s), ("GPUDirect", port.gdr), ("name", port.name)


def _of_bridges(machine: Machine, prefixes: Mapping[str | None, str]) -> Iterator[Item]:
    ends: set[int | None] = {gpu.pci for gpu in machine.topology.gpus}
    ends |= {port.pci for port in machine.topology.adapters}
    for index, device in enumerate(machine.topology.pci):
        if index not in ends:
            name = f"{_prefix(machine, device.cpu, prefixes)}{device.busid}"
            yield Subject("bridge", name), _link(machine, index)


def _of_graphs(dump: NcclGraphs) -> Iterator[Item]:
    for graph in dump.graphs:
        yield (
            Subject("graph", str(graph.id)),
            (
                ("pattern", graph.pattern),
                ("channels", len(graph.channels)),
                ("GB/s within the host", graph.intra_gb_per_s),
                ("GB/s between hosts", graph.inter_gb_per_s),
                ("path within the host", graph.intra_path),
                ("path between hosts", graph.inter_path),
            ),
        )


def _of_matrix(matrix: GpuMatrix) -> Iterator[Item]:
    for gpu in matrix.gpus:
        yield (
            Subject("GPU", gpu),
            (("NUMA node", matrix.numa.get(gpu)), ("affinity", matrix.cpu_affinity.get(gpu))),
        )
    names = {nic: matrix.nic_names.get(nic, nic) for nic in matrix.nics}
    for nic in matrix.nics:
        yield Subject("adapter", names[nic]), ()
    for cell in matrix.cells:
        a, b = names.get(cell.a, cell.a), names.get(cell.b, cell.b)
        if a != b:
            yield Subject("path", f"{a} to {b}", (a, b)), (("path", cell.path),)


def _of_ports(dump: IbPorts) -> Iterator[Item]:
    for port in dump.ports:
        yield (
            Subject("adapter", f"{port.ca} port {port.port}"),
            (
                ("state", port.state),
                ("physical state", port.physical),
                ("speed", port.rate_gbit_per_s),
                ("link layer", port.link_layer),
            ),
        )


def _of_fabric(fabric: IbFabric) -> Iterator[Item]:
    for node in fabric.nodes:
        yield Subject("node", node.guid), (("kind", node.kind), ("name", node.description))
        for port in node.ports:
            if port.peer_guid is not None:
                yield (
                    Subject("cable", f"{node.guid}[{port.number}]"),
                    (
                        ("peer", f"{port.peer_guid}[{port.peer_port}]"),
                        ("lanes", port.width),
                        ("generation", port.speed),
                    ),
                )


def _of_slurm(topology: SlurmTopology) -> Iterator[Item]:
    for switch in topology.switches:
        yield (
            Subject("switch", switch.name),
            (
                ("switches", ",".join(sorted(switch.switches))),
                ("nodes", ",".join(sorted(switch.nodes))),
            ),
        )
