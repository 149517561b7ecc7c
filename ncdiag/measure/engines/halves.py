"""What each side of a pair reports, whichever engine runs there; it travels as JSON."""

from enum import IntEnum

import msgspec

# The share of the payload that the NIC's own counters must account for. They count headers as
# well, so less than all of it means that they were read too early, or that it went another way.
CROSSED_SHARE = 0.98


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
