"""The cables of an InfiniBand fabric, each once though both its ends list it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ncdiag.model.cables import cables
from ncdiag.model.topology import IbFabric, IbNode, IbNodeKind, IbPort
from ncdiag.read.topology.ib_rates import data_gbit_per_s

# Adapters inside switches, which reduce for SHARP: no host hangs on them.
_AGGREGATION = "Aggregation Node"


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """One switch: how many cables go to hosts, to other switches, and elsewhere."""

    node: IbNode
    hosts: int
    uplinks: int
    others: int
    rates: Mapping[str, int]

    @property
    def is_leaf(self) -> bool:
        """Whether hosts hang on it."""
        return self.hosts > 0


@dataclass(frozen=True)
class Cables:
    """What can be counted in a fabric."""

    fabric: IbFabric
    _nodes: dict[str, IbNode] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._nodes.update((node.guid, node) for node in self.fabric.nodes)

    def count(self, kind: IbNodeKind) -> int:
        """How many nodes of a kind have a record of their own."""
        return sum(node.kind is kind and node.has_record for node in self.fabric.nodes)

    @cached_property
    def rates(self) -> tuple[str | None, ...]:
        """The rate of each cable, ``4xNDR``, that of the slower end; ``None`` where unknown."""
        return tuple(
            rate_text(_slower([end.port for end in cable.ends if end.port is not None]))
            for cable in cables(self.fabric)
        )

    @cached_property
    def by_rate(self) -> dict[str, int]:
        """How many cables run at each rate, the most frequent first."""
        return dict(Counter(rate for rate in self.rates if rate).most_common())

    def switches(self) -> Iterator[SwitchRow]:
        """A row for each switch with a record."""
        for node in self.fabric.nodes:
            if node.kind is IbNodeKind.SWITCH and node.has_record:
                yield self._row(node)

    def _row(self, node: IbNode) -> SwitchRow:
        ends: Counter[str] = Counter()
        rates: Counter[str] = Counter()
        for port in node.ports:
            if port.peer_guid is None:
                continue
            ends[self._end(port)] += 1
            rates[rate_text(port) or "?"] += 1
        return SwitchRow(node, ends["host"], ends["switch"], ends["other"], rates)

    def _end(self, port: IbPort) -> str:
        peer = self._nodes.get(port.peer_guid or "")
        if peer is None or peer.kind is IbNodeKind.ROUTER:
            return "other"
        if peer.kind is IbNodeKind.SWITCH:
            return "switch"
        description = port.peer_description or peer.description or ""
        return "other" if _AGGREGATION in description else "host"


def rate_text(port: IbPort) -> str | None:
    """``4xNDR``; ``None`` where the dump does not say width and speed."""
    if port.width is None or port.speed is None:
        return None
    return f"{port.width}x{port.speed}"


def _slower(ends: Sequence[IbPort]) -> IbPort:
    known = [port for port in ends if rate_text(port)]
    if not known:
        return ends[0]
    return min(known, key=lambda port: data_gbit_per_s(port.width or 0, port.speed or "") or 0.0)
