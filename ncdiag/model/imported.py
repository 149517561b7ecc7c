"""What other tools measured, as it was read from their output, before anybody judges it."""

from dataclasses import dataclass, field

from ncdiag.model.log import Benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigure:
    """One direction between two endpoints: the median (or only) figure in Gbit/s, and the worst.

    ``error`` says why there is none. ``rail`` counts from 0.
    """

    source: str
    target: str
    gbit_per_s: float | None
    min_gbit_per_s: float | None = None
    rail: int = 0
    size_bytes: int | None = None
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class ForeignResults:
    """What one file holds. ``format`` is the tool's name (``perftest``, ``mpigraph``, ...).

    ``endpoints`` are the hosts, or where ``inside`` names a host, its devices (``gpu0``). ``cut``
    says that the file ends too early; ``notes`` are lines an operator should read.
    """

    format: str
    path: str
    pairs: list[PairFigure] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    inside: str | None = None
    benchmarks: list[Benchmark] = field(default_factory=list)
    started: str | None = None
    cut: bool = False
    notes: list[str] = field(default_factory=list)
