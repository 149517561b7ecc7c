"""NCCL's graph XML (``NCCL_GRAPH_DUMP_FILE``), of old and new releases."""

from ncdiag.model.topology import (
    GraphChannel,
    NcclGraph,
    NcclGraphs,
    NotATopologyError,
    TruncatedTopologyError,
)
from ncdiag.read.topology.text import integer, number
from ncdiag.read.topology.xml_elements import Element

# NCCL_TOPO_PATTERN_* (src/include/graph.h).
_PATTERNS = {
    "1": "balanced_tree",
    "2": "split_tree",
    "3": "tree",
    "4": "ring",
    "5": "nvls",
    "6": "collnet_direct",
}


def read(root: Element) -> NcclGraphs:
    """Return the graphs of the ``graphs`` element.

    Raises ``TruncatedTopologyError`` if there is nothing in it, ``NotATopologyError`` if what is
    in it are no graphs.
    """
    graphs = tuple(_graph(child) for child in root.children if child.name == "graph")
    if not graphs:
        if root.children:
            raise NotATopologyError("XML <graphs> without a <graph>: of another program")
        raise TruncatedTopologyError("cut short: <graphs> with nothing in it")
    return NcclGraphs(graphs)


def _graph(element: Element) -> NcclGraph:
    pattern = element.get("pattern")
    same = integer(element.get("samechannels"))
    channels = tuple(_channel(child) for child in element.children if child.name == "channel")
    return NcclGraph(
        id=integer(element.get("id")),
        pattern=_PATTERNS.get(pattern, pattern) if pattern else None,
        nchannels=integer(element.get("nchannels")),
        # The first releases had one speed and one type for both.
        intra_gb_per_s=number(element.get("speedintra") or element.get("speed")),
        inter_gb_per_s=number(element.get("speedinter") or element.get("speed")),
        intra_path=element.get("typeintra") or element.get("type"),
        inter_path=element.get("typeinter") or element.get("type"),
        cross_nic=integer(element.get("crossnic")),
        same_channels=None if same is None else same != 0,
        inter_latency_us=number(element.get("latencyinter")),
        channels=channels,
    )


def _channel(element: Element) -> GraphChannel:
    nets = [_device(child) for child in element.children if child.name == "net"]
    gpus = [_device(child) for child in element.children if child.name == "gpu"]
    return GraphChannel(tuple(nets), tuple(gpus))


def _device(element: Element) -> str:
    return element.get("dev") or element.get("rank") or "?"
