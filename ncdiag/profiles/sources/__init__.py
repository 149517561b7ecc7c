"""Settings of environment variables out of the files that hold them; nothing is executed.

``read_settings(data, name)`` finds the kind by content and name. A value that is only known when
the file is run keeps its ``$``, or is :data:`UNKNOWN_VALUE`; ``None`` takes a variable away.
"""

from collections.abc import Mapping
from typing import Final

from ncdiag.model.environment import Setting
from ncdiag.profiles.catalogue import concerns
from ncdiag.profiles.sources.kinds import read

UNKNOWN_VALUE: Final = "$"


def read_settings(data: bytes, name: str) -> tuple[Setting, ...]:
    """The settings in ``data``, which stood in the file ``name``, each with ``name:line`` as place.

    Only names that are those of the catalogue's programs, or nearly, are given. Raises
    :class:`~ncdiag.model.errors.UsageError` with the line where the file cannot be read.
    """
    return tuple(setting for setting in read(data, name) if concerns(setting.name))


def environment_settings(environment: Mapping[str, str]) -> tuple[Setting, ...]:
    """The settings of ``environment`` that concern the catalogue's programs, by name.

    All else is left out, so that no secret is shown.
    """
    names = sorted(name for name in environment if concerns(name))
    return tuple(Setting(name, environment[name], "the environment") for name in names)
