"""What ran: one direction of one pair on one rail."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class LinkKey(NamedTuple):
    """One direction of a pair on one rail (rails count from 0)."""

    source: str
    target: str
    rail: int

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"


class PairKey(NamedTuple):
    """Two hosts on one rail, whatever the direction."""

    first: str
    second: str
    rail: int

    @property
    def directions(self) -> tuple[LinkKey, LinkKey]:
        """The pair's two directions, in the order in which they are measured."""
        return LinkKey(*self), LinkKey(self.second, self.first, self.rail)


class Purpose(StrEnum):
    """Why a pair was measured: with its whole round, or again with the fabric otherwise quiet."""

    ROUND = "round"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of measuring one direction once.

    ``measured_gbit_per_s`` is the median window at the receiver, in payload bits (1e9 a second);
    ``min_gbit_per_s`` the worst window; ``idle`` the smaller CPU idle share (0 to 1) of the two
    hosts. All three are ``None`` where ``error`` says why nothing was measured. ``damaged`` says
    that data arrived, but not what was sent: a fault, where other errors are only no result.
    """

    source: str
    target: str
    rail: int
    round: int
    purpose: Purpose
    engine: str
    bytes: int = 0
    seconds: float = 0.0
    measured_gbit_per_s: float | None = None
    min_gbit_per_s: float | None = None
    idle: float | None = None
    error: str | None = None
    damaged: bool = False

    @property
    def link(self) -> LinkKey:
        """The direction that was measured."""
        return LinkKey(self.source, self.target, self.rail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What theory says a link's payload should reach, and how that was derived, in one line."""

    gbit_per_s: float
    derivation: str
