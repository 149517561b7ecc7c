"""Graphs without channels, and graphs that list other channels than they state."""

from collections.abc import Iterator

from ncdiag.diagnose.topology.findings import degraded
from ncdiag.model.topology import NcclGraph, NcclGraphs, TopologyFinding

# NCCL, init.cc: 0 ring and 1 tree carry every communicator; 2, 3 and 4 (CollNet, NVLS) may be
# empty.
_NEEDED = {0: "ring", 1: "tree"}


def check_graphs(dump: NcclGraphs) -> Iterator[TopologyFinding]:
    """Yield what is wrong with the graphs of one dump."""
    for position, graph in enumerate(dump.graphs):
        where = f"graph {graph.id if graph.id is not None else f'at {position}'}"
        listed = len(graph.channels)
        name = _needed(graph)
        if name is not None and not listed:
            yield degraded(
                "graph_empty",
                where,
                f"the {name} graph has no channel, so no collective can use it; "
                f"{sum(bool(other.channels) for other in dump.graphs)} of the {len(dump.graphs)} "
                "graphs have some",
            )
        if graph.nchannels is not None and graph.nchannels != listed:
            yield degraded(
                "graph_channels_mismatch",
                where,
                f"states {graph.nchannels} channels and lists {listed}",
            )


def _needed(graph: NcclGraph) -> str | None:
    if graph.id is None:
        return "ring" if graph.pattern == "ring" else None
    return _NEEDED.get(graph.id)
