"""What other tools measured, as it was read from their output, before anybody judges it."""

from dataclasses import dataclass, field

from ncdiag.model.benchmark import Benchmark

MAX_PAIRS = 1_100_000
"""Directions in one file: those of a thousand hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigure:
    """One direction between two endpoints: the median (or only) figure in Gbit/s, and the worst.

    ``size_bytes`` is the message size of the figure, ``largest_bytes`` the largest that was
    measured, and ``kind`` the test where one tool has several that do not compare. ``error`` says
    why there is no figure, and ``damaged`` that data arrived wrong. ``rail`` counts from 0.
    """

    source: str
    target: str
    gbit_per_s: float | None
    min_gbit_per_s: float | None = None
    rail: int = 0
    size_bytes: int | None = None
    largest_bytes: int | None = None
    kind: str = ""
    error: str | None = None
    damaged: bool = False


@dataclass(slots=True, kw_only=True)
class ForeignResults:
    """What one file holds. ``format`` is the tool's name (``perftest``, ``mpigraph``, ...).

    ``endpoints`` are the hosts, or where ``inside`` is not ``None``, devices (``gpu0``) of the host
    it names, which may be empty for one that the file does not name. ``unnamed`` are endpoints that
    stand for hosts whose names the file does not tell, in the order in which they would be named.
    ``together`` says that pairs were measured while others were: what is slow may be contention.
    ``sums`` says that a figure may be the sum of both directions, so that no rate is a yardstick.
    ``cut`` says that the file ends too early, ``failed`` that it tells of something that failed
    or cannot be told: neither is healthy. ``notes`` are lines an operator should read.
    """

    format: str
    path: str
    pairs: list[PairFigure] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    inside: str | None = None
    unnamed: list[str] = field(default_factory=list)
    together: bool = False
    sums: bool = False
    benchmarks: list[Benchmark] = field(default_factory=list)
    started: str | None = None
    cut: bool = False
    failed: bool = False
    notes: list[str] = field(default_factory=list)
