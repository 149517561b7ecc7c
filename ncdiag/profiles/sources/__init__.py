"""Settings of environment variables out of the files that hold them; nothing is executed.

``read_settings(data, name)`` finds the kind by content and name. A value that is only known when the
file is run keeps its ``$``, or is :data:`UNKNOWN_VALUE`; ``None`` takes a variable away.
"""

from typing import Final

from ncdiag.model.environment import Setting

UNKNOWN_VALUE: Final = "$"


def read_settings(data: bytes, name: str) -> tuple[Setting, ...]:
    """The settings in ``data``, which stood in the file ``name``, each with ``name:line`` as place.

    Raises :class:`~ncdiag.model.errors.UsageError` where nothing can be read of it.
    """
    _ = data, name
    return ()


def environment_settings(environment: dict[str, str]) -> tuple[Setting, ...]:
    """The settings of ``environment`` that belong to a family of the catalogue, by name."""
    _ = environment
    return ()
