"""Nodes of a fabric: adapters without links, leaves short of uplinks, hosts short of adapters."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from ncdiag.diagnose.topology.findings import degraded, info
from ncdiag.diagnose.topology.ib_names import NodeNames
from ncdiag.diagnose.topology.peers import LEAST_ALIKE
from ncdiag.model.cables import Cable
from ncdiag.model.topology import IbFabric, IbNode, IbNodeKind, TopologyFinding
from ncdiag.model.units import format_count
from ncdiag.read.topology.ib_descriptions import host_adapter, is_aggregation_node

# Shares of the others that must have more before one that has less is told. They are choices of
# ours. Half of the leaves is a plain majority, and enough for a hint.
_MOST_LEAVES = 0.5
# To accuse a leaf, or to tell of a host, no more than one in five may be as short as it is: with
# more, a fabric has a second kind of leaf or host (storage, login) by design.
_NEARLY_ALL_LEAVES = 0.8
_MOST_HOSTS = 0.8
_DIGITS = re.compile(r"\d+")


def without_links(
    fabric: IbFabric, links: Sequence[Cable], names: NodeNames
) -> Iterator[TopologyFinding]:
    """Tell of each adapter of a host whose own block names no cable."""
    listed = {cable.second.node.guid: cable for cable in links}
    for node in fabric.nodes:
        if node.kind is not IbNodeKind.CA or not node.has_record or node.ports:
            continue
        if is_aggregation_node(node.description):
            continue
        cable = listed.get(node.guid)
        other = f", though {names.end(cable.first)} lists it" if cable else ""
        yield degraded(
            "ca_without_links",
            names.of(node),
            f"the record of {names.of(node)} ({node.guid}) has no port{other}",
        )


def uneven_uplinks(links: Sequence[Cable], names: NodeNames) -> Iterator[TopologyFinding]:
    """Tell of each leaf, a switch that hosts hang on, whose way up is narrower than the usual."""
    leaves = _leaves(links)
    if len(leaves) < 2:
        return
    counts = Counter(uplinks for _, uplinks, _ in leaves)
    usual = counts.most_common(1)[0][0]
    whole = all(_is_told(end.node) for cable in links for end in cable.ends)
    per_host = median(uplinks / hosts for _, uplinks, hosts in leaves)
    for leaf, uplinks, hosts in leaves:
        more = _above(counts, uplinks)
        others = len(leaves) - 1
        if uplinks >= usual or more < _MOST_LEAVES * others:
            continue
        text = (
            f"{names.of(leaf)} has {format_count(uplinks, 'link')} to other switches for "
            f"{format_count(hosts, 'adapter')}; "
            f"{more} of {others} other leaves have more, most of them {usual}"
        )
        few_hosts = uplinks / hosts >= per_host
        clear = more >= LEAST_ALIKE and more >= _NEARLY_ALL_LEAVES * others
        report = degraded if whole and clear and not few_hosts else info
        yield report("ib_uplinks_uneven", names.of(leaf), text)


def _leaves(links: Sequence[Cable]) -> list[tuple[IbNode, int, int]]:
    """Each leaf with its links to other switches and to adapters of hosts."""
    nodes: dict[str, IbNode] = {}
    uplinks: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    for cable in links:
        for end, far in (cable.ends, cable.ends[::-1]):
            if end.node.kind is not IbNodeKind.SWITCH:
                continue
            nodes[end.node.guid] = end.node
            if cable.joins_switches:
                uplinks[end.node.guid] += 1
            elif far.node.kind is IbNodeKind.CA and not is_aggregation_node(far.node.description):
                hosts[end.node.guid] += 1
    return [(nodes[guid], uplinks[guid], count) for guid, count in hosts.items()]


def missing_adapters(fabric: IbFabric) -> Iterator[TopologyFinding]:
    """Hosts with fewer adapters in the fabric than nearly all of the hosts."""
    hosts, unnamed = _adapters(fabric)
    whole = all(map(_is_told, fabric.nodes))
    all_counts = Counter(hosts.values())
    kin_counts: dict[str, Counter[int]] = defaultdict(Counter)
    for host, count in hosts.items():
        kin_counts[_kind_of(host)][count] += 1
    usual = max(all_counts, key=lambda count: all_counts[count], default=0)
    for host, count in hosts.items():
        others, more = len(hosts) - 1, _above(all_counts, count)
        if others < LEAST_ALIKE or more < _MOST_HOSTS * others:
            continue
        kin = kin_counts[_kind_of(host)]
        like = kin.total() - 1
        sure = like >= LEAST_ALIKE and _above(kin, count) >= _MOST_HOSTS * like
        text = (
            f"{host} has {format_count(count, 'adapter')} in the fabric; {more} of {others} other "
            f"hosts have more, "
            f"most of them {usual}"
        )
        if unnamed:
            text += f"; adapters that name no host, and may be its own: {unnamed}"
        report = degraded if whole and sure and not unnamed else info
        yield report("ib_host_hca_missing", host, text)


def _is_told(node: IbNode) -> bool:
    """Whether what a node is has been told: not of a switch that is only somebody's peer.

    Such a one is beyond where a dump was cut short, or filtered.
    """
    return node.has_record or node.kind is not IbNodeKind.SWITCH


def _above(counts: Counter[int], figure: int) -> int:
    """How many have more than ``figure``."""
    return sum(many for other, many in counts.items() if other > figure)


def _kind_of(host: str) -> str:
    """What the names of hosts of one kind have in common: all but the numbers."""
    return _DIGITS.sub("#", host)


def _adapters(fabric: IbFabric) -> tuple[dict[str, int], int]:
    """Adapters by host, and how many name none."""
    hosts: dict[str, set[str]] = defaultdict(set)
    unnamed = 0
    for node in fabric.nodes:
        if node.kind is not IbNodeKind.CA or is_aggregation_node(node.description):
            continue
        named = host_adapter(node.description)
        if named is None:
            unnamed += 1
        else:
            hosts[named.host].add(node.guid)
    return {host: len(adapters) for host, adapters in hosts.items()}, unnamed
