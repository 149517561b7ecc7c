"""What is known of the environment variables of NCCL and of the programs around it."""

from ncdiag.model.environment import Variable


def variable(name: str) -> Variable | None:
    """What is known of ``name``, or ``None``."""
    _ = name
    return None


def near(name: str) -> tuple[str, ...]:
    """Known names that ``name`` may have been meant to be, the nearest first."""
    _ = name
    return ()


def variables() -> tuple[Variable, ...]:
    """Every row, by name."""
    return ()
