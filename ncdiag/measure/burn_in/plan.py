"""What a burn-in sets out to do, and what each stage may take of its budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ncdiag.measure.engines.base import Timing
from ncdiag.model.burn_in import Stage
from ncdiag.model.host import Host

if TYPE_CHECKING:
    from ncdiag.health.checks.limits import Limits


class Level(StrEnum):
    """How much is measured: a look before each launch, a gate, or a test over a night."""

    QUICK = "quick"
    NORMAL = "normal"
    SOAK = "soak"


@dataclass(frozen=True, slots=True)
class Share:
    """What a stage may take: a part of the budget, in parts of all, and what it needs at least."""

    weight: float
    least_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnInPlan:
    """What is asked for: ``need`` hosts and ``spares``, told within ``budget_s`` a pass.

    With ``duration_s`` passes are repeated until it is over. ``variables`` of a profile are in the
    environment of what measures. ``started`` is UTC in ISO 8601 ending in ``Z``. ``settings`` and
    ``versions`` are for reports.
    """

    hosts: tuple[Host, ...]
    level: Level
    need: int
    spares: int
    budget_s: float
    started: str
    duration_s: float | None = None
    seed: int = 0
    timing: Timing = field(default_factory=Timing)
    faulty_below: float = 0.8
    variables: Mapping[str, str] = field(default_factory=dict)
    limits: "Limits | None" = None
    launcher: str = ""
    profile: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


LEVEL_BUDGET_S: Final[Mapping[Level, float]] = {
    Level.QUICK: 180.0,
    Level.NORMAL: 600.0,
    Level.SOAK: 3600.0,
}
"""What a pass may take unless told otherwise."""

# Reaching waits for torch to be imported: 60 s from a cold file system. The least is what makes a
# stage worth beginning; a whole-fleet collective has to set up its connections first.
SHARES: Final[Mapping[Level, Mapping[Stage, Share]]] = {
    Level.QUICK: {
        Stage.REACH: Share(35, 8),
        Stage.HEALTH: Share(10, 4),
        Stage.LOCAL: Share(15, 6),
        Stage.PAIRS: Share(40, 6),
        Stage.COLLECTIVE: Share(15, 6),
        Stage.LOAD: Share(15, 8),
    },
    Level.NORMAL: {
        Stage.REACH: Share(15, 8),
        Stage.HEALTH: Share(3, 4),
        Stage.LOCAL: Share(12, 6),
        Stage.PAIRS: Share(45, 6),
        Stage.COLLECTIVE: Share(10, 6),
        Stage.LOAD: Share(20, 8),
    },
    Level.SOAK: {
        Stage.REACH: Share(3, 8),
        Stage.HEALTH: Share(1, 4),
        Stage.LOCAL: Share(16, 6),
        Stage.PAIRS: Share(35, 6),
        Stage.COLLECTIVE: Share(10, 6),
        Stage.LOAD: Share(35, 8),
    },
}

# Kept back for closing the fleet and writing the report, and at most this part of a short budget.
CLOSING_S: Final = 8.0
CLOSING_SHARE: Final = 0.1

LOCAL_S: Final[Mapping[Level, float]] = {Level.QUICK: 1.0, Level.NORMAL: 5.0, Level.SOAK: 60.0}
"""How long each node-local figure is measured, at most."""

LOAD_S: Final[Mapping[Level, float]] = {Level.QUICK: 10.0, Level.NORMAL: 90.0, Level.SOAK: 1200.0}
"""How long the load runs, at most."""


def allot(level: Level, stage: Stage, to_come: Sequence[Stage], left_s: float) -> float | None:
    """The seconds ``stage`` gets of ``left_s``; ``None`` where that is less than it needs.

    ``to_come`` are the stages after it. What earlier ones left over is shared by all that follow,
    and an earlier stage is given what it needs before a later one.
    """
    shares = SHARES[level]
    if left_s < shares[stage].least_s:
        return None
    weights = shares[stage].weight + sum(shares[one].weight for one in to_come)
    others_s = sum(shares[one].least_s for one in to_come)
    fair_s = min(left_s * shares[stage].weight / weights, left_s - others_s)
    return max(shares[stage].least_s, fair_s)


def measuring_s(budget_s: float) -> float:
    """What of a budget is left for the stages."""
    return budget_s - min(CLOSING_S, CLOSING_SHARE * budget_s)
