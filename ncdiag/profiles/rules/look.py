"""Settings as the rules look at them: which layer each stands in, and which one takes effect."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ncdiag.model.environment import Setting
from ncdiag.model.text import visible
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.rules.places import Layer, conf_file_of, is_unread, layer_of
from ncdiag.profiles.rules.scopes import by_scope

_LONGEST = 400
# $HOST, `hostname`, {nic.socket} of a profile, {{ nic }} of a template.
_OPEN = re.compile(r"[$`]|\{\{|\{[a-z]+(?:\.[a-z0-9_]+)+\}")
_INTEGER = re.compile(r"[ \t]*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_OCTAL_START = re.compile(r"0*([0-7]*)")


@dataclass(frozen=True, slots=True)
class Look:
    """``settings`` in their order, ``effective`` those that win in ``scope``, by name.

    What only a branch or a part of the scope sets stands in ``effective`` without a place.
    """

    settings: tuple[Setting, ...]
    effective: dict[str, Setting]
    context: LintContext
    scope: tuple[str, ...] = ()

    def value(self, name: str) -> str | None:
        """The value of ``name``, where it is set and known."""
        setting = self.effective.get(name)
        if setting is None or setting.value is None or is_open(setting.value):
            return None
        return setting.value

    def integer(self, name: str) -> int | None:
        """That value as NCCL reads a number, or ``None``."""
        value = self.value(name)
        return None if value is None else as_integer(value)

    def multi_host(self) -> bool | None:
        """Whether the job has more than one host, where that is known."""
        if len(self.context.hosts) > 1:
            return True
        if self.context.ranks is None:
            return None
        # No host has more than 16 GPUs; up to 8 ranks may be one host.
        return True if self.context.ranks > 16 else None if self.context.ranks > 1 else False

    def nvlink(self) -> bool | None:
        """Whether GPUs of some host are joined by NVLink, where that is known."""
        known = [host.nvlink for host in self.context.hosts if host.nvlink is not None]
        return any(known) if known else None


def looks_at(settings: Sequence[Setting], context: LintContext) -> tuple[Look, ...]:
    """Find out which of ``settings`` take effect in each scope; the outermost comes first.

    Of very many scopes the first are looked at.
    """
    made = tuple(settings)
    files = _of_files(made)
    conf_file = conf_file_of(made)
    job = (one for one in made if layer_of(one, conf_file) is Layer.PROCESS)
    return tuple(
        Look(made, files | effective, context, scope) for scope, effective in by_scope(job).items()
    )


def is_open(value: str) -> bool:
    """Whether ``value`` is only known once a shell, or a profile, has filled it in."""
    return _OPEN.search(value) is not None


def as_integer(value: str) -> int | None:
    """What C's strtoll reads of the start of ``value``, in any base; ``None`` is no number."""
    found = _INTEGER.match(value[:64])
    if not found:
        return None
    sign, digits = found.groups()
    if digits[:2] in ("0x", "0X"):
        number = int(digits, 16)
    elif digits[0] == "0":
        number = int(_OCTAL_START.match(digits)[1] or "0", 8)  # type: ignore[index]
    else:
        number = int(digits)
    return -number if sign == "-" else number


def is_before(at_hand: tuple[int, ...], version: tuple[int, ...]) -> bool:
    """Whether ``at_hand`` is older than ``version``; 2.18 stands for every 2.18."""
    return at_hand < version[: len(at_hand)]


def shown(version: tuple[int, ...]) -> str:
    """``version`` as it is written: 2.18.1."""
    return ".".join(str(part) for part in version)


def short(text: str) -> str:
    """``text`` made safe to print, and cut where it is very long."""
    return visible(text) if len(text) <= _LONGEST else f"{visible(text[:_LONGEST])}..."


def _of_files(settings: tuple[Setting, ...]) -> dict[str, Setting]:
    """What NCCL takes of its own files, by name; the first line of a file counts."""
    conf_file = conf_file_of(settings)
    layers: dict[Layer, dict[str, Setting]] = {layer: {} for layer in Layer}
    for setting in settings:
        if not is_unread(setting, conf_file):
            layers[layer_of(setting, conf_file)].setdefault(setting.name, setting)
    return layers[Layer.SYSTEM_FILE] | layers[Layer.USER_FILE]
