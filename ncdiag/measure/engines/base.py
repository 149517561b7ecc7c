"""What a measuring engine promises to the sweep, whatever measures underneath."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ncdiag.cluster.fleet.options import FleetOptions
from ncdiag.model.host import HostFacts, Nic
from ncdiag.model.measurement import Measurement, Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one direction is measured.

    After ``warmup_s`` of sending, windows of ``window_s`` are timed at the receiver until
    ``measure_s`` or ``max_bytes`` of payload are used up.
    """

    warmup_s: float = 0.1
    window_s: float = 0.1
    measure_s: float = 0.4
    max_bytes: int | None = None

    @property
    def pair_s(self) -> float:
        """Planned seconds for both directions of a pair."""
        return 2 * (self.warmup_s + self.measure_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What engines are told beside the timing; part of the plan, so that a resumed sweep keeps it.

    ``pair_test`` is the nccl-tests program of a pair (``sendrecv``, ``all_reduce``, ``alltoall``),
    ``nccl_tests_dir`` where these are looked for first; ``perftest`` the program of perftest.
    ``at_a_time`` bounds the pairs for which programs are started at the same time.
    """

    pair_test: str = "sendrecv"
    nccl_tests_dir: str | None = None
    perftest: str = "ib_write_bw"
    at_a_time: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Everything an engine is made with besides the hosts and the launcher.

    ``variables`` of a profile are in the environment of what measures.
    """

    timing: Timing = field(default_factory=Timing)
    settings: EngineSettings = field(default_factory=EngineSettings)
    fleet: FleetOptions = field(default_factory=FleetOptions)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a pair: a host of the fleet and the NIC to use there."""

    host: str
    nic: Nic


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOrder:
    """One pair to be measured in both directions, first to second and then back."""

    first: Endpoint
    second: Endpoint
    rail: int
    round: int
    purpose: Purpose


class Engine(Protocol):
    """A way to measure pairs of hosts.

    The sweep calls ``start`` once, ``measure`` once a round and ``close`` once. An engine may keep
    a fleet of workers (torch), one launch of all hosts (mpi), or start programs for each pair
    (nccl-tests, perftest): the sweep sees no difference.

    One with ``rails_together`` true, once it was started, is also given pairs that share a host on
    different rails at the same time.
    """

    name: str

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Reach the hosts; return the facts of each host that came up.

        ``on_change(host, text)`` is told about progress. Hosts that did not come up are in
        ``unreachable`` afterwards.
        """
        ...

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, now, with the reason: not reached, or lost since."""
        ...

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """Measure disjoint pairs at the same time; yield two measurements a pair as pairs end.

        A pair that fails yields measurements with ``error``; nothing that happens to one pair
        disturbs another or raises here. Bounded in time by the pair's deadline plus 2 s.
        """
        ...

    def close(self) -> None:
        """Leave no process behind on any host. May be called twice."""
        ...
