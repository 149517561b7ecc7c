"""An NCCL topology as a tree of devices, a table of GPUs, and a matrix of paths."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ncdiag.expect.paths import gpu_adapter_path, gpu_pair_path
from ncdiag.model.topology import Adapter, Cpu, Gpu, NcclTopology, PciDevice
from ncdiag.model.units import format_count, format_rate
from ncdiag.report.topology.path_table import PathTable
from ncdiag.report.topology.rows import GpuRow, NcclRows, adapter_name, cpu_name, pcie_text
from ncdiag.report.topology.styles import gb_per_s, indexes, safe, short, table

_BRIDGE, _NVSWITCH = 0x06, 0x068000
_NEAREST = 4


def summary(topology: NcclTopology) -> str:
    """``8 GPUs, 10 adapters, 2 CPUs, 4 NVSwitches``."""
    rows = NcclRows(topology)
    parts = [
        format_count(len(topology.gpus), "GPU"),
        format_count(len(rows.adapters), "adapter"),
        format_count(len(topology.cpus), "CPU"),
    ]
    if rows.nvswitches:
        parts.append(format_count(rows.nvswitches, "NVSwitch"))
    if rows.hosts > 1:
        parts.append(format_count(rows.hosts, "host"))
    return ", ".join(parts)


def render(topology: NcclTopology, console: Console, *, nccl: bool) -> None:
    """Print the tree and what follows from it for each GPU."""
    rows = NcclRows(topology, nccl=nccl)
    for line in _links(rows.gpus):
        console.print(Text(line))
    console.print()
    for tree in _trees(topology):
        console.print(tree)
    if rows.gpus:
        console.print()
        console.print(_gpu_table(rows.gpus, nccl=nccl))


def _links(gpus: Sequence[GpuRow]) -> Iterator[str]:
    """A line for each kind of links between GPUs, and which GPUs have them."""
    alike: dict[str, list[GpuRow]] = defaultdict(list)
    for row in gpus:
        alike[_link_text(row)].append(row)
    for text, rows in alike.items():
        numbers = [row.index for row in rows if row.index is not None]
        who = f"GPU {indexes(numbers)}" if len(numbers) == len(rows) else f"{len(rows)} GPUs"
        yield f"{text}: {'all GPUs' if len(rows) == len(gpus) > 1 else who}"


def _link_text(row: GpuRow) -> str:
    name = "xGMI" if row.link_kind == "xgmi" else "NVLink"
    c2c = f"C2C to the CPU, {gb_per_s(row.c2c_gb_per_s)}" if row.c2c_gb_per_s else ""
    if not row.nvlinks:
        return c2c or "no links between GPUs but PCIe"
    ends = {"gpu": "to GPUs", "switch": "to switches", "mixed": "to GPUs and switches"}
    text = f"{name} {row.nvlinks} {ends.get(row.nvlink_to, '')}"
    if row.nvlink_gb_per_s is not None:
        text += f", {gb_per_s(row.nvlink_gb_per_s)} each way"
    return f"{text}; {c2c}" if c2c else text


def _trees(topology: NcclTopology) -> Iterator[Tree]:
    """A tree for each of several hosts, or for each CPU of one; PCI devices below their bridges."""
    cpus: dict[str | None, list[int]] = defaultdict(list)
    for number, cpu in enumerate(topology.cpus):
        cpus[cpu.host_hash].append(number)
    if len(cpus) == 1:
        below_cpu = {
            number: Tree(_cpu_label(cpu), guide_style="dim")
            for number, cpu in enumerate(topology.cpus)
        }
        _add_devices(topology, below_cpu)
        return iter(below_cpu.values())
    below_cpu, hosts = {}, []
    for number, (host_hash, members) in enumerate(cpus.items()):
        name = f"host {number} {short(host_hash or '')}".rstrip()
        hosts.append(Tree(Text(name, "bold"), guide_style="dim"))
        for member in members:
            below_cpu[member] = hosts[-1].add(_cpu_label(topology.cpus[member]))
    _add_devices(topology, below_cpu)
    return iter(hosts)


def _add_devices(topology: NcclTopology, below_cpu: dict[int, Tree]) -> None:
    gpus: dict[int, list[Gpu]] = defaultdict(list)
    for gpu in topology.gpus:
        gpus[gpu.pci].append(gpu)
    adapters: dict[int, list[Adapter]] = defaultdict(list)
    for adapter in topology.adapters:
        if adapter.pci is None:
            below_cpu[adapter.cpu].add(_adapter_label(topology, adapter))
        else:
            adapters[adapter.pci].append(adapter)
    nodes: dict[int, Tree] = {}
    for number, device in enumerate(topology.pci):
        parent = nodes.get(device.parent) if device.parent is not None else None
        here = below_cpu[device.cpu] if parent is None else parent
        labels = [_gpu_label(gpu, device) for gpu in gpus[number]]
        labels += [_adapter_label(topology, one) for one in adapters[number]]
        if not labels:
            labels = [_device_label(device)]
        nodes[number] = here.add(labels[0])
        for label in labels[1:]:
            here.add(label)


def _cpu_label(cpu: Cpu) -> Text:
    return safe(cpu_name(cpu), "bold")


def _gpu_label(gpu: Gpu, device: PciDevice) -> Text:
    label = safe(f"GPU {'?' if gpu.index is None else gpu.index}", "green")
    rank = f"  rank {gpu.rank}" if gpu.rank is not None else ""
    label.append(f"  {short(device.busid)}  {pcie_text(device)}{rank}", "default")
    if gpu.gdr is False:
        label.append("  no GPUDirect RDMA", "yellow")
    return label


def _adapter_label(topology: NcclTopology, adapter: Adapter) -> Text:
    device = None if adapter.pci is None else topology.pci[adapter.pci]
    label = safe(adapter_name(topology, adapter) or "adapter", "blue")
    speed = format_rate(adapter.speed_gbit_per_s) if adapter.speed_gbit_per_s is not None else ""
    parts = [speed, f"port {adapter.port}" if adapter.port and adapter.port > 1 else ""]
    if device:
        named = adapter.name is not None
        parts = [short(device.busid) if named else "", pcie_text(device), *parts]
    for part in parts:
        label.append(f"  {part}" if part else "", "default")
    if adapter.gdr is False:
        label.append("  no GPUDirect RDMA", "yellow")
    return label


def _device_label(device: PciDevice) -> Text:
    kind = "device"
    if device.pci_class == _NVSWITCH:
        kind = "NVSwitch"
    elif device.pci_class is not None and device.pci_class >> 16 == _BRIDGE:
        kind = "switch"
    elif device.pci_class is not None:
        kind = f"device of class 0x{device.pci_class:06x}"
    return Text(f"{kind}  {short(device.busid)}  {pcie_text(device)}", "default")


def _gpu_table(gpus: Sequence[GpuRow], *, nccl: bool) -> object:
    columns = ["GPU", "bus id", "sm", "PCIe", "GB/s", "path", "nearest adapters"]
    figures = ["GPU", "GB/s"]
    if nccl:
        columns[-1:] = ["NCCL", "nearest adapters as NCCL sees them"]
    grid = table(columns, right=figures)
    for row in gpus:
        lanes = "?" if row.pcie_lanes is None else row.pcie_lanes
        cells = [
            safe(row.index),
            safe(row.busid),
            safe(row.sm),
            safe(f"gen{row.pcie_gen or '?'} x{lanes}"),
            safe(None if row.pcie_gb_per_s is None else f"{row.pcie_gb_per_s:g}"),
            safe(row.nearest_path),
        ]
        if nccl:
            cells += [safe(row.nearest_path_nccl), _adapters(row.nearest_nics_nccl)]
        else:
            cells.append(_adapters(row.nearest_nics))
        grid.add_row(*cells)
    return grid


def _adapters(names: Sequence[str]) -> Text:
    more = len(names) - _NEAREST
    named = ", ".join(short(name) for name in names[:_NEAREST]) or "-"
    return Text(f"{named} and {more} more" if more > 0 else named)


def path_tables(topology: NcclTopology, *, nccl: bool) -> Iterator[PathTable]:
    """The paths between all GPUs and from each GPU to each adapter, raw or as NCCL sees them."""
    adapters = NcclRows(topology).adapters
    gpus = topology.gpus
    names = [f"GPU{'?' if gpu.index is None else gpu.index}" for gpu in gpus]
    if len(set(names)) < len(names):  # several hosts, or parts of one GPU
        names = [topology.busid(gpu) or f"#{number}" for number, gpu in enumerate(gpus)]
    nics = [adapter_name(topology, one) or f"NIC{number}" for number, one in enumerate(adapters)]
    how = "as NCCL sees them" if nccl else "as the file has them"
    yield PathTable(
        f"Paths between GPUs, {how}",
        names,
        names,
        [[gpu_pair_path(topology, a, b, as_nccl=nccl) for b in gpus] for a in gpus],
    )
    if adapters:
        yield PathTable(
            f"Paths between GPUs and adapters, {how}",
            names,
            nics,
            [[gpu_adapter_path(topology, a, b, as_nccl=nccl) for b in adapters] for a in gpus],
        )
