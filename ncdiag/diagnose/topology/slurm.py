"""What is wrong with Slurm's topology, as far as it can be seen without the nodes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ncdiag.diagnose.topology.findings import degraded, info
from ncdiag.diagnose.topology.peers import listed
from ncdiag.model.nodes import fold
from ncdiag.model.topology import SlurmSwitch, SlurmTopology, TopologyFinding
from ncdiag.model.units import format_count

# A root over this share of the nodes is the one that the others were forgotten in.
_MAIN_ROOT = 0.5


def check_slurm(topology: SlurmTopology) -> tuple[TopologyFinding, ...]:
    """The findings of a tree or of blocks."""
    return (*_twice(topology), *_undefined(topology), *_rings(topology), *_roots(topology))


def _twice(topology: SlurmTopology) -> Iterator[TopologyFinding]:
    """Nodes that several switches or blocks name, by the switches that do."""
    owners: dict[str, list[str]] = defaultdict(list)
    for switch in topology.switches:
        for node in dict.fromkeys(switch.nodes):
            owners[node].append(switch.name)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node, several in owners.items():
        if len(several) > 1:
            groups[tuple(several)].append(node)
    kind = "blocks" if topology.plugin == "block" else "leaf switches"
    for names, nodes in groups.items():
        where = fold(nodes)
        yield degraded(
            "slurm_node_in_two_leaves",
            where,
            f"{where} stands under {len(names)} {kind}: {listed(names)}",
        )


def _undefined(topology: SlurmTopology) -> Iterator[TopologyFinding]:
    """Switches that are named below another, and have no line."""
    defined = {switch.name for switch in topology.switches}
    parents: dict[str, list[str]] = defaultdict(list)
    for switch in topology.switches:
        for name in switch.switches:
            if name not in defined:
                parents[name].append(switch.name)
    for name, above in parents.items():
        yield degraded(
            "slurm_undefined_switch",
            name,
            f"{listed(above)} names the switch {name}, which has no line of its own",
        )


def _rings(topology: SlurmTopology) -> Iterator[TopologyFinding]:
    """Switches that are below themselves, ring by ring."""
    below = {switch.name: set(switch.switches) for switch in topology.switches}
    left = _without_ends(below)
    above: dict[str, set[str]] = defaultdict(set)
    for name in left:
        for child in below[name]:
            above[child].add(name)
    left = _without_ends({name: above[name] & left for name in left})
    order = {name: place for place, name in enumerate(below)}
    for first in below:
        if first not in left:
            continue
        ring = _joined(first, below, above, left)
        left -= ring
        names = sorted(ring, key=lambda name: order[name])
        told = f"{listed(names)} are below each other: a ring"
        yield degraded(
            "slurm_no_common_root",
            names[0],
            told if len(names) > 1 else f"{names[0]} names itself as a switch below it",
        )


def _without_ends(towards: Mapping[str, set[str]]) -> set[str]:
    """What is left once all that leads nowhere is taken away, again and again."""
    back: dict[str, list[str]] = defaultdict(list)
    for name, others in towards.items():
        for other in others:
            back[other].append(name)
    ways = {name: sum(other in towards for other in others) for name, others in towards.items()}
    ends = [name for name, count in ways.items() if not count]
    left = set(towards)
    while ends:
        end = ends.pop()
        left.discard(end)
        for name in back[end]:
            ways[name] -= 1
            if not ways[name]:
                ends.append(name)
    return left


def _joined(
    name: str,
    below: Mapping[str, set[str]],
    above: Mapping[str, set[str]],
    left: set[str],
) -> set[str]:
    """The switches of ``left`` that hang together with one of them."""
    found, open_ = {name}, [name]
    while open_:
        one = open_.pop()
        new = ((below[one] | above[one]) & left) - found
        found |= new
        open_.extend(new)
    return found


def _roots(topology: SlurmTopology) -> Iterator[TopologyFinding]:
    """Roots beside the one over most nodes, or several alike."""
    if topology.plugin == "block":
        return
    switches = {switch.name: switch for switch in topology.switches}
    below = {name for switch in topology.switches for name in switch.switches}
    roots = [name for name in switches if name not in below]
    if len(roots) < 2:
        return
    sizes = {name: len(_nodes_below(name, switches)) for name in roots}
    main = max(roots, key=lambda name: sizes[name])
    whole = sum(sizes.values())
    if switches[main].switches and sizes[main] > _MAIN_ROOT * whole:
        for name in roots:
            if name != main:
                yield degraded(
                    "slurm_no_common_root",
                    name,
                    f"{name} with {format_count(sizes[name], 'node')} is below no switch; {main} "
                    f"is the root of {sizes[main]} of {whole} nodes",
                )
        return
    told = [f"{name} ({format_count(sizes[name], 'node')})" for name in roots]
    yield info(
        "slurm_no_common_root",
        listed(roots),
        f"{len(roots)} roots: {listed(told)}",
    )


def _nodes_below(name: str, switches: Mapping[str, SlurmSwitch]) -> set[str]:
    """The nodes at any depth below a switch."""
    found: set[str] = set()
    seen, open_ = {name}, [name]
    while open_:
        switch = switches.get(open_.pop())
        if switch is None:
            continue
        found.update(switch.nodes)
        new = [child for child in switch.switches if child not in seen]
        seen.update(new)
        open_.extend(new)
    return found
