"""The policy: what it takes to isolate a host, as TOML over the one that is shipped.

A policy file holds what differs from ``policy.toml`` beside this module. What would isolate
everybody, or means nothing, is refused: no file can go beyond the ceilings of this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ncdiag.model.isolation import Action, EvidenceKind

SHIPPED: Final = Path(__file__).with_name("policy.toml")
# A third of a fleet at once is not a few bad hosts, but something that they share, or a mistake.
MAX_PER_CENT: Final = 33.0
# A sweep needs two partners to tell a host from the one at the other end.
MIN_BANDWIDTH_PARTNERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What it takes for one class of evidence; the comments of ``policy.toml`` say what each is."""

    isolates: bool
    confirmations: int
    of: int
    within_s: float
    partners: int
    confidence: float
    grace_s: float
    counts_for_s: float
    cleared_by_clean_runs: bool
    cleared_by_boot: bool
    sticky: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many hosts may be out at a time; ``hosts`` 0: none."""

    hosts: int
    per_cent: float
    per_leaf: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LemonRule:
    """When a host that keeps failing is a lemon; ``weights`` are by kind, class, or ``out``."""

    action: Action
    threshold: float
    half_life_s: float
    days: int
    weights: Mapping[str, float]

    def weight(self, kind: EvidenceKind, class_: str) -> float:
        """What a day counts on which it was seen."""
        return self.weights.get(class_, self.weights.get(kind.value, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A whole policy; ``kinds`` and ``classes`` hold what differs from ``every``."""

    budget: Budget
    lemon: LemonRule
    rules: Mapping[EvidenceKind, Rule]
    classes: Mapping[tuple[EvidenceKind, str], Rule]

    def rule(self, kind: EvidenceKind, class_: str) -> Rule:
        """The rule for evidence of ``class_``."""
        return self.classes.get((kind, class_), self.rules[kind])


def default_policy() -> Policy:
    """The policy that is shipped."""
    return read_policy(None)


def read_policy(path: Path | None) -> Policy:
    """The policy of the file at ``path`` over the shipped one; ``None``: that alone.

    Raises :class:`UsageError` with one line for what cannot be used.
    """
    from ncdiag.isolate.policy_files import read  # tables and their checks

    return read(path)
