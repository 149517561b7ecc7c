"""NCCL graphs, GPU matrices and ports as text."""

from rich.console import Console
from rich.text import Text

from ncdiag.model.topology import GpuMatrix, GraphChannel, IbPorts, NcclGraph, NcclGraphs
from ncdiag.model.units import format_rate
from ncdiag.report.topology.styles import heading, safe, short, table

_CHANNELS = 4
_MATRIX_GAP = 1
_FAR = {"SYS": "red", "NODE": "yellow", "PHB": "yellow"}


def graphs(topology: NcclGraphs, console: Console, *, verbose: bool) -> None:
    """A row for each graph, then the order of its channels."""
    columns = ("id", "pattern", "channels", "in a host", "between", "GB/s in all", "paths")
    grid = table(columns, right=("id", "channels", "in a host", "between", "GB/s in all"))
    for one in topology.graphs:
        paths = f"{short(one.intra_path)} / {short(one.inter_path)}"
        rates = [_figure(rate) for rate in (one.intra_gb_per_s, one.inter_gb_per_s, _whole(one))]
        grid.add_row(
            safe(one.id), safe(one.pattern), safe(one.nchannels), *map(Text, rates), Text(paths)
        )
    console.print(grid)
    for one in topology.graphs:
        if one.channels:
            _channels(one, console, verbose=verbose)


def _figure(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:g}"


def _whole(graph: NcclGraph) -> float | None:
    """What all channels of a graph carry inside a host, in GB/s."""
    if graph.intra_gb_per_s is None or graph.nchannels is None:
        return None
    return graph.intra_gb_per_s * graph.nchannels


def _channels(graph: NcclGraph, console: Console, *, verbose: bool) -> None:
    console.print()
    console.print(heading(f"Channels of graph {short(graph.id)} ({short(graph.pattern)})"))
    most = len(graph.channels) if verbose else _CHANNELS
    for number, channel in enumerate(graph.channels[:most]):
        console.print(Text(f"{number:>3}  {_order(channel)}"))
    more = len(graph.channels) - most
    if more > 0:
        console.print(Text(f"     and {more} more: see --verbose"))


def _order(channel: GraphChannel) -> str:
    """The adapter that receives, the GPUs in order, the adapter that sends."""
    ends = [f"net {short(name)}" for name in channel.nets]
    gpus = " ".join(short(name) for name in channel.gpus)
    if len(ends) == 2:
        return f"{ends[0]} > {gpus} > {ends[1]}"
    return " > ".join([*ends, gpus])


def matrix(topology: GpuMatrix, console: Console) -> None:
    """The table as the tool printed it, in pieces that fit, and what it says of each row."""
    names = [*topology.gpus, *topology.nics]
    cells = {(cell.a, cell.b): cell.path for cell in topology.cells}
    label = max((len(short(name)) for name in names), default=0)
    width = max([len(short(text)) for text in (*names, *cells.values())], default=1)
    fits = max((console.width - label) // (width + _MATRIX_GAP), 1)
    for first in range(0, len(names), fits):
        columns = names[first : first + fits]
        head = "".join(f"{'':{_MATRIX_GAP}}{short(name):>{width}}" for name in columns)
        console.print(Text(" " * label + head, "bold"), no_wrap=True, crop=False)
        for row in names:
            line = Text(f"{short(row):<{label}}", "bold")
            for column in columns:
                path = cells.get((row, column), "X" if row == column else "-")
                text = f"{'':{_MATRIX_GAP}}{short(path):>{width}}"
                line.append(text, _FAR.get(path, "default"))
            console.print(line, no_wrap=True, crop=False)
    _about(topology, console)
    for damage in topology.damage:
        console.print(safe(f"not readable: {damage}", "yellow"))


def _about(topology: GpuMatrix, console: Console) -> None:
    known = [
        name
        for name in (*topology.gpus, *topology.nics)
        if name in topology.numa or name in topology.cpu_affinity or name in topology.nic_names
    ]
    if not known:
        return
    grid = table(("", "name", "NUMA node", "CPUs"), right=("NUMA node",))
    for name in known:
        grid.add_row(
            safe(name),
            safe(topology.nic_names.get(name)),
            safe(topology.numa.get(name)),
            safe(topology.cpu_affinity.get(name)),
        )
    console.print()
    console.print(grid)


def ports(topology: IbPorts, console: Console) -> None:
    """A row for each port."""
    grid = table(("adapter", "port", "state", "physical", "rate", "link layer", "GUID"))
    for port in topology.ports:
        good = (port.state or "").lower() == "active"
        grid.add_row(
            safe(port.ca),
            safe(port.port),
            safe(port.state, "green" if good else "red"),
            safe(port.physical),
            Text(format_rate(port.rate_gbit_per_s)),
            safe(port.link_layer),
            safe(port.guid),
        )
    console.print(grid)
