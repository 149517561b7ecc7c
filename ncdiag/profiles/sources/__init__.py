"""Settings of environment variables out of the files that hold them; nothing is executed.

``read_settings(data, name)`` finds the kind by content and name. A value that is only known when
the file is run keeps its ``$``, or is :data:`UNKNOWN_VALUE`; ``None`` takes a variable away.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from ncdiag.model.environment import Setting
from ncdiag.profiles.catalogue import concerns
from ncdiag.profiles.context import THE_ENVIRONMENT
from ncdiag.profiles.sources.kinds import is_environment_in_crlf, read

__all__ = [
    "UNKNOWN_VALUE",
    "environment_settings",
    "is_environment_in_crlf",
    "mentions",
    "read_settings",
]

UNKNOWN_VALUE: Final = "$"

# What Apptainer takes of its own environment into the container's.
_OF_THE_CONTAINER = ("APPTAINERENV_", "SINGULARITYENV_")
# Open MPI's list of what to hand to ranks.
_ENV_LIST = "OMPI_MCA_mca_base_env_list"
_MENTION = re.compile(r"\b(?:TORCH_)?NCCL_[A-Z0-9_]*[A-Z0-9]\b")


def read_settings(data: bytes, name: str) -> tuple[Setting, ...]:
    """The settings in ``data``, which stood in the file ``name``, each with ``name:line`` as place.

    Only names that are those of the catalogue's programs, or nearly, are given. Raises
    :class:`~ncdiag.model.errors.UsageError` with the line where the file cannot be read.
    """
    found = _handed_on(read(data, name))
    return tuple(setting for setting in found if concerns(setting.name))


def mentions(data: bytes) -> bool:
    """Whether ``data`` holds a name of NCCL's or PyTorch's outside of a comment line."""
    return any(
        _MENTION.search(line)
        for line in data.decode("utf-8", "replace").split("\n")
        if not line.lstrip().startswith(("#", "//", "--"))
    )


def _handed_on(settings: Iterable[Setting]) -> Iterator[Setting]:
    """``settings`` with what programs hand on under another name."""
    for one in settings:
        prefix = next((start for start in _OF_THE_CONTAINER if one.name.startswith(start)), None)
        if prefix is not None:
            scope = (*one.scope, "container")
            yield replace(one, name=one.name.removeprefix(prefix), scope=scope)
        elif one.name == _ENV_LIST and one.value:
            pairs = [part.partition("=") for part in one.value.split(";")]
            ranks = (*one.scope, "ranks")
            yield from (replace(one, name=n, value=v, scope=ranks) for n, eq, v in pairs if eq)
        else:
            yield one


def environment_settings(environment: Mapping[str, str]) -> tuple[Setting, ...]:
    """The settings of ``environment`` that concern the catalogue's programs, by name.

    All else is left out, so that no secret is shown.
    """
    made = (Setting(name, environment[name], THE_ENVIRONMENT) for name in sorted(environment))
    return tuple(one for one in _handed_on(made) if concerns(one.name))
