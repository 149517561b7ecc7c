"""The classes that evidence can have, and that a policy can speak of."""

from typing import Final

from ncdiag.model.finding import FindingClass
from ncdiag.model.isolation import (
    BURN_IN,
    DAMAGED_DATA,
    OPERATOR,
    SLOW_HOST,
    SLOW_NIC,
    SLOW_RANK,
    EvidenceKind,
)

__all__ = [
    "BURN_IN",
    "DAMAGED_DATA",
    "KNOWN_CLASSES",
    "OPERATOR",
    "SLOW_HOST",
    "SLOW_NIC",
    "SLOW_RANK",
    "clean",
    "health_checks",
]

KNOWN_CLASSES: Final = (
    *(class_.value for class_ in FindingClass),
    SLOW_HOST,
    SLOW_NIC,
    DAMAGED_DATA,
    SLOW_RANK,
    BURN_IN,
    OPERATOR,
)


def health_checks() -> tuple[str, ...]:
    """The ids of all health checks."""
    from ncdiag.health.checks.table import CHECKS

    return tuple(CHECKS)


def clean(kind: EvidenceKind) -> str:
    """What a piece is called that clears: it has no class of its own, but covers some."""
    return f"clean_{kind.value}"
