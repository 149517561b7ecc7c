"""How findings name the nodes and cables of a fabric."""

from collections import Counter

from ncdiag.model.cables import Cable, CableEnd
from ncdiag.model.topology import IbFabric, IbNode, IbNodeKind


class NodeNames:
    """Names nodes by their descriptions, with the GUID where several have the same one."""

    def __init__(self, fabric: IbFabric) -> None:
        self._counts = Counter(node.description for node in fabric.nodes)

    def of(self, node: IbNode) -> str:
        """The shortest name that only this node has."""
        if not node.description:
            return node.guid
        if self._counts[node.description] > 1:
            return f"{node.description} ({node.guid})"
        return node.description

    def end(self, end: CableEnd) -> str:
        """A node, its GUID and the port."""
        name = self.of(end.node)
        guid = "" if end.node.guid in name else f" ({end.node.guid})"
        return f"{name}{guid} port {end.number}"

    def cable(self, cable: Cable) -> str:
        """Both ends."""
        return f"{self.end(cable.first)} to {self.end(cable.second)}"

    def owner(self, cable: Cable) -> str:
        """The node that a finding about the cable is filed under: the adapter, if there is one."""
        ends = sorted(cable.ends, key=lambda end: end.node.kind is IbNodeKind.SWITCH)
        return self.of(ends[0].node)
