"""Differences between a host and the fleet: their class, how bad they are, and in words."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ncdiag.diagnose.topology.fleet_facts import MINOR, Subject
from ncdiag.diagnose.topology.matrix import links_of
from ncdiag.model.host import IDLE_GIGATRANSFERS_PER_S
from ncdiag.model.text import visible
from ncdiag.model.topology import TopologySeverity

DIFFERS = "fleet_differs"
_SHOWN_CHARS = 160
# Class of what a host lacks, by kind of subject.
MISSING = {
    "GPU": "gpu_missing",
    "adapter": "nic_missing",
    "link": "nvlink_missing",
    "port": "nic_missing",
}
# Aspect: class where the host has less, how a figure is written.
_LESS: dict[str, tuple[str, str]] = {
    "rate": ("pcie_downgraded_speed", "{:g} GT/s"),
    "lanes": ("pcie_downgraded_width", "x{:g}"),
    "NVLinks": ("nvlink_missing", "{:g} NVLinks"),
    "links": ("nvlink_missing", "{:g} links"),
    "speed": ("nic_speed_mixed", "{:g} Gbit/s"),
    "C2C": (DIFFERS, "{:g} GB/s over C2C"),
}
# Class of fewer lanes or a lower rate on what is no device.
_OF_OTHERS = {"bridge": "pcie_uplink_narrow", "cable": "ib_link_width_mismatch"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which a host differs, and how many of the others agree on it."""

    name: str
    severity: TopologySeverity
    text: str
    agree: int
    missing: str | None = None
    """What is missing, where that is all: several are told as one."""


def absent(subject: Subject, label: str, agree: int) -> Difference:
    """Return that the host lacks what the others have."""
    what = f"{subject.kind} {label}"
    name = MISSING.get(subject.kind, DIFFERS)
    return Difference(name, TopologySeverity.DEGRADED, f"{what} missing", agree, subject.kind)


def extra(subject: Subject, label: str, agree: int) -> Difference:
    """Return that the host has what the others lack."""
    text = f"{subject.kind} {label} is there, and not on the others"
    return Difference(DIFFERS, TopologySeverity.DEGRADED, text, agree)


def other(
    subject: Subject, label: str, aspect: str, values: tuple[Hashable, Hashable], agree: int
) -> Difference:
    """Return that the host has the first of ``values`` where the others have the second."""
    mine, usual = values
    text = f"{subject.kind} {label}: {written(aspect, mine)}, elsewhere {written(aspect, usual)}"
    severity = TopologySeverity.INFO if aspect in MINOR else TopologySeverity.DEGRADED
    if subject.kind == "GPU" and aspect == "rate" and mine == IDLE_GIGATRANSFERS_PER_S:
        severity = TopologySeverity.INFO
        text += " (an idle GPU falls back so: look under load)"
    return Difference(_class_of(subject, aspect, mine, usual), severity, text, agree)


def written(aspect: str, value: Hashable) -> str:
    """Write one value of an aspect."""
    if value is None:
        return f"no {aspect} stated"
    if isinstance(value, bool):
        return f"{aspect} {'on' if value else 'off'}"
    if aspect in _LESS and isinstance(value, int | float):
        return _LESS[aspect][1].format(value)
    if aspect == "place":
        return f"under {visible(str(value)[:_SHOWN_CHARS])}"
    return f"{aspect} {visible(str(value)[:_SHOWN_CHARS])}"


def _class_of(subject: Subject, aspect: str, mine: Hashable, usual: Hashable) -> str:
    rules: dict[str, Callable[[], str]] = {
        "generation": lambda: "ib_link_speed_mismatch",
        "GPUDirect": lambda: DIFFERS if mine else "gdr_unavailable",
        "state": lambda: "ib_port_down" if str(usual).lower() == "active" else DIFFERS,
        "physical state": lambda: "ib_port_down" if str(usual).lower() == "linkup" else DIFFERS,
        "path": lambda: _class_of_path(str(mine), str(usual)),
    }
    if aspect in rules:
        return rules[aspect]()
    if aspect in _LESS and isinstance(mine, int | float) and isinstance(usual, int | float):
        name = _LESS[aspect][0] if mine < usual else DIFFERS
        return _OF_OTHERS.get(subject.kind, name) if name != DIFFERS else name
    return DIFFERS


def _class_of_path(mine: str, usual: str) -> str:
    return "nvlink_missing" if (links_of(mine) or 0) < (links_of(usual) or 0) else DIFFERS
