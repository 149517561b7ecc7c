"""What systemd says of the services that GPUs and networks need."""

from collections.abc import Iterator, Mapping
from typing import Final

from ncdiag.health.sources.found import Found, absent, failed, read, unanswered
from ncdiag.health.sources.place import HostRoot

_UNITS: Final = (
    "nvidia-fabricmanager",
    "nvidia-persistenced",
    "nvidia-imex",
    "nvidia-dcgm",
    "nvidia-dcgm-exporter",
    "openibd",
    "opensm",
    "opensmd",
    "chronyd",
    "chrony",
    "ntpd",
    "systemd-timesyncd",
    "slurmd",
    "kubelet",
    "irqbalance",
)
_TIMEOUT_S: Final = 1.5
_SUFFIX: Final = ".service"
_LONGEST: Final = 32


def collect(root: HostRoot) -> Found:
    """The state of each such unit that the host has, in one question."""
    if root.live and not root.exists("/run/systemd/system"):
        return absent("systemd does not run here")
    argv = ("systemctl", "show", "--no-pager", "--property=Id,LoadState,ActiveState")
    units = (f"{unit}{_SUFFIX}" for unit in _UNITS)
    answer = root.ask((*argv, *units), timeout_s=_TIMEOUT_S, recorded="systemctl.txt")
    if nothing := unanswered(answer):
        return nothing
    said = list(_units(answer.output.decode(errors="replace")))
    if not said:
        return failed("systemctl told of no unit")
    return read(services=dict(_state(unit) for unit in said if _is_there(unit)))


def _units(text: str) -> Iterator[Mapping[str, str]]:
    """Blocks of ``Name=value``, parted by empty lines."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        unit = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if unit.get("Id") and unit.get("ActiveState"):
            yield unit


def _is_there(unit: Mapping[str, str]) -> bool:
    known = unit["Id"].removesuffix(_SUFFIX) in _UNITS
    return known and unit.get("LoadState", "loaded") != "not-found"


def _state(unit: Mapping[str, str]) -> tuple[str, str]:
    return unit["Id"].removesuffix(_SUFFIX), unit["ActiveState"][:_LONGEST]
