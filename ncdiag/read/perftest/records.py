"""What one run of a perftest program says of itself."""

from dataclasses import dataclass, field
from enum import StrEnum


class Side(StrEnum):
    """Whose figure a row is: a bidirectional run can also tell its two directions apart."""

    WHOLE = "whole"  # of the run; the sum of both directions where it was bidirectional
    LOCAL = "local"  # what the side that printed it has moved
    REMOTE = "remote"  # what the other side has


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthRow:
    """One report of bandwidth at one message size.

    Figures are ``None`` where their unit cannot be told; a peak that was not measured is ``None``.
    """

    side: Side = Side.WHOLE
    size_bytes: int | None = None
    iterations: int | None = None
    gbit_per_s: float | None = None
    peak_gbit_per_s: float | None = None
    messages_per_s: float | None = None
    cpu_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """One report of latency at one message size, in microseconds."""

    size_bytes: int | None = None
    iterations: int | None = None
    average_us: float
    typical_us: float | None = None
    min_us: float | None = None
    max_us: float | None = None
    p99_us: float | None = None
    p999_us: float | None = None


@dataclass(slots=True, kw_only=True)
class Run:
    """One run as one of its two sides printed it; what was not printed is ``None``.

    ``test`` is the title's (``RDMA_Write Bidirectional BW Test``). ``listening`` is true for the
    side that waited for the other. ``local`` and ``remote`` are addresses: an IP address where the
    port has one in its GID, else ``lid7``. ``complaints`` are lines that tell of a failure.
    ``complete`` says that the report was closed; ``damaged`` counts rows that make no sense.
    """

    test: str | None = None
    device: str | None = None
    link_type: str | None = None
    queue_pairs: int | None = None
    listening: bool = False
    local: str | None = None
    remote: str | None = None
    bandwidth: list[BandwidthRow] = field(default_factory=list)
    latency: list[LatencyRow] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    complete: bool = False
    damaged: int = 0

    @property
    def bidirectional(self) -> bool:
        """Whether both sides moved payload at the same time."""
        return "Bidirectional" in (self.test or "")

    @property
    def reads(self) -> bool:
        """Whether payload moves towards the side that connected, not away from it."""
        return "Read" in (self.test or "")

    @property
    def has_rows(self) -> bool:
        """Whether anything was measured."""
        return bool(self.bandwidth or self.latency)
