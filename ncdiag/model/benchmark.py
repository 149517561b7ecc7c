"""One run of nccl-tests, or of what prints alike: its rows, ranks and times, as read."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ncdiag.model.place import Place


class TableRank(NamedTuple):
    """A line of the rank table that nccl-tests print."""

    rank: int
    host: str
    pid: str
    device: str
    bus_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTimes:
    """How long single iterations took, in microseconds, the slowest process of each counting.

    ``cv_percent`` is the standard deviation over the mean. ``times_us`` are all of them in order;
    ``process_max_us`` the same of each process, by MPI rank. What was not told is ``None`` or
    empty: the text table has only the least, the most, p99 and ``cv_percent``.
    """

    skipped: int = 0
    min_us: float | None = None
    max_us: float | None = None
    avg_us: float | None = None
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    stdev_us: float | None = None
    cv_percent: float | None = None
    times_us: tuple[float, ...] = ()
    process_max_us: tuple[tuple[float, ...], ...] = ()


class TableRow(NamedTuple):
    """A result row: sizes in bytes, bandwidths in GB/s; ``None`` for a half that is not there.

    ``wrong`` is the number of wrong elements, ``None`` where it was not checked (``N/A``).
    Times are of one operation, in microseconds; with ``-C`` they are those of the CPU.
    ``finished`` is when the row was printed, by the clock of its host (``-S``).
    """

    size: int
    type: str
    redop: str
    out_of_place_busbw: float | None
    in_place_busbw: float | None
    out_of_place_wrong: float | None
    in_place_wrong: float | None
    place: Place | None = None
    elements: int | None = None
    root: int | None = None
    out_of_place_time_us: float | None = None
    in_place_time_us: float | None = None
    out_of_place_algbw: float | None = None
    in_place_algbw: float | None = None
    out_of_place_iterations: IterationTimes | None = None
    in_place_iterations: IterationTimes | None = None
    finished: str | None = None


@dataclass(slots=True, kw_only=True)
class Benchmark:
    """One run of nccl-tests or rccl-tests, from its announcement or its table.

    ``library_version`` is the number of the heading, converted (22807 is ``2.28.7``).
    ``heading`` is where the column titles stand, ``None`` when none was printed.
    ``complete`` means the footer is there. ``headless`` is true for a table without announcement
    and column titles: its beginning may be in an earlier piece. ``unfinished_size`` is that of a
    row that was begun and has no result. ``cpu_times`` says that the times are those of the CPU.
    ``started`` is local time as a JSON report has it, without a zone.
    """

    place: Place
    test: str | None = None
    library_version: str | None = None
    ranks: list[TableRank] = field(default_factory=list)
    expected_ranks: int | None = None
    heading: Place | None = None
    rows: list[TableRow] = field(default_factory=list)
    avg_busbw: float | None = None
    out_of_bounds: int | None = None
    complete: bool = False
    failed: Place | None = None
    end: Place | None = None
    environment: dict[str, str] = field(default_factory=dict)
    headless: bool = False
    unfinished_size: int | None = None
    cpu_times: bool = False
    started: str | None = None
