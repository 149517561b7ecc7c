"""Values that differ from host to host: ``{nic.socket}``, ``{hca.compute}``, filled in for one."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final

from ncdiag.model.environment import Profile, Setting
from ncdiag.model.errors import UsageError

SOCKET_NIC: Final = "nic.socket"
COMPUTE_HCAS: Final = "hca.compute"
# What each stands for, as documentation and error messages say it.
MEANINGS: Final[Mapping[str, str]] = {
    SOCKET_NIC: "the network interface that carries IP between hosts",
    COMPUTE_HCAS: "the RDMA devices with an active port that carry the job's traffic",
}
_NEXT = (
    "name it in nic= of a hosts file (--nodes of show and export), or write the value into a "
    "profile of your own"
)
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]*)*)\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class HostValues:
    """What the placeholders stand for on ``host``; ``missing`` says why one stands for nothing."""

    host: str
    values: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def placeholders_in(text: str | None) -> tuple[str, ...]:
    """The placeholders in a value, each once, in their order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text or "")))


def check(profile: Profile) -> None:
    """Raise :class:`UsageError` for a placeholder that there is not."""
    for setting in profile.settings:
        for name in placeholders_in(setting.value):
            if name not in MEANINGS:
                near = get_close_matches(name, MEANINGS, n=1)
                hint = f"did you mean {{{near[0]}}}?" if near else _known()
                raise UsageError(f"{setting.place}: {setting.name}: unknown {{{name}}}; {hint}")


def needed(settings: Iterable[Setting]) -> bool:
    """Whether any value differs from host to host."""
    return any(placeholders_in(setting.value) for setting in settings)


def fill(profile: Profile, host: HostValues) -> Profile:
    """``profile`` with the values of ``host``; raises :class:`UsageError` where one is missing."""
    check(profile)
    try:
        return replace(profile, settings=tuple(filled(one, host) for one in profile.settings))
    except UsageError as error:
        raise UsageError(f"{error}; {_NEXT}") from None


def form_of(value: str) -> re.Pattern[str]:
    """What ``value`` can look like on any host."""
    parts = _PLACEHOLDER.split(value)
    # Every second part is the name of a placeholder.
    return re.compile("".join(r"[^\s]+" if i % 2 else re.escape(p) for i, p in enumerate(parts)))


def filled(setting: Setting, host: HostValues) -> Setting:
    """One setting with the values of ``host``; raises :class:`UsageError` where one is missing."""
    if setting.value is None:
        return setting
    for name in placeholders_in(setting.value):
        if not host.values.get(name):
            why = host.missing.get(name, "it is not known")
            raise UsageError(
                f"{setting.name}: {{{name}}} cannot be filled in for {host.host}: {why}"
            )
    value = _PLACEHOLDER.sub(lambda found: host.values[found[1]], setting.value)
    return replace(setting, value=value)


def _known() -> str:
    return "there are " + ", ".join(f"{{{name}}}" for name in MEANINGS)
