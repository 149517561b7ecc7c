"""Runs of a benchmark in one log, one after another or several at a time."""

import re
from dataclasses import dataclass, field

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.place import Place
from ncdiag.read.nccl_tests.layout import Layout, OpenRow, is_whole, result

MAX_RUNS = 20_000
MAX_ROWS = 20_000
# More runs than these do not print into one log at a time: those before them are dead.
_MOST_OPEN = 128
# Runs among which one that fails is looked for.
_RECENT = 256
_SIZES = re.compile(
    r"minBytes:? {1,4}(\d{1,18}) {1,4}maxBytes:? {1,4}\d{1,18} {1,4}step:? {1,4}(\d{1,18})\((\w+)\)"
)


@dataclass(slots=True)
class Sweep:
    """The sizes a run announces: the first one, and how the next follows."""

    first: int
    step: int
    factor: bool

    def after(self, size: int | None) -> int:
        """The size expected after ``size``, or as the first."""
        if size is None:
            return self.first
        return size * self.step if self.factor else size + self.step


def sweep_of(text: str) -> Sweep | None:
    """What an announcement says of its sizes."""
    found = _SIZES.search(text)
    if not found:
        return None
    return Sweep(int(found[1]), int(found[2]), found[3] == "factor")


@dataclass(slots=True)
class Run:
    """A benchmark and what is known of it only while it is read.

    ``stale`` runs have printed rows when another began, so they may be dead. An ``echo`` was
    announced by the same line again: another process, or a collector that writes lines twice.
    ``far_off`` is the first size whose values deviate more than rounding explains.
    """

    benchmark: Benchmark
    stream: tuple[str | None, ...]
    sweep: Sweep | None = None
    layout: Layout | None = None
    row: OpenRow | None = None
    last_size: int | None = None
    stale: bool = False
    echo: bool = False
    bad: tuple[int | None, str, Place, str] | None = None
    far_off: int | None = None
    known_ranks: set[int] = field(default_factory=set)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.benchmark.complete or self.benchmark.failed is not None

    @property
    def empty(self) -> bool:
        """Whether nothing of its own came after its announcement or heading."""
        return not self.benchmark.ranks and not self.benchmark.rows

    @property
    def printing(self) -> bool:
        """Whether rows are to be expected."""
        return self.benchmark.heading is not None and not self.over

    @property
    def mean_busbw(self) -> float:
        """The mean of all bus bandwidths, as the footer has it."""
        rows = self.benchmark.rows
        halves = [half for row in rows for half in (row.out_of_place_busbw, row.in_place_busbw)]
        known = [busbw for busbw in halves if busbw is not None]
        return sum(known) / len(known) if known else 0.0

    def begin_row(self, row: OpenRow) -> None:
        """A row begins: the one before is over."""
        self.end_row()
        self.row = row
        self.last_size = row.head.size
        self.benchmark.unfinished_size = row.head.size
        if is_whole(row, self.layout):
            self.end_row()

    def continue_row(self, more: str, place: Place) -> None:
        """Values of the row that was begun."""
        if self.row is None:
            return
        self.row.add(more)
        self.benchmark.end = place
        if is_whole(self.row, self.layout):
            self.end_row()

    def end_row(self) -> None:
        """Keep the row that was begun, if it has results."""
        row, self.row = self.row, None
        if row is None or not (made := result(row, self.layout)):
            return
        self.benchmark.unfinished_size = None
        if len(self.benchmark.rows) < MAX_ROWS:
            self.benchmark.rows.append(made.row)
        self.benchmark.end = row.place
        if made.far_off and self.far_off is None:
            self.far_off = row.head.size
        if made.bad and self.bad is None:
            self.bad = (row.head.size, made.bad, row.place, row.shown)


class Runs:
    """All runs of an input; finds the one that a line belongs to."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self._open: list[Run] = []

    def begin(self, stream: tuple[str | None, ...], place: Place) -> Run:
        """A new run; those before it in its stream that already print rows may be dead."""
        run = Run(Benchmark(place=place), stream)
        for other in self._open:
            other.stale = other.stale or (other.stream == stream and other.last_size is not None)
        if len(self.all) < MAX_RUNS:
            self.all.append(run)
            self._open.append(run)
            del self._open[:-_MOST_OPEN]
        return run

    def open(self, stream: tuple[str | None, ...]) -> list[Run]:
        """Runs that have not ended, echoes last, the latest first: of ``stream``, else all."""
        self._open = [run for run in self._open if not run.over]
        own = [run for run in self._open if run.stream == stream] or self._open
        return [run for run in reversed(own) if not run.echo] + [r for r in reversed(own) if r.echo]

    @property
    def printing(self) -> bool:
        """Whether any run has yet to end."""
        return any(not run.over for run in self._open)

    def for_rank(self, stream: tuple[str | None, ...], rank: int) -> Run | None:
        """The latest run without rows or heading that has no such rank yet."""
        for run in self.open(stream):
            if rank not in run.known_ranks and run.benchmark.heading is None:
                return run
        return None

    def for_heading(self, stream: tuple[str | None, ...]) -> Run | None:
        """The latest run without a heading."""
        return next((r for r in self.open(stream) if r.benchmark.heading is None), None)

    def for_row(self, stream: tuple[str | None, ...], size: int) -> Run | None:
        """The run whose turn such a size is."""
        waiting = [run for run in self.open(stream) if run.printing]
        return max(waiting, key=lambda run: _fit(run, size), default=None)

    def for_piece(self, stream: tuple[str | None, ...]) -> Run | None:
        """The run with a row that is not whole."""
        return next((run for run in self.open(stream) if run.row is not None), None)

    def for_bounds(self, stream: tuple[str | None, ...]) -> Run | None:
        """The run whose footer begins."""
        waiting = [r for r in self.open(stream) if r.benchmark.out_of_bounds is None]
        return max(
            waiting,
            key=lambda run: (run.last_size is not None, run.printing, not run.stale),
            default=None,
        )

    def for_average(self, stream: tuple[str | None, ...], average: float | None) -> Run | None:
        """The run whose footer ends: of several the one with such a mean."""
        waiting = self.open(stream)
        begun = [run for run in waiting if run.benchmark.out_of_bounds is not None]
        return min(
            begun or waiting,
            key=lambda run: (run.stale, 0 if average is None else abs(run.mean_busbw - average)),
            default=None,
        )

    def for_failure(self, host: str, pid: str | None) -> Run | None:
        """The run that fails with a process, if it did not fail before.

        A process in no rank table speaks of the only run of its host that is still going on.
        """
        if pid is not None:
            for run in reversed(self.all[-_RECENT:]):
                if any((rank.host, rank.pid) == (host, pid) for rank in run.benchmark.ranks):
                    return None if run.over else run
        going_on: list[Run] = []
        for run in reversed(self.all[-_RECENT:]):
            if run.benchmark.failed:
                break
            if not run.over and not run.stale and _takes_part(run, host):
                going_on.append(run)
        return going_on[0] if len(going_on) == 1 or (going_on and pid is not None) else None


def _takes_part(run: Run, host: str) -> bool:
    return not run.benchmark.ranks or any(rank.host == host for rank in run.benchmark.ranks)


def _fit(run: Run, size: int) -> tuple[bool, bool, int]:
    """How well a size follows the last one of a run."""
    expected = run.sweep is not None and run.sweep.after(run.last_size) == size
    last = -1 if run.last_size is None else run.last_size
    return expected, not run.stale, last if last <= size else -2
