"""The classes that evidence can have, and that a policy can speak of."""

from typing import Final

from ncdiag.model.finding import FindingClass

SLOW_HOST: Final = "slow_host"
SLOW_NIC: Final = "slow_nic"
DAMAGED_DATA: Final = "damaged_data"
SLOW_RANK: Final = "slow_rank"
BURN_IN: Final = "burn_in"
OPERATOR: Final = "operator"
CLEAN: Final = "clean"
"""What a piece that clears is called: it has no class of its own, but covers some."""

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
    from importlib import import_module, util

    if util.find_spec("ncdiag.health.checks.table") is None:
        return ()
    return tuple(import_module("ncdiag.health.checks.table").CHECKS)
