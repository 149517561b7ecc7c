"""How many bytes each algorithm sends over each resource, per byte of a collective's size.

This is arithmetic, not measurement: what one GPU sends over its links, and what one NVLink domain
sends over its NICs, in the busier direction. Sizes are counted as nccl-tests counts them, that is
in total for all-gather, reduce-scatter and all-to-all.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ncdiag.model.errors import UsageError


class Collective(StrEnum):
    """The operations, named as nccl-tests names them."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALLTOALL = "alltoall"
    GATHER = "gather"
    SCATTER = "scatter"
    SENDRECV = "sendrecv"


class Algorithm(StrEnum):
    """How NCCL does it; ``p2p`` is what collectives made of sends and receives use."""

    RING = "ring"
    TREE = "tree"
    NVLS = "nvls"
    NVLSTREE = "nvlstree"
    SHARP = "sharp"
    P2P = "p2p"


class Pattern(StrEnum):
    """Who sends to whom at the same time, by peers in their order."""

    RING = "each to the next"
    ALL_PAIRS = "all pairs at once"
    ONE_TO_ALL = "one to all others"

    def pairs(self, gpus: int) -> Iterator[tuple[int, int]]:
        """The pairs, among ``gpus`` GPUs."""
        match self:
            case Pattern.RING:
                yield from ((gpu, (gpu + 1) % gpus) for gpu in range(gpus))
            case Pattern.ALL_PAIRS:
                yield from itertools.permutations(range(gpus), 2)
            case Pattern.ONE_TO_ALL:
                yield from ((0, gpu) for gpu in range(1, gpus))


_SHARDED = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
_PEER_TO_PEER = (Collective.ALLTOALL, Collective.GATHER, Collective.SCATTER, Collective.SENDRECV)
_IN_SWITCH = (Algorithm.NVLS, Algorithm.NVLSTREE)


@dataclass(frozen=True, slots=True)
class Layout:
    """Who takes part: ``ranks`` GPUs in ``domains`` NVLink domains, on ``hosts`` hosts.

    Domains are filled one after the other, as launchers do; the last may have fewer hosts.
    ``hosts_of_full`` is how many a full one has; without it they are as even as can be.
    """

    ranks: int
    domains: int
    hosts: int
    hosts_of_full: int | None = None

    @property
    def most_hosts(self) -> int:
        """Hosts of the largest domain."""
        return self.hosts_of_full or math.ceil(self.hosts / self.domains)

    @property
    def fewest_hosts(self) -> int:
        """Hosts of the smallest domain, which has the fewest NICs."""
        return self.hosts - (self.domains - 1) * self.most_hosts

    @property
    def per_domain(self) -> int:
        """GPUs of the largest domain."""
        return self.ranks * self.most_hosts // self.hosts

    @property
    def fewest_per_domain(self) -> int:
        """GPUs of the smallest domain."""
        return self.ranks * self.fewest_hosts // self.hosts


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes per byte of size.

    ``fabric`` is what a GPU sends over its links, ``one_peer`` the most that it sends to one peer
    among them, where that counts; ``pattern`` says to whom. ``in_switch`` is sent while the switch
    reduces and multicasts, ``network`` by a domain over all its NICs, ``one_nic`` over one.
    """

    fabric: float = 0.0
    one_peer: float = 0.0
    pattern: Pattern = Pattern.RING
    in_switch: float = 0.0
    network: float = 0.0
    one_nic: float = 0.0


def bus_factor(collective: Collective, ranks: int) -> float:
    """Bus over algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md)."""
    match collective:
        case Collective.ALL_REDUCE:
            return 2 * (ranks - 1) / ranks
        case Collective.BROADCAST | Collective.REDUCE | Collective.SENDRECV:
            return 1.0
        case _:
            return (ranks - 1) / ranks


def algorithms(collective: Collective) -> tuple[Algorithm, ...]:
    """The algorithms that NCCL has for it, whatever the machine."""
    if collective is Collective.ALL_REDUCE:
        return tuple(one for one in Algorithm if one is not Algorithm.P2P)
    if collective in _PEER_TO_PEER:
        return (Algorithm.P2P,)
    return (Algorithm.RING, Algorithm.NVLS) if collective in _SHARDED else (Algorithm.RING,)


def traffic(
    collective: Collective, algorithm: Algorithm, layout: Layout, *, multicast: bool
) -> Traffic:
    """The bytes; raises :class:`UsageError` where NCCL has no such algorithm for it.

    ``multicast`` says that NVSwitches reduce, which SHARP then makes use of inside a domain.
    """
    if algorithm not in algorithms(collective):
        known = ", ".join(algorithms(collective))
        raise UsageError(f"NCCL does not do {collective} by {algorithm}; it has {known}")
    if algorithm is Algorithm.RING:
        return _ring(collective, layout)
    if algorithm is Algorithm.P2P:
        return _peer_to_peer(collective, layout)
    if algorithm is Algorithm.NVLS and collective in _SHARDED:
        return Traffic(in_switch=1.0)  # in or out: every byte of the whole passes each GPU's links
    return _all_reduce(algorithm, layout, multicast=multicast)


def _ring(collective: Collective, layout: Layout) -> Traffic:
    """Every byte passes every link of the ring, between hosts as within."""
    share = bus_factor(collective, layout.ranks)
    return Traffic(
        fabric=share if layout.per_domain > 1 else 0.0,
        network=share if layout.domains > 1 else 0.0,
    )


def _all_reduce(algorithm: Algorithm, layout: Layout, *, multicast: bool) -> Traffic:
    """All-reduce by anything but rings.

    In the switch a GPU sends the size once to be reduced, and its reduced part of it once to be
    multicast: (n + 1) / n of the size for n GPUs. A chain sends it up and down.
    """
    gpus = layout.per_domain
    network = 0.0
    if layout.domains > 1:
        network = 1.0 if algorithm is Algorithm.SHARP else tree_load(layout.domains)
    fewest = layout.fewest_per_domain if layout.fewest_per_domain > 1 else gpus
    in_switch = fabric = 0.0
    if gpus > 1:
        if algorithm in _IN_SWITCH or (algorithm is Algorithm.SHARP and multicast):
            in_switch = (fewest + 1) / fewest
        elif algorithm is Algorithm.SHARP:
            fabric = 2 * (gpus - 1) / gpus  # reduce-scatter to the NICs, all-gather from them
        else:
            fabric = 2.0 if gpus > 2 else 1.0
    return Traffic(fabric=fabric, in_switch=in_switch, network=network)


def _peer_to_peer(collective: Collective, layout: Layout) -> Traffic:
    ranks, inside = layout.ranks, layout.per_domain
    if collective is Collective.SENDRECV:
        # Each rank to the next one: the slowest of these pairs decides.
        return Traffic(
            one_peer=1.0 if inside > 1 else 0.0, one_nic=1.0 if layout.domains > 1 else 0.0
        )
    message = 1 / ranks if inside > 1 else 0.0
    fabric = (inside - 1) / ranks
    if collective is Collective.ALLTOALL:
        fewest = layout.fewest_per_domain
        return Traffic(
            fabric=fabric,
            one_peer=message,
            pattern=Pattern.ALL_PAIRS,
            network=fewest * (ranks - fewest) / ranks,
        )
    return Traffic(
        fabric=fabric,
        one_peer=message,
        pattern=Pattern.ONE_TO_ALL,
        one_nic=(ranks - inside) / ranks,
    )


def tree_load(domains: int) -> float:
    """What the busiest domain sends in NCCL's double binary tree, in sizes.

    Each of two trees carries half of the size up and down again; leaves of one are inner nodes of
    the other. A whole tree's inner nodes send up once and down twice, its leaves up once.
    """
    return {2: 1.0, 3: 1.5}.get(domains, 2.0)
