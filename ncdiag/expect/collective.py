"""The bandwidth and the latency that a collective should reach on machines of one kind."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ncdiag.expect import network
from ncdiag.expect.curve import CURVE_SIZES_BYTES, Point, Way, best_point, ways
from ncdiag.expect.derivation import Limit, Line, Term, counted, figure, least, of_line, product
from ncdiag.expect.machine import Machine
from ncdiag.expect.peers import peers_limit
from ncdiag.expect.traffic import (
    Algorithm,
    Collective,
    Layout,
    Pattern,
    Traffic,
    algorithms,
    bus_factor,
    traffic,
)
from ncdiag.model.errors import UndecidedError, UsageError

MAX_NODES = 1_000_000
_TREE_IN_THE_LONG_RUN = 2.0
# NCCL 2.30, src/graph/tuning.cc: of the bandwidth of its channels, for all-reduce by trees.
_TREE_SHARE = 0.92
# NCCL 2.28, same file, perChMaxNVLSTreeBws: the most bus bandwidth of a channel in GB/s, on two
# nodes and on more. NVLS has a channel for each head.
_HEAD_GB_PER_S = {"Hopper": (57.7, 45.5), "Blackwell": (96.0, 80.0)}
_TWO_NODES = 2
_MOST_GPUS_PROVED = 8  # of one domain by NVLS
_NEWEST_XGMI = ("MI355X", "gfx95")
_BY_NVLS = (Algorithm.NVLS, Algorithm.NVLSTREE)
_BY_TREE = (Algorithm.TREE, Algorithm.NVLSTREE)
_UNRELIABLE_BYTES = (4 << 20, 64 << 20)
OF_MIDDLE_SIZES = "published runs of 4 to 64 MiB reach 40 to 90 % of theory there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is switched off, and the MTU of RDMA in bytes (``None``: the largest)."""

    gdr: bool = True
    nvls: bool = True
    mtu_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveExpectation:
    """What to expect of large messages, why, and the curve over all sizes.

    ``binding`` names the resource that sets the limit. ``derivation`` leads to
    ``algbw_gb_per_s`` and ``busbw_gb_per_s``; ``others`` are the algorithms that were weighed as
    well, each with its bus bandwidth in GB/s. ``unreliable`` means that published runs of large
    messages miss it by more than 15 %, ``unreliable_bytes`` are the least and the largest size
    whose runs miss the curve by that; ``notes`` say so in words.
    """

    machine: str
    collective: Collective
    algorithm: Algorithm
    nodes: int
    ranks: int
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    binding: str
    derivation: tuple[Line, ...]
    others: tuple[tuple[Algorithm, float], ...]
    curve: tuple[Point, ...]
    ways: tuple[Way, ...]
    notes: tuple[str, ...] = ()
    unreliable: bool = False
    unreliable_bytes: tuple[int, int] | None = None

    def judges(self, size_bytes: int) -> bool:
        """Whether a machine may be judged by what it reaches at one size."""
        least, most = self.unreliable_bytes or (0, -1)
        return not self.unreliable and not least <= size_bytes <= most

    def at(self, size_bytes: int) -> Point:
        """What to expect of messages of one size, in bytes as nccl-tests counts them."""
        return best_point(self.ways, size_bytes, bus_factor(self.collective, self.ranks))


def expect_collective(
    machine: Machine,
    collective: Collective,
    nodes: int,
    *,
    gpus_per_node: int | None = None,
    algorithm: Algorithm | None = None,
    conditions: Conditions | None = None,
) -> CollectiveExpectation:
    """Derive what ``collective`` should reach on ``nodes`` hosts like ``machine``.

    Without ``algorithm`` it is the best of those that NCCL would weigh. Raises
    :class:`UsageError` for what cannot be: too many GPUs, an algorithm that the machine or the
    collective does not have, one GPU alone, an MTU that RDMA does not know;
    :class:`UndecidedError` where nobody says what GPUs there are, or how they are joined.
    """
    conditions = conditions or Conditions()
    layout = _layout(machine, nodes, gpus_per_node)
    weighed = (algorithm,) if algorithm else _weighed(machine, collective, layout, conditions)
    found = []
    for one in weighed:
        bytes_sent = _bytes_sent(machine, collective, layout, one, conditions)
        if algorithm is None and one in _BY_TREE and layout.domains > 2:
            # NCCL counts on more than a ring's bandwidth from trees of two nodes only.
            bytes_sent = _at_least(bytes_sent, _TREE_IN_THE_LONG_RUN)
        found.append((one, _algbw(machine, layout, one, bytes_sent, conditions)))
    return _weighed_up(machine, collective, layout, found)


def _weighed_up(
    machine: Machine,
    collective: Collective,
    layout: Layout,
    found: Sequence[tuple[Algorithm, Limit]],
) -> CollectiveExpectation:
    """The best of the algorithms, each with its algorithm bandwidth."""
    factor = bus_factor(collective, layout.ranks)
    chosen, limit = max(found, key=lambda pair: pair[1].gb_per_s)
    bus = product(
        "bus bandwidth",
        Term(limit.gb_per_s, "GB/s"),
        Term(factor, "bus factor"),
        why=f"bus factor of {collective} over {layout.ranks} GPUs",
    )
    every_way = tuple(
        way
        for one, its_limit in found
        for way in ways(machine, collective, one, layout, its_limit.gb_per_s)
    )
    off = _known_to_be_off(machine, collective, chosen, layout)
    between_hosts = layout.domains > 1
    return CollectiveExpectation(
        machine=machine.name,
        collective=collective,
        algorithm=chosen,
        nodes=layout.hosts,
        ranks=layout.ranks,
        algbw_gb_per_s=limit.gb_per_s,
        busbw_gb_per_s=bus.gb_per_s,
        binding=limit.resource,
        derivation=(*limit.lines, bus),
        others=tuple((one, its.gb_per_s * factor) for one, its in found if one is not chosen),
        curve=tuple(best_point(every_way, size, factor) for size in CURVE_SIZES_BYTES),
        ways=every_way,
        notes=(*off, *((OF_MIDDLE_SIZES,) if between_hosts else ())),
        unreliable=bool(off),
        unreliable_bytes=_UNRELIABLE_BYTES if between_hosts else None,
    )


def _known_to_be_off(
    machine: Machine, collective: Collective, algorithm: Algorithm, layout: Layout
) -> tuple[str, ...]:
    """What published runs of large messages say against it; docs/expect.md has the figures."""
    notes = []
    if algorithm in _BY_NVLS and layout.per_domain > _MOST_GPUS_PROVED:
        notes.append("runs of 72 GPUs reach 60 to 80 % of this: do not judge by it")
    if collective is Collective.ALLTOALL and machine.gpu.startswith(_NEWEST_XGMI):
        notes.append("AMD's reference for MI355X is 86 % of this: do not judge by it")
    return tuple(notes)


def _layout(machine: Machine, nodes: int, gpus_per_node: int | None) -> Layout:
    if not machine.gpus:
        raise UndecidedError(f"{machine.name} shows no GPU, so no collective can be expected of it")
    gpus = machine.gpus if gpus_per_node is None else gpus_per_node
    if not 1 <= nodes <= MAX_NODES:
        raise UsageError(f"the number of nodes must be 1 to {MAX_NODES}, not {nodes}")
    if not 1 <= gpus <= machine.gpus:
        raise UsageError(f"{machine.name} has {machine.gpus} GPUs, so {gpus} a node cannot be used")
    ranks = nodes * gpus
    if ranks < 2:
        raise UsageError("a collective needs two GPUs; give --nodes or --gpus-per-node")
    hosts_per_domain = 1
    if machine.fabric is not None and machine.fabric.switched:
        hosts_per_domain = max(1, machine.fabric.domain_gpus // machine.gpus)
    domains = math.ceil(nodes / hosts_per_domain)
    return Layout(
        ranks=ranks,
        domains=domains,
        hosts=nodes,
        hosts_of_full=hosts_per_domain if domains > 1 else nodes,
    )


def _bytes_sent(
    machine: Machine,
    collective: Collective,
    layout: Layout,
    algorithm: Algorithm,
    conditions: Conditions,
) -> Traffic:
    multicast = conditions.nvls and _multicast_share(machine) is not None
    sent = traffic(collective, algorithm, layout, multicast=multicast)
    if algorithm is Algorithm.RING and layout.domains > 1:
        return _leaving(machine, layout, sent)
    return sent


def _weighed(
    machine: Machine, collective: Collective, layout: Layout, conditions: Conditions
) -> Sequence[Algorithm]:
    """What NCCL chooses from by itself: SHARP needs a plugin, NVLS of all-gather registration."""
    if collective is not Collective.ALL_REDUCE:
        return algorithms(collective)[:1]
    weighed = [Algorithm.RING, Algorithm.TREE]
    if conditions.nvls and _multicast_share(machine) is not None and layout.per_domain > 1:
        weighed.append(Algorithm.NVLS if layout.domains == 1 else Algorithm.NVLSTREE)
    return weighed


def _at_least(bytes_sent: Traffic, share: float) -> Traffic:
    return replace(bytes_sent, network=max(bytes_sent.network, share))


def _leaving(machine: Machine, layout: Layout, bytes_sent: Traffic) -> Traffic:
    """Rings that leave a domain by another GPU each: there, they go to a NIC and not on by links.

    This spares one link in so many as the domain has GPUs, where each of them has a NIC.
    """
    if len(machine.rails) < layout.ranks // layout.hosts:
        return bytes_sent
    gpus = layout.per_domain
    return replace(bytes_sent, fabric=bytes_sent.fabric * (gpus - 1) / gpus)


def _multicast_share(machine: Machine) -> float | None:
    return None if machine.fabric is None else machine.fabric.multicast_share


def _algbw(
    machine: Machine,
    layout: Layout,
    algorithm: Algorithm,
    bytes_sent: Traffic,
    conditions: Conditions,
) -> Limit:
    """The least of what every resource allows, as algorithm bandwidth."""
    _check(machine, layout, algorithm, conditions)
    if layout.per_domain > 1 and not machine.fabric_known:
        raise UndecidedError(
            f"{machine.name} does not say how its GPUs are joined; "
            "take a dump that has gpu elements, or --hardware"
        )
    limits = list(_limits(machine, layout, bytes_sent, conditions))
    if not limits:
        raise UsageError(
            f"{machine.name} says neither how its GPUs are joined nor how fast its PCIe is, "
            "so nothing can be expected of it"
        )
    if algorithm is Algorithm.NVLSTREE:
        limits.extend(_of_heads(machine, layout))
    limit = least(limits)
    if algorithm is Algorithm.TREE:
        limit = limit.then("by trees", Term(_TREE_SHARE, "of it"), why="as NCCL counts")
    return limit


def _of_heads(machine: Machine, layout: Layout) -> Iterator[Limit]:
    """What trees of NVLS reach by the GPUs that have a NIC to lead one."""
    known = _HEAD_GB_PER_S.get(machine.generation)
    if known is None:
        return
    heads = min(layout.fewest_per_domain, len(machine.rails) * layout.fewest_hosts)
    line = product(
        "trees of NVLS",
        counted(heads, "head"),
        Term(known[0] if layout.domains == _TWO_NODES else known[1], "GB/s bus bandwidth"),
        why="a GPU with a NIC heads each tree; NCCL counts no more",
    )
    factor = bus_factor(Collective.ALL_REDUCE, layout.ranks)
    yield of_line("NVLink SHARP of the GPUs with a NIC", line).then(
        "as algorithm bandwidth", Term(factor, "bus factor", inverse=True)
    )


def _check(machine: Machine, layout: Layout, algorithm: Algorithm, conditions: Conditions) -> None:
    if algorithm in (Algorithm.NVLS, Algorithm.NVLSTREE):
        if _multicast_share(machine) is None:
            raise UsageError(f"{machine.name} has no NVLS: it takes NVSwitches since those of H100")
        if not conditions.nvls:
            raise UsageError(f"{algorithm} and --no-nvls contradict each other")
    if algorithm is Algorithm.NVLS and layout.domains > 1:
        raise UsageError("nvls works inside one NVLink domain; between several it is nvlstree")
    if algorithm in (Algorithm.NVLSTREE, Algorithm.SHARP) and layout.domains < 2:
        raise UsageError(f"{algorithm} works between NVLink domains; here is one")
    if algorithm is Algorithm.SHARP and not machine.sharp:
        raise UsageError(f"{machine.name} has no InfiniBand, and so no SHARP")


def _limits(
    machine: Machine, layout: Layout, bytes_sent: Traffic, conditions: Conditions
) -> Iterator[Limit]:
    gpus = layout.per_domain
    if bytes_sent.in_switch:
        yield _per_size(_in_switch(machine), bytes_sent.in_switch, "reduced in NVSwitches")
    if bytes_sent.fabric:
        inside = _fabric(machine, gpus)
        if inside is not None:
            yield _per_size(inside, bytes_sent.fabric, f"between GPUs by {inside.resource}")
    if bytes_sent.one_peer and _in_pairs(machine, bytes_sent):
        pairs = bytes_sent.pattern.pairs(gpus)
        apart = peers_limit(machine, pairs, bytes_sent.one_peer, bytes_sent.pattern)
        if apart is not None:
            yield apart
    mtu = network.check_mtu(conditions.mtu_bytes)
    if bytes_sent.network:
        per_host = layout.ranks // layout.hosts
        whole = network.host_limit(machine, per_host, gdr=conditions.gdr, mtu_bytes=mtu)
        if layout.most_hosts > 1:
            whole = whole.then(
                "hosts of the smallest domain",
                counted(layout.fewest_hosts, "host"),
                why=_filled(layout),
            )
        yield _per_size(whole, bytes_sent.network, "between hosts")
    if bytes_sent.one_nic:
        if not machine.rails:
            raise UsageError(f"{machine.name} has no NIC, so nothing can be expected of it")
        alone = least(
            network.rail_limit(machine, rail, gdr=conditions.gdr, mtu_bytes=mtu)
            for rail in machine.rails
        )
        yield _per_size(alone, bytes_sent.one_nic, "between hosts, by one NIC")


def _in_pairs(machine: Machine, bytes_sent: Traffic) -> bool:
    """Whether it counts who sends to whom, and not only how much each GPU sends."""
    if bytes_sent.pattern is Pattern.RING:
        return True
    fabric = machine.fabric
    return fabric is not None and not fabric.switched and bool(fabric.pair_links)


def _filled(layout: Layout) -> str:
    if layout.fewest_hosts == layout.most_hosts:
        return ""
    full = layout.domains - 1
    return f"{full} filled with {layout.most_hosts} hosts, the last has {layout.fewest_hosts}"


def _per_size(limit: Limit, share: float, what: str) -> Limit:
    """Algorithm bandwidth, where ``share`` bytes are sent for each byte of the size."""
    return limit.then(
        what,
        Term(share, "of the size", inverse=True),
        why=f"sends {figure(share)} times the size",
    )


def _in_switch(machine: Machine) -> Limit:
    fabric = machine.fabric
    if fabric is None or fabric.multicast_share is None:
        raise UsageError(f"{machine.name} has no NVLS")
    line = product(
        f"{fabric.name} of one GPU with NVLS",
        counted(fabric.links, "link"),
        Term(fabric.effective_gb_per_s, "GB/s"),
        Term(fabric.multicast_share, "multicast"),
    )
    return of_line("NVLink SHARP (NVLS)", line)


def _fabric(machine: Machine, gpus: int) -> Limit | None:
    """What one GPU sends to others of its domain; ``None`` where nobody says."""
    fabric = machine.fabric
    links = 0 if fabric is None else fabric.links_for(gpus)
    if fabric is None or not links:
        return network.gpu_to_gpu_by_host(machine)
    line = product(
        f"{fabric.name} of one GPU",
        counted(links, "link"),
        Term(fabric.effective_gb_per_s, "GB/s"),
    )
    return of_line(fabric.name, line)
