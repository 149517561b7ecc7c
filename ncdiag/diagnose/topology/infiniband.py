"""What is wrong with an InfiniBand fabric: each of its links and nodes against those like it."""

from collections.abc import Iterator

from ncdiag.diagnose.topology import ib_links, ib_nodes
from ncdiag.diagnose.topology.ib_names import NodeNames
from ncdiag.diagnose.topology.ib_states import check_adapter_states, check_ports
from ncdiag.model.cables import Cable, cables
from ncdiag.model.topology import IbFabric, TopologyFinding

__all__ = ["check_fabric", "check_ports"]


def check_fabric(fabric: IbFabric) -> tuple[TopologyFinding, ...]:
    """The findings of a fabric; none is a healthy one as far as the dump says."""
    links = cables(fabric)
    names = NodeNames(fabric)
    return tuple(_rules(fabric, links, names))


def _rules(
    fabric: IbFabric, links: tuple[Cable, ...], names: NodeNames
) -> Iterator[TopologyFinding]:
    yield from ib_links.self_loops(links, names)
    yield from ib_links.one_sided(links, names)
    yield from ib_links.widths(links, names)
    yield from ib_links.speeds(links, names)
    yield from check_adapter_states(fabric, names)
    if any(node.ports for node in fabric.nodes):
        yield from ib_nodes.without_links(fabric, links, names)
    yield from ib_nodes.uneven_uplinks(links, names)
    yield from ib_nodes.missing_adapters(fabric)
