"""Evidence against hosts, and what a policy makes of it.

Times are UTC seconds since the epoch. Field names are those of ``ncdiag/isolation/1``: add, never
rename.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

SLOW_HOST: Final = "slow_host"
SLOW_NIC: Final = "slow_nic"
DAMAGED_DATA: Final = "damaged_data"
SLOW_RANK: Final = "slow_rank"
BURN_IN: Final = "burn_in"
OPERATOR: Final = "operator"


class EvidenceKind(StrEnum):
    """What sort of thing was seen, which decides what it takes to act upon it."""

    HEALTH = "health"
    BANDWIDTH = "bandwidth"
    DATA = "data"
    CRASH = "crash"
    STRAGGLER = "straggler"
    BURN_IN = "burn-in"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePiece:
    """One thing that speaks against ``host``, or for it where ``clears``.

    ``class_`` says what: the value of a ``FindingClass`` (``gpu_fell_off_bus``), the id of a health
    check, or one of ``slow_host``, ``slow_nic``, ``damaged_data``, ``slow_rank``, ``burn_in``,
    ``operator``. ``source`` is the command (``sweep``, ``health``), ``run`` the identity of that
    run of it: several pieces of one run confirm each other only once. ``conclusive`` is false where
    the report itself accuses nobody: such a piece is kept, and never acted upon. ``partners`` are
    the hosts that bandwidth was measured with. ``confidence`` is between 0 and 1. ``until_s`` is
    when it stops counting, ``None``: as the policy says. ``report`` is where to read more.
    ``component`` names a GPU or NIC. ``uptime_s`` is how long the host had been up, where known.
    ``covers`` are the classes that a piece which clears speaks of; none: all of its kind.
    """

    host: str
    kind: EvidenceKind
    class_: str
    source: str
    run: str
    seen_s: float
    text: str
    confidence: float = 1.0
    conclusive: bool = True
    clears: bool = False
    partners: tuple[str, ...] = ()
    component: str | None = None
    report: str | None = None
    until_s: float | None = None
    uptime_s: float | None = None
    covers: tuple[str, ...] = ()


class Action(StrEnum):
    """What the policy says of a host."""

    ISOLATE = "isolate"
    WATCH = "watch"
    RELEASE = "release"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What should be done with a host, why, and the evidence behind it (newest first).

    ``sticky`` ends only by ``isolate remove`` or an operator's word; else ``until_s`` is when it
    ends by itself. ``lemon_score`` is over weeks: see ``ncdiag.isolate.lemons``. ``held_back`` says
    why an ``isolate`` is not carried out (the safety budget, a grace period), ``None`` otherwise.
    ``accused_after`` is the number of ncdiag's newest action when the host was last accused of
    something new, ``None`` where the ledger does not know.
    """

    host: str
    action: Action
    reason: str
    confidence: float
    evidence: tuple[EvidencePiece, ...] = ()
    sticky: bool = False
    until_s: float | None = None
    lemon_score: float = 0.0
    held_back: str | None = None
    accused_after: int | None = None


class PlaceState(StrEnum):
    """How a host stands where decisions are carried out."""

    AVAILABLE = "available"
    OURS = "isolated by ncdiag"
    THEIRS = "isolated by somebody else"
    MISSING = "not known there"
    UNKNOWN = "could not be asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step of a plan: isolate or release ``host`` at ``place``.

    ``skipped`` says why it is not done (somebody else's drain); ``done`` and ``error`` how it went.
    """

    host: str
    place: str
    isolate: bool
    reason: str
    before: PlaceState
    skipped: str | None = None
    done: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPlan:
    """What ``apply`` would do; ``refused`` says why nothing is carried out at all."""

    decisions: tuple[Decision, ...]
    changes: tuple[Change, ...] = ()
    refused: str | None = None
    hosts: int = 0
    leaves: Mapping[str, str] = field(default_factory=dict)
