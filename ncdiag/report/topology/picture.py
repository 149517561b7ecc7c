"""Pictures of dumps as SVG or PNG."""

from ncdiag.model.errors import UsageError
from ncdiag.model.topology import (
    GpuMatrix,
    IbFabric,
    NcclTopology,
    SlurmTopology,
    Topology,
    TopologyFinding,
)
from ncdiag.report.plotting import encoded, new_figure
from ncdiag.report.topology import picture_fabric, picture_matrix, picture_nccl
from ncdiag.report.topology.drawing import Canvas
from ncdiag.report.topology.text import KINDS, describe

_DOTS_PER_INCH = 110
# Wider pictures cannot be opened by common viewers.
_MOST_INCHES = 300


def render(
    name: str, topology: Topology, findings: tuple[TopologyFinding, ...], kind: str
) -> bytes:
    """The picture as ``svg`` or ``png``; what a finding is about is ringed in red.

    Raises :class:`UsageError` for a dump of which there is no picture, or none of a useful size.
    """
    canvas = _draw(topology, frozenset(one.where for one in findings))
    canvas.title(f"{name}: {describe(topology)}")
    width, height = canvas.size_inches
    if width > _MOST_INCHES or height > _MOST_INCHES:
        raise UsageError("too much for one picture; --format json has all of it")
    figure = new_figure((width, height), _DOTS_PER_INCH)
    canvas.paint(figure)
    return encoded(figure, kind)


def _draw(topology: Topology, suspects: frozenset[str]) -> Canvas:
    match topology:
        case NcclTopology():
            return picture_nccl.draw(topology, suspects)
        case GpuMatrix():
            return picture_matrix.draw(topology)
        case IbFabric():
            return picture_fabric.draw_fabric(topology, suspects)
        case SlurmTopology():
            return picture_fabric.draw_slurm(topology, suspects)
        case _:
            raise UsageError(
                f"there is no picture of {KINDS[topology.kind]}; leave out --svg, --png"
            )
