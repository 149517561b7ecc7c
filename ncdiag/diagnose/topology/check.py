"""What is wrong with one topology dump, whatever its kind."""

from collections.abc import Iterable

from ncdiag.model.topology import (
    GpuMatrix,
    IbFabric,
    IbPorts,
    NcclGraphs,
    NcclTopology,
    SlurmTopology,
    Topology,
    TopologyFinding,
    TopologySeverity,
)

_WORST_FIRST = (TopologySeverity.FATAL, TopologySeverity.DEGRADED, TopologySeverity.INFO)


def check(topology: Topology) -> tuple[TopologyFinding, ...]:
    """Return the findings of one dump, the worst first; none is a healthy one as far as it says.

    Devices are compared with their like in the same dump, never with a data sheet; where no clear
    majority says what is usual, a difference is ``info``.
    """
    found = dict.fromkeys(_rules(topology))
    return tuple(sorted(found, key=lambda finding: _WORST_FIRST.index(finding.severity)))


def _rules(topology: Topology) -> Iterable[TopologyFinding]:
    """What the rules of its kind find; those of the other kinds are not imported."""
    match topology:
        case NcclTopology():
            from ncdiag.diagnose.topology.nccl import check_nccl

            return check_nccl(topology)
        case NcclGraphs():
            from ncdiag.diagnose.topology.graph import check_graphs

            return check_graphs(topology)
        case GpuMatrix():
            from ncdiag.diagnose.topology.matrix import check_matrix

            return check_matrix(topology)
        case IbFabric():
            from ncdiag.diagnose.topology.infiniband import check_fabric

            return check_fabric(topology)
        case IbPorts():
            from ncdiag.diagnose.topology.infiniband import check_ports

            return check_ports(topology)
        case SlurmTopology():
            from ncdiag.diagnose.topology.slurm import check_slurm

            return check_slurm(topology)
