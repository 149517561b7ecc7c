"""What was measured and concluded of one collective over a set of hosts.

The field names are those of ``bench.json`` (schema ``ncdiag/bench/1``): add, never rename. Sizes
are in bytes as nccl-tests count them, bandwidths in GB/s of 1e9 bytes, times in microseconds.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.verdict import Verdict


class BenchFindingKind(StrEnum):
    """What can be wrong with a benchmark's results, the worst first."""

    WRONG_DATA = "wrong_data"
    BELOW_EXPECTATION = "below_expectation"
    BELOW_HISTORY = "below_history"
    CLIFF = "cliff"
    SLOW_RANK = "slow_rank"
    SCALING_BREAK = "scaling_break"
    NOISE = "noise"
    INCOMPLETE = "incomplete"


class BenchSeverity(StrEnum):
    """How much a finding weighs: ``fault`` makes the verdict faulty, ``note`` does not."""

    FAULT = "fault"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """One run of a collective over ``hosts``, as it was measured and before anybody judges it.

    ``ranks_per_host`` ranks go host by host in the order of ``hosts``. ``benchmark`` is what it
    printed, ``None`` where that is nothing; ``error`` says why it gave nothing, or not all.
    ``wrong_data`` is true where the run itself says so besides its rows (an exit code).
    """

    hosts: tuple[str, ...]
    ranks_per_host: int
    benchmark: Benchmark | None = None
    error: str | None = None
    wrong_data: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPoint:
    """One size: medians over the repeats, of the better half (out of place or in place).

    ``min_busbw_gb_per_s`` and ``max_busbw_gb_per_s`` are over the repeats; ``wrong`` counts wrong
    elements in all of them, ``None`` where nothing was checked. ``cliff`` marks a size that falls
    out of the curve. ``history_min_busbw_gb_per_s`` and ``..._max_...`` are over earlier benchmarks
    of the same collective on as many hosts, ``None`` without any.
    """

    size_bytes: int
    time_us: float | None
    algbw_gb_per_s: float | None
    busbw_gb_per_s: float | None
    min_busbw_gb_per_s: float | None = None
    max_busbw_gb_per_s: float | None = None
    repeats: int = 1
    wrong: int | None = None
    expected_time_us: float | None = None
    expected_busbw_gb_per_s: float | None = None
    cliff: bool = False
    history_min_busbw_gb_per_s: float | None = None
    history_max_busbw_gb_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCurve:
    """The sizes of one number of hosts; ``plateau_busbw_gb_per_s`` is where large sizes level off.

    ``efficiency`` is that over the expectation for large sizes; ``None`` where either is not known,
    and ``expectation_unreliable`` where published runs miss it too, so that it proves nothing.
    ``error`` says why a run gave nothing, or not all. ``history_plateau_gb_per_s`` is the median
    plateau of ``history_runs`` earlier benchmarks like this one.
    """

    hosts: tuple[str, ...]
    ranks: int
    points: tuple[BenchPoint, ...] = ()
    plateau_busbw_gb_per_s: float | None = None
    plateau_from_bytes: int | None = None
    expected_busbw_gb_per_s: float | None = None
    expected_from: tuple[str, ...] = ()
    efficiency: float | None = None
    expectation_unreliable: bool = False
    error: str | None = None
    history_plateau_gb_per_s: float | None = None
    history_runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchFinding:
    """One thing that is wrong or worth knowing; ``next`` is the command to run or what to do.

    ``size_bytes``, ``rank`` and ``host`` are there where the finding is about one.
    """

    kind: BenchFindingKind
    severity: BenchSeverity
    text: str
    next: str
    size_bytes: int | None = None
    rank: int | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """A finished (or interrupted) benchmark, ready to be rendered in any format.

    ``curves`` has one for each number of hosts, the largest last; without ``--scaling`` one alone.
    ``unreachable`` maps hosts that were left out to the reason. ``started`` is UTC in ISO 8601.
    """

    started: str
    seconds: float
    collective: str
    engine: str
    launcher: str
    verdict: Verdict
    curves: tuple[BenchCurve, ...]
    findings: tuple[BenchFinding, ...] = ()
    unreachable: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interrupted: bool = False
