"""What comes out of a store: the same run, link or host as it went in, at one point of time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ncdiag.model.bench import BenchPoint
from ncdiag.model.verdict import HostStatus, LinkStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded run. ``kind`` is ``sweep``, ``bench`` or ``import``; ``number`` names it.

    ``started`` is UTC in ISO 8601. ``directory`` is where its report was written, ``collective`` a
    benchmark's. ``culprits`` are in the order of the report, as ``host h3`` or ``link a->b``.
    """

    number: int
    kind: str
    started: str
    seconds: float
    verdict: str
    interrupted: bool
    engine: str
    launcher: str
    mode: str | None
    hosts: int
    directory: str | None
    collective: str | None = None
    culprits: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPoint:
    """A host in one sweep: medians over the links it sends and receives on.

    ``efficiency`` and ``fleet_ratio`` are of the worse direction. ``worst_window`` is the median of
    worst window over figure. ``slow_links`` counts those that were faulty or degraded or failed.
    """

    run: int
    started: str
    engine: str
    status: HostStatus
    efficiency: float | None
    reason: str
    send_gbit_per_s: float | None
    receive_gbit_per_s: float | None
    expected_gbit_per_s: float | None
    fleet_ratio: float | None
    worst_window: float | None
    links: int
    slow_links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPoint:
    """One direction of a pair on one rail in one sweep; figures have seven digits."""

    run: int
    started: str
    engine: str
    source: str
    target: str
    rail: int
    status: LinkStatus
    measured_gbit_per_s: float | None
    min_gbit_per_s: float | None
    expected_gbit_per_s: float | None
    fleet_gbit_per_s: float | None
    idle: float | None
    bytes: int
    tests: int
    round: int | None
    expected_from: str | None
    error: str | None

    @property
    def efficiency(self) -> float | None:
        """Measured over expected."""
        return _ratio(self.measured_gbit_per_s, self.expected_gbit_per_s)

    @property
    def fleet_ratio(self) -> float | None:
        """Measured over the fleet's median."""
        return _ratio(self.measured_gbit_per_s, self.fleet_gbit_per_s)

    @property
    def worst_window(self) -> float | None:
        """The worst window over the figure."""
        return _ratio(self.min_gbit_per_s, self.measured_gbit_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTable:
    """What was measured from one host on one rail in one run: columns, of a link each.

    ``columns`` has the fields of :class:`LinkPoint` from ``target`` on, in its order.
    """

    run: int
    started: str
    engine: str
    source: str
    rail: int
    columns: dict[str, list[Any]]

    def points(self) -> Iterator[LinkPoint]:
        """The same, a link at a time."""
        for values in zip(*self.columns.values(), strict=True):
            yield LinkPoint(
                run=self.run,
                started=self.started,
                engine=self.engine,
                source=self.source,
                rail=self.rail,
                **dict(zip(self.columns, values, strict=True)),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCurve:
    """One curve of a recorded benchmark; bandwidths in GB/s as in :mod:`ncdiag.model.bench`."""

    run: int
    started: str
    engine: str
    verdict: str
    collective: str
    hosts: tuple[str, ...]
    ranks: int
    plateau_busbw_gb_per_s: float | None
    plateau_from_bytes: int | None
    expected_busbw_gb_per_s: float | None
    efficiency: float | None
    error: str | None
    points: tuple[BenchPoint, ...] = ()


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None
