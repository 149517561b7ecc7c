"""From lists of ports, one a line, to the nodes of a fabric.

``ibnetdiscover --ports`` and ``iblinkinfo`` print ports, not nodes: adapters show the GUIDs of
their ports, and ``iblinkinfo`` names peers by LID and description alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ncdiag.model.topology import IbFabric, IbNode, IbNodeKind, IbPort
from ncdiag.read.topology.ib_descriptions import is_switch
from ncdiag.read.topology.ib_last_record import refuse_cut_record


@dataclass(frozen=True, slots=True)
class PeerRow:
    """The far end of a row; ``guid`` is that of the port where the peer is an adapter."""

    kind: IbNodeKind | None
    guid: str | None
    lid: int
    number: int
    description: str | None


@dataclass(frozen=True, slots=True)
class PortRow:
    """One port. Rows with one ``node`` are of one node, whatever their GUIDs."""

    node: object
    kind: IbNodeKind
    guid: str | None
    lid: int
    number: int
    description: str | None
    peer: PeerRow | None = None
    width: int | None = None
    speed: str | None = None
    state: str | None = None
    physical: str | None = None
    could_be: str | None = None


@dataclass(slots=True)
class _Node:
    """One node: its rows, and the GUID it goes by."""

    rows: list[PortRow]
    guid: str = ""

    @property
    def first(self) -> PortRow:
        return self.rows[0]


def adapter_key(guid: str, number: int, description: str | None) -> object:
    """What the ports of one adapter have in common where only the ports have GUIDs.

    Two ports of one adapter count on from its GUID; adapters that show one port each are apart.
    """
    return description, int(guid, 16) - number


def fabric_of(rows: Iterable[PortRow]) -> IbFabric:
    """The fabric of ``rows``; nodes that are only named as peers come last, without a record.

    Raises :class:`TruncatedTopologyError` where the rows end within those of a node.
    """
    nodes: dict[object, _Node] = {}
    last: object = None
    for row in rows:
        nodes.setdefault(row.node, _Node([])).rows.append(row)
        last = row.node
    index = _Index(list(nodes.values()))
    records = {key: index.record(node) for key, node in nodes.items()}
    if records:
        refuse_cut_record(records.values(), records[last])
    return IbFabric((*records.values(), *index.strangers.values()))


@dataclass(slots=True)
class _Index:
    """Finds the node that a row's peer is."""

    nodes: Sequence[_Node]
    strangers: dict[str, IbNode] = field(default_factory=dict)
    _by_guid: dict[str, _Node] = field(default_factory=dict)
    _by_lid: dict[int, _Node] = field(default_factory=dict)
    _by_description: dict[str | None, list[_Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.nodes:
            first = node.first
            node.guid = first.guid or first.description or f"lid {first.lid}"
            self._by_description.setdefault(first.description, []).append(node)
            for row in node.rows:
                if row.guid is not None:
                    self._by_guid.setdefault(row.guid, node)
                if row.lid:
                    self._by_lid.setdefault(row.lid, node)

    def record(self, node: _Node) -> IbNode:
        """The record of ``node``, with its peers by their GUIDs."""
        ports: dict[int, IbPort] = {}
        for row in node.rows:
            peer = row.peer
            port = IbPort(
                number=row.number,
                peer_guid=self._peer_guid(row, peer) if peer else None,
                peer_port=peer.number if peer else None,
                peer_description=peer.description if peer else None,
                width=row.width,
                speed=row.speed,
                state=row.state,
                physical=row.physical,
                could_be=row.could_be,
            )
            ports.setdefault(row.number, port)
        first = node.first
        return IbNode(
            kind=first.kind,
            guid=node.guid,
            description=first.description,
            ports=tuple(ports.values()),
            lid=first.lid or None,
        )

    def _peer_guid(self, row: PortRow, peer: PeerRow) -> str | None:
        """The peer's GUID, or what else it goes by; ``None`` where several nodes could be it."""
        if peer.guid is not None:
            known = self._by_guid.get(peer.guid)
            return known.guid if known else self._stranger(peer.guid, peer)
        if peer.lid:
            known = self._by_lid.get(peer.lid)
            return known.guid if known else self._stranger(f"lid {peer.lid}", peer)
        candidates = self._by_description.get(peer.description, [])
        answering = [one for one in candidates if any(_answers(back, row) for back in one.rows)]
        if len(answering) == 1 or len(candidates) == 1:
            return (answering or candidates)[0].guid
        if candidates or not peer.description:
            return None
        return self._stranger(peer.description, peer)

    def _stranger(self, guid: str, peer: PeerRow) -> str:
        """Remember a node without a record."""
        if guid not in self.strangers:
            guess = IbNodeKind.SWITCH if is_switch(peer.description) else IbNodeKind.CA
            self.strangers[guid] = IbNode(
                kind=peer.kind or guess,
                guid=guid,
                description=peer.description,
                ports=(),
                lid=peer.lid or None,
                has_record=False,
            )
        return guid


def _answers(back: PortRow, row: PortRow) -> bool:
    """Whether ``back`` is the other end of ``row``."""
    return (
        row.peer is not None
        and back.number == row.peer.number
        and back.peer is not None
        and (back.peer.number, back.peer.description) == (row.number, row.description)
    )
