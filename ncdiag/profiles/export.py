"""Profiles as what other programs read: shell, Slurm, MPI launchers, containers, NCCL's own file.

Each format has one way to write a value down, which gives it back unchanged, or refuses it.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ncdiag.model.environment import Profile, Reader, Setting
from ncdiag.model.errors import UsageError
from ncdiag.model.json_text import encode
from ncdiag.profiles import catalogue

SCHEMA: Final = "ncdiag/env-export/1"
# NCCL copies a value of its files into a buffer of 1024 (setEnvFile in src/misc/param.cc).
_MAX_CONF_BYTES: Final = 1023
# Whoever reads these with getenv does so after NCCL has read its files.
_AFTER_NCCL: Final = (Reader.NCCL, Reader.RCCL, Reader.PLUGIN, Reader.OFI, Reader.LIBFABRIC)
_PLAIN_YAML = re.compile(r"[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")


class Target(StrEnum):
    """What a profile can be written for."""

    SH = "sh"
    SLURM = "slurm"
    OPENMPI = "openmpi"
    HYDRA = "hydra"
    DOCKER = "docker"
    KUBERNETES = "kubernetes"
    NCCL_CONF = "nccl.conf"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Exported:
    """The text, and what it could not say and somebody has to see to."""

    text: str
    notes: tuple[str, ...] = ()


def export(profile: Profile, target: Target) -> Exported:
    """``profile`` as ``target`` reads it; raises :class:`UsageError` for a value it cannot hold.

    Values stand there as they are: placeholders have to be filled in before.
    """
    kept, notes = _sayable(profile, target)
    for setting in kept:
        if setting.value is not None and (why := _CANNOT_HOLD[target](setting.value)):
            raise UsageError(f"{setting.name}: {target} cannot hold a value with {why}")
    return Exported(_WRITERS[target](profile, kept), notes)


def _sayable(profile: Profile, target: Target) -> tuple[Sequence[Setting], tuple[str, ...]]:
    kept, notes = [], []
    for setting in profile.settings:
        if setting.value is None and target not in _CAN_UNSET:
            notes.append(f"{setting.name} is to be unset, which {target} cannot do: see to it")
        elif target is Target.NCCL_CONF and (reader := _early_reader(setting.name)):
            notes.append(f"{setting.name} is left out: {reader} reads it, not from this file")
        else:
            kept.append(setting)
    return kept, tuple(notes)


def _early_reader(name: str) -> str | None:
    """Who reads the variable before, or without, NCCL's files being read."""
    known = catalogue.variable(name)
    if known is None:
        return (
            None if name.startswith(("NCCL_", "RCCL_", "OFI_NCCL_", "FI_")) else "another program"
        )
    return None if known.reader in _AFTER_NCCL else str(known.reader)


def _sh(_: Profile, settings: Sequence[Setting]) -> str:
    return "".join(
        f"unset {one.name}\n"
        if one.value is None
        else f"export {one.name}={shlex.quote(one.value)}\n"
        for one in settings
    )


def _slurm(profile: Profile, settings: Sequence[Setting]) -> str:
    """For a batch script: its lists of ``--export`` end a value at a comma, so this is shell.

    Under ``sbatch --export=NONE`` steps would get nothing of it but for the last line (srun(1)).
    """
    return _sh(profile, settings) + "export SLURM_EXPORT_ENV=ALL\n"


def _openmpi(_: Profile, settings: Sequence[Setting]) -> str:
    """Options of mpirun, each quoted for a shell (mpirun(1) of Open MPI)."""
    return _options(f"-x {shlex.quote(f'{one.name}={one.value}')}" for one in settings)


def _hydra(_: Profile, settings: Sequence[Setting]) -> str:
    """Options of mpiexec, each quoted for a shell (the manual of MPICH's Hydra)."""
    return _options(f"-genv {one.name} {shlex.quote(one.value or '')}" for one in settings)


def _options(options: Iterable[str]) -> str:
    """One a line, and all of them one line to a shell."""
    return " \\\n".join(options) + "\n"


def _lines(_: Profile, settings: Sequence[Setting]) -> str:
    """For ``docker run --env-file`` and NCCL: all behind the first equals sign is the value."""
    return "".join(f"{one.name}={one.value}\n" for one in settings)


def _kubernetes(_: Profile, settings: Sequence[Setting]) -> str:
    """For a container. There ``$(NAME)`` would be expanded, and ``$$`` is a dollar."""
    lines = [
        f"  - name: {one.name}\n    value: {_yaml((one.value or '').replace('$', '$$'))}\n"
        for one in settings
    ]
    return "env:\n" + "".join(lines) if lines else "env: []\n"


def _yaml(text: str) -> str:
    """A double-quoted scalar (YAML 1.2.2, section 5.7)."""
    return '"' + "".join(map(_yaml_char, text)) + '"'


def _yaml_char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if _PLAIN_YAML.fullmatch(char):
        return char
    return f"\\U{ord(char):08x}"


def _json(profile: Profile, settings: Sequence[Setting]) -> str:
    document = {
        "schema": SCHEMA,
        "profile": profile.name,
        "nccl": profile.nccl,
        "variables": {one.name: one.value for one in settings},
    }
    return encode(document, indent=2).decode() + "\n"


def _anything(value: str) -> None:
    del value


def _a_line(value: str) -> str | None:
    return "a line break" if set(value) & set("\n\r") else None


def _a_line_of_nccl(value: str) -> str | None:
    if len(value.encode()) > _MAX_CONF_BYTES:
        return f"more than {_MAX_CONF_BYTES} bytes"
    return _a_line(value)


_CAN_UNSET: Final = frozenset({Target.SH, Target.SLURM, Target.JSON})
_WRITERS: Final[Mapping[Target, Callable[[Profile, Sequence[Setting]], str]]] = {
    Target.SH: _sh,
    Target.SLURM: _slurm,
    Target.OPENMPI: _openmpi,
    Target.HYDRA: _hydra,
    Target.DOCKER: _lines,
    Target.KUBERNETES: _kubernetes,
    Target.NCCL_CONF: _lines,
    Target.JSON: _json,
}
# Why a value cannot be written down, if it cannot.
_CANNOT_HOLD: Final[Mapping[Target, Callable[[str], str | None]]] = {
    **dict.fromkeys(Target, _anything),
    Target.DOCKER: _a_line,
    Target.NCCL_CONF: _a_line_of_nccl,
}
