"""One dump for a terminal: what it is, then the view that its kind asks for."""

from collections.abc import Sequence
from typing import Final, assert_never

from rich.console import Console
from rich.text import Text

from ncdiag.model.errors import UsageError
from ncdiag.model.topology import (
    GpuMatrix,
    IbFabric,
    IbPorts,
    NcclGraphs,
    NcclTopology,
    SlurmTopology,
    Topology,
    TopologyFinding,
    TopologyKind,
    TopologySeverity,
)
from ncdiag.model.units import format_count
from ncdiag.report.topology import fabric_text, nccl_text, views
from ncdiag.report.topology.path_table import render as render_path_table
from ncdiag.report.topology.styles import print_indented, safe, short

KINDS: Final = {
    TopologyKind.NCCL_TOPOLOGY: "NCCL topology",
    TopologyKind.NCCL_GRAPH: "NCCL graphs",
    TopologyKind.GPU_MATRIX: "GPU matrix",
    TopologyKind.IB_FABRIC: "InfiniBand fabric",
    TopologyKind.IB_PORTS: "InfiniBand ports",
    TopologyKind.SLURM_TOPOLOGY: "Slurm topology",
}


def render(
    name: str,
    topology: Topology,
    findings: Sequence[TopologyFinding],
    console: Console,
    *,
    matrix: bool,
    nccl: bool,
    verbose: bool,
) -> None:
    """Print a dump that is called ``name``; ``matrix`` prints paths instead of the tree."""
    head = safe(name, "bold")
    head.append(f": {describe(topology)}", "default")
    print_indented(head, 0, console)
    if matrix and isinstance(topology, NcclTopology):
        for one in nccl_text.path_tables(topology, nccl=nccl):
            console.print()
            render_path_table(one, console)
    else:
        _view(topology, console, nccl=nccl, verbose=verbose)
    if findings:
        console.print()
        console.print(_findings_line(findings))


def describe(topology: Topology) -> str:
    """``NCCL topology: 8 GPUs, 10 adapters, 2 CPUs``, safe to print."""
    return f"{KINDS[topology.kind]}, {_summary(topology)}"


def check_paths_wanted(topology: Topology, *, nccl: bool) -> None:
    """Refuse ``--matrix``, or ``--nccl``, of a dump from which no paths of GPUs follow."""
    if nccl and not isinstance(topology, NcclTopology):
        raise UsageError(f"--nccl needs an NCCL topology, and this is: {KINDS[topology.kind]}")
    if not isinstance(topology, (NcclTopology, GpuMatrix)):
        raise UsageError(f"--matrix needs paths of GPUs, and this is: {KINDS[topology.kind]}")


def _summary(topology: Topology) -> str:
    match topology:
        case NcclTopology():
            return nccl_text.summary(topology)
        case NcclGraphs():
            return format_count(len(topology.graphs), "graph")
        case GpuMatrix():
            gpus, nics = len(topology.gpus), len(topology.nics)
            return f"{format_count(gpus, 'GPU')}, {format_count(nics, 'NIC')}"
        case IbFabric():
            return fabric_text.fabric_summary(topology)
        case IbPorts():
            return format_count(len(topology.ports), "port")
        case SlurmTopology():
            return fabric_text.slurm_summary(topology)
        case _:
            assert_never(topology)


def _view(topology: Topology, console: Console, *, nccl: bool, verbose: bool) -> None:
    match topology:
        case NcclTopology():
            nccl_text.render(topology, console, nccl=nccl)
        case NcclGraphs():
            console.print()
            views.graphs(topology, console, verbose=verbose)
        case GpuMatrix():
            console.print()
            views.matrix(topology, console)
        case IbFabric():
            fabric_text.fabric(topology, console, verbose=verbose)
        case IbPorts():
            console.print()
            views.ports(topology, console)
        case SlurmTopology():
            console.print()
            fabric_text.slurm(topology, console, verbose=verbose)
        case _:
            assert_never(topology)


def _findings_line(findings: Sequence[TopologyFinding]) -> Text:
    """What ``topo check`` would say, in a line."""
    bad = [one for one in findings if one.severity is not TopologySeverity.INFO]
    counted = format_count(len(bad or findings), "thing" if bad else "remark")
    first = (bad or findings)[0]
    what = f"{counted} wrong" if bad else counted
    text = f"{what}, such as {short(first.name)} ({short(first.where)}): see ncdiag topo check"
    return Text(text, "red" if bad else "cyan")
