"""The gate before a launch: what each stage found, and which hosts may start.

The field names are those of ``report.json`` (schema ``ncdiag/burn-in/1``): add, never rename.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.errors import ExitCode
from ncdiag.model.health import HealthReport
from ncdiag.model.verdict import SweepReport


class Stage(StrEnum):
    """The stages, in their order."""

    REACH = "reach"
    HEALTH = "health"
    LOCAL = "local"
    PAIRS = "pairs"
    COLLECTIVE = "collective"
    LOAD = "load"


class StageState(StrEnum):
    """How a stage ended for the fleet."""

    DONE = "done"
    CUT = "cut off by the budget"
    FAILED = "failed"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """What was decided of a host."""

    GOOD = "good"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of one host: ``name`` with its unit (``gemm_tflop_per_s``), and its peers' median.

    ``lower_is_worse`` is false for times. ``pass_number`` counts repeats from 1.
    """

    host: str
    stage: Stage
    name: str
    value: float
    median: float | None = None
    component: str | None = None
    lower_is_worse: bool = True
    pass_number: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFinding:
    """What a stage says against a host.

    ``outcome`` is ``rejected`` or ``undecided``. ``confirmed`` says that it held when it was
    repeated, or measured with other partners. ``isolates`` says that the host itself is to blame:
    only then is it evidence for isolation. ``partners`` are the hosts it was measured with.
    """

    host: str
    stage: Stage
    outcome: Outcome
    reason: str
    confidence: float
    confirmed: bool = False
    isolates: bool = False
    component: str | None = None
    partners: tuple[str, ...] = ()
    class_: str = "burn_in"
    next: str = ""
    pass_number: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """One stage as it went over the fleet; ``hosts`` counts those that took part.

    ``reason`` says why it was skipped, cut or failed.
    """

    stage: Stage
    state: StageState
    hosts: int
    seconds: float
    budget_s: float | None = None
    reason: str | None = None
    findings: tuple[StageFinding, ...] = ()
    figures: tuple[Figure, ...] = ()
    pass_number: int = 1
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOutcome:
    """One host, decided. ``stages`` are those it went through without a finding."""

    name: str
    outcome: Outcome
    confidence: float
    reasons: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    leaf: str | None = None


class GateVerdict(StrEnum):
    """Whether the launch may go ahead."""

    MET = "met"
    SHORT = "short"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that carries this verdict."""
        return {
            GateVerdict.MET: ExitCode.DONE,
            GateVerdict.SHORT: ExitCode.WRONG,
            GateVerdict.UNDECIDED: ExitCode.UNDECIDED,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnInReport:
    """A finished (or interrupted) burn-in.

    ``chosen`` are the ``need`` hosts to launch on and ``spares`` those kept ready, packed under as
    few leaves as possible; ``left`` are good too. ``isolate`` are rejected hosts that are to blame
    themselves. ``sweep`` and ``health`` are the whole reports of these stages (of the last pass).
    """

    started: str
    seconds: float
    level: str
    need: int
    spares_wanted: int
    verdict: GateVerdict
    confidence: float
    hosts: tuple[HostOutcome, ...]
    stages: tuple[StageRun, ...] = ()
    chosen: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    isolate: tuple[str, ...] = ()
    leaves: Mapping[str, int] = field(default_factory=dict)
    passes: int = 1
    sweep: SweepReport | None = None
    health: HealthReport | None = None
    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    interrupted: bool = False
