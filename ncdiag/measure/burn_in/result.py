"""What a burn-in measured, before anything is concluded of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ncdiag.model.burn_in import Figure, StageFinding, StageRun, StageState
from ncdiag.model.health import HealthReport
from ncdiag.model.verdict import SweepReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnInResult:
    """Everything that was measured; ``sweep`` and ``health`` are those of the last pass.

    ``passes`` counts those that were begun. ``unreachable`` are hosts that could not be measured,
    or were lost, with the reason. ``interrupted`` says that the operator stopped it.
    """

    started: str
    seconds: float
    stages: tuple[StageRun, ...]
    sweep: SweepReport | None = None
    health: HealthReport | None = None
    passes: int = 1
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    unreachable: Mapping[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class StageOutcome:
    """What a stage found in one pass; whoever ran it adds how long that took."""

    hosts: int
    state: StageState = StageState.DONE
    reason: str | None = None
    findings: list[StageFinding] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    passed: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)
    """Hosts that could not be measured: later stages leave them out, or would fail with them."""
