"""Links of a fabric: what their ends say of each other, and what links like them do."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ncdiag.diagnose.topology.findings import degraded, info
from ncdiag.diagnose.topology.ib_names import NodeNames
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, by
from ncdiag.model.cables import Cable
from ncdiag.model.topology import IbNode, IbNodeKind, TopologyFinding
from ncdiag.read.topology.ib_rates import order

# "Nearly all" of the others: one other odd one in ten may be a second fault.
NEARLY_ALL = 0.9
# Two lanes of four are a split cable as often as a fault: told only where it is a rarity.
_RARE_OF = 20
_RARE = 0.95
# Where more links than this share could do better, nobody lost anything: they are set up so, or
# none of them was ever trained further (a choice of ours: as with peers, one odd in three at most).
_SET_UP_SO = 1 / 3
_WIDTH = "ib_link_width_mismatch"
_SPEED = "ib_link_speed_mismatch"
_LANES = re.compile(r"\d{1,2}X")


def self_loops(links: Sequence[Cable], names: NodeNames) -> Iterator[TopologyFinding]:
    """Cables from a node to itself, by node."""
    loops = by((cable for cable in links if cable.is_self_loop), lambda cable: cable.first.node)
    for node, own in loops.items():
        pairs = ", ".join(f"{cable.first.number}-{cable.second.number}" for cable in own)
        yield degraded(
            "ib_self_loop",
            names.of(node),
            f"ports {pairs} of {names.of(node)} are cabled to each other",
        )


def one_sided(links: Sequence[Cable], names: NodeNames) -> Iterator[TopologyFinding]:
    """Links that one record lists and the other, which is there, does not."""
    for cable in links:
        far = cable.second
        # A node without any port is told of as such.
        if far.port is not None or not far.node.has_record or not far.node.ports:
            continue
        other = next((port for port in far.node.ports if port.number == far.number), None)
        says = "does not list that port"
        if other is not None and other.peer_guid is None:
            says = "shows nothing connected there"
        elif other is not None:
            peer = other.peer_description or other.peer_guid
            says = f"has port {other.peer_port} of {peer} there"
        yield degraded(
            "ib_link_one_sided",
            names.of(far.node),
            f"{names.end(cable.first)} is connected to {names.end(far)}, whose record {says}",
        )


def widths(links: Sequence[Cable], names: NodeNames) -> Iterator[TopologyFinding]:
    """Links whose ends differ in width, and those with fewer lanes than their like."""
    for cable in links:
        if len(set(cable.widths)) > 1:
            ends = " and ".join(f"{width}x" for width in cable.widths)
            text = f"{names.cable(cable)}: the ends state {ends}"
            yield degraded(_WIDTH, names.owner(cable), text)
    said, accused = _below_their_best(links, names, _WIDTH)
    yield from said
    plain = [cable for cable in links if not cable.is_self_loop and len(set(cable.widths)) == 1]
    for like in by(plain, lambda cable: cable.joins_switches).values():
        counts = Counter(cable.widths[0] for cable in like)
        for cable in like:
            width = cable.widths[0]
            wider = sum(count for other, count in counts.items() if other > width)
            others = len(like) - 1
            if not wider or id(cable) in accused:
                continue
            kind = "links between switches" if cable.joins_switches else "links of adapters"
            text = f"{names.cable(cable)} runs at {width}x; {wider} of {others} {kind} are wider"
            if width == 1:
                sure = others >= LEAST_ALIKE and wider >= NEARLY_ALL * others
                yield (degraded if sure else info)(_WIDTH, names.owner(cable), text)
            elif others >= _RARE_OF and wider >= _RARE * others:
                yield info(_WIDTH, names.owner(cable), f"{text}: a split cable, or lanes are down")


def speeds(links: Sequence[Cable], names: NodeNames) -> Iterator[TopologyFinding]:
    """Links whose ends differ in speed, and those slower than both their ends could be."""
    for cable in links:
        if len(set(cable.speeds)) > 1:
            text = f"{names.cable(cable)}: the ends state {' and '.join(cable.speeds)}"
            yield degraded(_SPEED, names.owner(cable), text)
    said, accused = _below_their_best(links, names, _SPEED)
    yield from said
    known = _Speeds([one for one in links if not one.is_self_loop and len(set(one.speeds)) == 1])
    for cable in known.links:
        slower = None if id(cable) in accused else known.reason(cable)
        if slower is not None:
            sure, why = slower
            text = f"{names.cable(cable)} runs at {cable.speeds[0]}; {why}"
            yield (degraded if sure else info)(_SPEED, names.owner(cable), text)


def _below_their_best(
    links: Sequence[Cable], names: NodeNames, name: str
) -> tuple[list[TopologyFinding], set[int]]:
    """Links of which the tool, which asked both ends, says that they could be wider or faster.

    Returns what there is to say of them, and the ids of those that are accused: where many run so,
    the fabric is set up so.
    """
    best = {
        id(cable): (cable, one)
        for cable in links
        for one in cable.could_be[::-1]
        if (_LANES.fullmatch(one) is None) == (name == _SPEED)
    }
    if best and len(best) > _SET_UP_SO * len(links):
        text = f"{len(best)} of {len(links)} links run below what both their ends could do"
        return [
            info(name, "fabric", f"{text}, as iblinkinfo says: it seems to be set up so")
        ], set()
    said = [
        degraded(
            name,
            names.owner(cable),
            f"{names.cable(cable)} runs at {_runs(cable)}; both ends could do {one}, as "
            "iblinkinfo says",
        )
        for cable, one in best.values()
    ]
    return said, set(best)


def _runs(cable: Cable) -> str:
    return " ".join([*(f"{w}x" for w in cable.widths[:1]), *cable.speeds[:1]]) or "less"


class _Speeds:
    """The speeds of links: by node, by the part of the adapter, and by what they join."""

    def __init__(self, links: Sequence[Cable]) -> None:
        self.links = links
        self._of_node: dict[str, set[str]] = defaultdict(set)
        self._of_like: dict[str, Counter[str]] = defaultdict(Counter)
        for cable in links:
            speed = cable.speeds[0]
            for end in cable.ends:
                self._of_node[end.node.guid].add(speed)
            for like in (_part(cable), _joined(cable)):
                self._of_like[like][speed] += 1

    def reason(self, cable: Cable) -> tuple[bool, str] | None:
        """Whether it is sure, and why, that ``cable`` could be faster; ``None`` if it could not."""
        if not cable.joins_switches:
            return self._reason_of_adapter(cable)
        if not all(self._is_faster(end.node, cable) for end in cable.ends):
            return None
        sure, share = self._share(cable, _joined(cable))
        return sure, f"both switches have faster links, and {share} between switches are faster"

    def _reason_of_adapter(self, cable: Cable) -> tuple[bool, str] | None:
        ends = sorted(cable.ends, key=lambda end: end.node.kind is IbNodeKind.SWITCH)
        adapter, switch = (end.node for end in ends)
        if not self._is_faster(switch, cable):
            return None
        if self._is_faster(adapter, cable):
            return True, "both ends have faster links elsewhere"
        for like, sure in ((_part(cable), True), (_joined(cable), False)):
            nearly_all, share = self._share(cable, like)
            if like and nearly_all:
                doubt = "of the same part" if sure else "of adapters"
                return sure, f"{share} {doubt} are faster"
        return None

    def _is_faster(self, node: IbNode, cable: Cable) -> bool:
        """Whether ``node`` has a faster link than ``cable``."""
        own = order(cable.speeds[0])
        return any(order(speed) > own for speed in self._of_node[node.guid])

    def _share(self, cable: Cable, like: str) -> tuple[bool, str]:
        """Whether nearly all of at least three links like ``cable`` are faster, and how many."""
        own, counts = order(cable.speeds[0]), self._of_like[like]
        faster = sum(count for speed, count in counts.items() if order(speed) > own)
        others = sum(counts.values()) - 1
        sure = others >= LEAST_ALIKE and faster >= NEARLY_ALL * others
        return sure, f"{faster} of {others} other links"


def _joined(cable: Cable) -> str:
    return "switches" if cable.joins_switches else "adapters"


def _part(cable: Cable) -> str:
    """The part of the adapter at one end; empty where it is not known."""
    for end in cable.ends:
        if end.node.kind is IbNodeKind.CA and end.node.device_id is not None:
            return end.node.device_id
    return ""
