"""What the driver, the task in a host's worker and the measuring process say to one another.

All of it travels as JSON: requests down through the task to the process, answers back up.
"""

from enum import IntEnum, StrEnum

import msgspec

from ncdiag.measure.engines.base import Timing
from ncdiag.model.host import HostFacts, Nic

# The share of the payload that the NIC's own counters must account for. They count headers as
# well, so less than all of it means that they were read too early, or that it went another way.
CROSSED_SHARE = 0.98


class Backend(StrEnum):
    """What carries the payload."""

    GLOO = "gloo"
    NCCL = "nccl"


class Blame(IntEnum):
    """Where a failure came from; of two sides' failures the lower number tells more."""

    HOST = 0  # the host is gone, and took its worker along
    PROCESS = 1  # the measuring process crashed, hung or was killed
    PAYLOAD = 2  # what arrived is not what was sent
    LOCAL = 3  # this side could not do its part
    STALLED = 4  # nothing moved for a while: either side may be the reason
    PEER = 5  # the other side went away


class Failure(msgspec.Struct, frozen=True):
    """Why one side of a pair could not be measured, in one line without the host's name."""

    blame: Blame
    text: str


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


class Sent(msgspec.Struct, frozen=True):
    """One direction seen by its source."""

    payload_bytes: int
    idle: float | None = None


class Received(msgspec.Struct, frozen=True):
    """One direction seen by its target.

    ``payload_bytes`` is everything that arrived, ``bytes`` and ``seconds`` what fell into whole
    windows; the rates are over those windows and ``None`` without any.
    """

    payload_bytes: int
    bytes: int = 0
    seconds: float = 0.0
    windows: int = 0
    median_gbit_per_s: float | None = None
    worst_gbit_per_s: float | None = None
    idle: float | None = None


class Half(msgspec.Struct):
    """What one side of a pair has to say; ``failure`` is why the rest is missing.

    ``tx_bytes`` and ``rx_bytes`` is how far the NIC's own counters moved meanwhile.
    """

    sent: Sent | None = None
    received: Received | None = None
    tx_bytes: int | None = None
    rx_bytes: int | None = None
    failure: Failure | None = None


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
