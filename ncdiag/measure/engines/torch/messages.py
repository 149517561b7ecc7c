"""What the driver, the task in a host's worker and the measuring process say to one another.

All of it travels as JSON: requests down through the task to the process, answers back up.
"""

from enum import StrEnum

import msgspec

from ncdiag.measure.engines.base import Timing
from ncdiag.model.host import HostFacts, Nic


class Backend(StrEnum):
    """What carries the payload."""

    GLOO = "gloo"
    NCCL = "nccl"


class Ready(msgspec.Struct, frozen=True):
    """The measuring process's first line; ``error`` says why it cannot measure at all."""

    torch: str | None = None
    nccl: str | None = None
    gpus: int = 0
    error: str | None = None


class OpenStore(msgspec.Struct, frozen=True, tag="open-store"):
    """Listen for peers on ``address``; ``port`` 0 lets the kernel choose."""

    address: str
    port: int = 0


class StoreOpened(msgspec.Struct, frozen=True):
    """The port peers can be told, or why there is none."""

    port: int = 0
    error: str | None = None


class MeasurePair(msgspec.Struct, frozen=True, tag="measure-pair"):
    """Measure with the peer that got the same ``meeting``; ``first`` sends first and has the store.

    ``nic`` is this side's own; the store's address and port are the first side's.
    """

    first: bool
    nic: Nic
    store_address: str
    store_port: int
    meeting: str
    timing: Timing


Request = OpenStore | MeasurePair


class CollectTask(msgspec.Struct, frozen=True):
    """Say what the host is; ``address`` is its own, as far as the driver knows it.

    ``variables`` of a profile are in the environment of what measures.
    """

    nics: tuple[str, ...]
    address: str
    timeout_s: float
    variables: dict[str, str] = {}


class Collected(msgspec.Struct, frozen=True):
    """A host's facts, and what the engine needs besides to place its measuring processes.

    ``own_address`` is the one towards the driver; ``routed_nic`` the NIC that carries it;
    ``nearest_gpu`` maps a NIC's name to the index of the GPU next to it.
    """

    facts: HostFacts
    ready: Ready
    own_address: str | None = None
    routed_nic: Nic | None = None
    nearest_gpu: dict[str, int] = {}


class PrepareTask(msgspec.Struct, frozen=True):
    """Have a measuring process listen; answered by StoreOpened.

    ``settings`` are for the environment of a process of one rail alone, as ``NAME=VALUE``;
    without any, it is the process that all rails share.
    """

    process: str
    open: OpenStore
    timeout_s: float
    settings: tuple[str, ...] = ()
    variables: dict[str, str] = {}


class MeasureTask(msgspec.Struct, frozen=True):
    """Have a measuring process do its half of a pair within ``deadline_s``.

    One that is still starting is waited for up to ``start_s`` of that.
    """

    process: str
    request: MeasurePair
    deadline_s: float
    start_s: float | None = None
