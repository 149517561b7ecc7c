"""The cables of an InfiniBand fabric: each link once, with what either end says of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ncdiag.model.topology import IbFabric, IbNode, IbNodeKind, IbPort


@dataclass(frozen=True, slots=True)
class CableEnd:
    """One end: the node, and the line of its record that tells of this cable.

    ``port`` is ``None`` where the node has no such line: it has no record, or tells otherwise.
    """

    node: IbNode
    number: int | None
    port: IbPort | None


@dataclass(frozen=True, slots=True)
class Cable:
    """One link. The first end is the one that comes first in the dump, and has a line."""

    first: CableEnd
    second: CableEnd

    @property
    def ends(self) -> tuple[CableEnd, CableEnd]:
        """Both ends."""
        return self.first, self.second

    @property
    def widths(self) -> tuple[int, ...]:
        """Lanes, as each end that says it does."""
        said = (end.port.width for end in self.ends if end.port is not None)
        return tuple(width for width in said if width is not None)

    @property
    def speeds(self) -> tuple[str, ...]:
        """The generation (``HDR``), as each end that says it does."""
        said = (end.port.speed for end in self.ends if end.port is not None)
        return tuple(speed for speed in said if speed is not None)

    @property
    def could_be(self) -> tuple[str, ...]:
        """What the tool says that both ends could do and do not, each once."""
        said = (end.port.could_be or "" for end in self.ends if end.port is not None)
        return tuple(dict.fromkeys(one for text in said for one in text.split(", ") if one))

    @property
    def is_self_loop(self) -> bool:
        """Whether both ends are in one node."""
        return self.first.node.guid == self.second.node.guid

    @property
    def joins_switches(self) -> bool:
        """Whether it runs between two different switches."""
        return not self.is_self_loop and all(
            end.node.kind is IbNodeKind.SWITCH for end in self.ends
        )


def cables(fabric: IbFabric) -> tuple[Cable, ...]:
    """Every cable of the fabric, in the dump's order. A port without a known peer has none."""
    nodes = {node.guid: node for node in fabric.nodes}
    lines = {(node.guid, port.number): port for node in fabric.nodes for port in node.ports}
    found: dict[frozenset[tuple[str, int | None]], Cable] = {}
    for node, port in _connected(fabric.nodes):
        here, there = (node.guid, port.number), (port.peer_guid or "", port.peer_port)
        key = frozenset((here, there))
        if key in found or there[0] not in nodes:
            continue
        answer = lines.get((there[0], there[1])) if there[1] is not None else None
        agrees = answer is not None and (answer.peer_guid, answer.peer_port) == here
        found[key] = Cable(
            CableEnd(node, port.number, port),
            CableEnd(nodes[there[0]], there[1], answer if agrees else None),
        )
    return tuple(found.values())


def _connected(nodes: Iterable[IbNode]) -> Iterator[tuple[IbNode, IbPort]]:
    for node in nodes:
        for port in node.ports:
            if port.peer_guid is not None:
                yield node, port
