"""Writing findings down; what comes from a dump is made safe to print."""

from collections.abc import Callable, Mapping

from ncdiag.diagnose.topology.peers import Item, Value, listed
from ncdiag.model.text import visible
from ncdiag.model.topology import TopologyFinding, TopologySeverity


def degraded(name: str, where: str, explanation: str) -> TopologyFinding:
    """Return a finding that makes the check fail."""
    return found(name, TopologySeverity.DEGRADED, where, explanation)


def fatal(name: str, where: str, explanation: str) -> TopologyFinding:
    """Return a finding of something that cannot work."""
    return found(name, TopologySeverity.FATAL, where, explanation)


def info(name: str, where: str, explanation: str) -> TopologyFinding:
    """Return a finding that is worth knowing and no fault by itself."""
    return found(name, TopologySeverity.INFO, where, explanation)


def found(name: str, severity: TopologySeverity, where: str, explanation: str) -> TopologyFinding:
    """Return a finding of any severity."""
    return TopologyFinding(name, severity, visible(where), visible(explanation))


def sides(
    groups: Mapping[Value, tuple[Item, ...]],
    write: Callable[[Value], str],
    label: Callable[[Item], str],
) -> str:
    """Write who has which value, where no majority says what is right."""
    ordered = sorted(groups, key=lambda value: (-len(groups[value]), str(value)))
    return "; ".join(
        f"{write(value)}: {listed([label(item) for item in groups[value]])}" for value in ordered
    )
