"""Time over size: latency plus bytes over bandwidth, the best way at each size.

NCCL chooses in the same manner (src/graph/tuning.cc): every algorithm has up to three protocols,
each with a latency and a bandwidth. The figures are NCCL's own, so that small messages are judged
by latency and large ones by bandwidth. Between, messages go in chunks: see :class:`Way`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncdiag.expect.machine import Machine
from ncdiag.expect.traffic import Algorithm, Collective, Layout, bus_factor

CURVE_SIZES_BYTES = tuple(2**power for power in range(3, 35))
"""8 B to 16 GiB."""

# NCCL 2.30, src/graph/tuning.cc: microseconds before the first byte, and for each step, in the
# order of the protocols LL, LL128, Simple. None: there is no such protocol.
_Latencies = tuple[float | None, float | None, float | None]
_PROTOCOLS = ("LL", "LL128", "Simple")
_BASE_US: dict[Algorithm, _Latencies] = {
    Algorithm.RING: (6.6, 14.0, 8.4),
    Algorithm.TREE: (6.8, 14.0, 8.4),
    Algorithm.NVLS: (None, None, 0.0),
    Algorithm.NVLSTREE: (None, None, 0.0),
    Algorithm.SHARP: (None, None, 0.0),
    Algorithm.P2P: (6.6, None, 8.4),  # as rings: a kernel has to start and a flag to arrive
}
_FABRIC_US: dict[Algorithm, _Latencies] = {
    Algorithm.RING: (0.6, 1.9, 3.4),
    Algorithm.TREE: (0.6, 1.25, 4.0),
    Algorithm.NVLS: (None, None, 25.0),
    Algorithm.NVLSTREE: (None, None, 25.0),
    Algorithm.SHARP: (None, None, 3.7),
    Algorithm.P2P: (0.6, None, 3.4),
}
_PCIE_US: dict[Algorithm, _Latencies] = {
    Algorithm.RING: (1.0, 2.5, 5.7),
    Algorithm.TREE: (1.0, 2.5, 5.7),
    Algorithm.SHARP: (None, None, 5.7),
    Algorithm.P2P: (1.0, None, 5.7),
}
_NETWORK_US: dict[Algorithm, _Latencies] = {
    Algorithm.RING: (2.7, 4.0, 14.0),
    Algorithm.TREE: (5.0, 8.5, 14.0),
    Algorithm.NVLSTREE: (None, None, 20.9),
    Algorithm.SHARP: (None, None, 31.0),
    Algorithm.P2P: (2.7, None, 14.0),
}
# What a protocol leaves of the bandwidth (same file): LL sends a flag with every word, LL128 one
# with every 120 bytes; trees pay more, as they send and receive at once.
_RING_SHARES = (0.5, 0.92, 1.0)
_TREE_SHARES_ONE_NODE = (1 / 3.8, 7 / 9, 1.0)
_TREE_SHARES = (1 / 3.8, 120 / 128, 1.0)
# What LL reaches at most, GB/s of bus bandwidth, on 1, 2 and more nodes (same file, llMaxBws).
_LL_MOST_GB_PER_S = {
    "Volta": (39.0, 39.0, 20.4),
    "Ampere": (87.7, 22.5, 19.0),
    "Hopper": (141.0, 45.0, 35.0),
    "Blackwell": (282.0, 90.0, 70.0),
}


# Chunks wait for each other while a pipeline fills (not with LL, which sends words). Published runs
# cost the latency twice more from some tens of megabytes on: all-reduce of 32 KiB to 16 GiB on
# 8 A100 by rings and on 8 H200 by NVLS alike (ml-engineering, network/). Between hosts, 1 to 64 MiB
# were seen at half of this curve.
_FILL_LATENCIES = 2.0
_FILL_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Way:
    """One algorithm by one protocol: latency, the filling of the pipeline, and bytes.

    Larger messages always reach more bandwidth.
    """

    algorithm: Algorithm
    protocol: str
    latency_us: float
    algbw_gb_per_s: float

    def overhead_us(self, size_bytes: int) -> float:
        """Microseconds of one message that are not bytes moving at full rate."""
        if self.protocol == "LL":
            return self.latency_us
        fill = _FILL_LATENCIES * size_bytes / (size_bytes + _FILL_BYTES)
        return self.latency_us * (1 + fill)

    def time_us(self, size_bytes: int) -> float:
        """Microseconds for one message."""
        return self.overhead_us(size_bytes) + size_bytes / self.algbw_gb_per_s / 1e3


@dataclass(frozen=True, slots=True)
class Point:
    """What to expect at one size; ``latency_share`` is the part of the time that is latency."""

    size_bytes: int
    time_us: float
    algbw_gb_per_s: float
    busbw_gb_per_s: float
    algorithm: Algorithm
    protocol: str
    latency_share: float


def best_point(ways: Sequence[Way], size_bytes: int, factor: float) -> Point:
    """The fastest of ``ways`` at one size."""
    way = min(ways, key=lambda one: one.time_us(size_bytes))
    time = way.time_us(size_bytes)
    algbw = size_bytes / time / 1e3
    return Point(
        size_bytes,
        time,
        algbw,
        algbw * factor,
        way.algorithm,
        way.protocol,
        way.overhead_us(size_bytes) / time,
    )


def ways(
    machine: Machine,
    collective: Collective,
    algorithm: Algorithm,
    layout: Layout,
    algbw_gb_per_s: float,
) -> Iterator[Way]:
    """The protocols of one algorithm, from the bandwidth that the fullest of them reaches."""
    on_fabric = machine.fabric is not None and machine.fabric.links_for(
        math.ceil(layout.per_domain)
    )
    inside = (_FABRIC_US if on_fabric else _PCIE_US)[algorithm]
    shares = _shares(algorithm, layout)
    for index, protocol in enumerate(_PROTOCOLS):
        base, step = _BASE_US[algorithm][index], inside[index]
        if base is None or step is None:
            continue
        if protocol == "LL128" and not (on_fabric and machine.generation in _LL_MOST_GB_PER_S):
            continue  # needs NVLink, whose 128 bytes stay together
        far = _NETWORK_US.get(algorithm, (None, None, None))[index] or 0.0
        bandwidth = algbw_gb_per_s * shares[index]
        if protocol == "LL" and algorithm is Algorithm.RING:
            bandwidth = min(bandwidth, _ll_most(machine, collective, layout, bandwidth))
        yield Way(
            algorithm,
            protocol,
            base + _steps_us(collective, algorithm, layout, step, far),
            bandwidth,
        )


def _shares(algorithm: Algorithm, layout: Layout) -> tuple[float, float, float]:
    if algorithm is Algorithm.TREE:
        return _TREE_SHARES_ONE_NODE if layout.domains == 1 else _TREE_SHARES
    return _RING_SHARES


def _ll_most(machine: Machine, collective: Collective, layout: Layout, unlimited: float) -> float:
    most = _LL_MOST_GB_PER_S.get(machine.generation)
    if most is None:
        return unlimited
    return most[min(layout.domains, 3) - 1] / bus_factor(collective, layout.ranks)


def _steps_us(
    collective: Collective, algorithm: Algorithm, layout: Layout, step: float, far: float
) -> float:
    """Latency of all steps after each other, of which some go between domains."""
    inside, domains = layout.per_domain - 1, layout.domains
    levels = math.ceil(math.log2(domains))
    match algorithm:
        case Algorithm.RING:
            steps, between = _ring_steps(collective, layout)
            return (steps - between) * step + between * far
        case Algorithm.TREE:
            return 2 * (inside * step + levels * far)
        case Algorithm.NVLSTREE:
            return step + 2 * levels * far
        case Algorithm.SHARP:
            return 2 * min(inside, 1) * step + far
        case Algorithm.P2P:
            return far if domains > 1 else step
        case _:
            return step


def _ring_steps(collective: Collective, layout: Layout) -> tuple[int, int]:
    """All steps, and those of them between domains."""
    ranks, domains = layout.ranks, layout.domains
    match collective:
        case Collective.ALL_REDUCE:
            return 2 * (ranks - 1), 2 * (domains - 1)
        case Collective.ALL_GATHER | Collective.REDUCE_SCATTER:
            return ranks - 1, domains - 1
        case _:
            return ranks, domains if domains > 1 else 0
