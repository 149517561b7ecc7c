"""Which hosts of a fleet differ, as text and as ``ncdiag/topology-diff/1``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from ncdiag.diagnose.topology.classes import BY_NAME
from ncdiag.diagnose.topology.fleet import FleetDiff
from ncdiag.model.errors import ExitCode
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.topology import TopologyFinding, TopologySeverity
from ncdiag.model.units import format_count
from ncdiag.report.json_document import layout
from ncdiag.report.topology.json_report import finding_document, shown
from ncdiag.report.topology.styles import print_indented

SCHEMA: Final = "ncdiag/topology-diff/1"
_GROUPS, _DIFFERENCES, _ACTIONS = 12, 6, 4
_NAMES_CHARS: Final = 600


@dataclass(frozen=True, slots=True)
class HostFindings:
    """What is wrong with one host by itself."""

    host: str
    findings: tuple[TopologyFinding, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A fleet compared by each kind of dump there is of it; ``failed`` dumps are left out."""

    diffs: tuple[tuple[str, FleetDiff], ...]
    links: tuple[HostFindings, ...] = ()
    failed: int = 0

    @property
    def findings(self) -> tuple[TopologyFinding, ...]:
        """All that differs, and every link that is slow by itself; ``where`` is the host."""
        found = [finding for _, diff in self.diffs for finding in diff.findings]
        for one in self.links:
            found += [
                TopologyFinding(finding.name, finding.severity, one.host, finding.explanation)
                for finding in one.findings
            ]
        return tuple(found)

    @property
    def undecided(self) -> bool:
        """Whether hosts differ and nobody can tell which of them are wrong."""
        return any(diff.undecided for _, diff in self.diffs)

    @property
    def hosts(self) -> set[str]:
        """All hosts of which there is a dump."""
        compared = {host for _, diff in self.diffs for group in diff.groups for host in group.hosts}
        return compared | {one.host for one in self.links}


def exit_code(result: Comparison) -> ExitCode:
    """Wrong where a host differs in what matters.

    Undecided where no majority says which hosts are wrong, or a dump could not be read.
    """
    if any(one.severity is not TopologySeverity.INFO for one in result.findings):
        return ExitCode.WRONG
    return ExitCode.UNDECIDED if result.failed or result.undecided else ExitCode.DONE


def render_json(result: Comparison) -> bytes:
    """Groups of hosts that are alike, and what each other host differs in."""
    groups: list[dict[str, Any]] = [
        {
            "kind": kind,
            "hosts": fold(group.hosts),
            "count": len(group.hosts),
            "differs": list(group.differs),
        }
        for kind, diff in result.diffs
        for group in diff.groups
    ]
    document = {
        "schema": SCHEMA,
        "hosts": len(result.hosts),
        "groups": groups,
        "findings": [finding_document(one) for one in result.findings],
        "failed": result.failed,
        "undecided": result.undecided,
    }
    return layout(shown(document))


def render_text(result: Comparison, console: Console, *, verbose: bool) -> None:
    """The verdict, then for each kind of dump its groups of hosts, then what to do."""
    console.print(_verdict(result))
    for kind, diff in result.diffs:
        console.print()
        hosts = sum(len(group.hosts) for group in diff.groups)
        console.print(Text(f"{visible(kind)}: {format_count(hosts, 'host')}", "bold"))
        groups = diff.groups if verbose else diff.groups[:_GROUPS]
        for group in groups:
            _group(group.hosts, group.differs, console, verbose=verbose)
        if len(diff.groups) > len(groups):
            more = format_count(len(diff.groups) - len(groups), "more group")
            console.print(f"    and {more}: see --verbose")
    slow = [one for one in result.links if one.findings]
    if result.links:
        console.print()
        alright = len(result.links) - len(slow)
        console.print(Text(f"PCIe links: {format_count(len(result.links), 'host')}", "bold"))
        console.print(Text(f"{alright:>5}  run as they can"))
        for one in slow:
            _group(
                [one.host], [each.explanation for each in one.findings], console, verbose=verbose
            )
    amd = any(diff.amd for _, diff in result.diffs)
    _actions(result.findings, console, amd=amd)


def _verdict(result: Comparison) -> Text:
    hosts = format_count(len(result.hosts), "host")
    bad = {one.where for one in result.findings if one.severity is not TopologySeverity.INFO}
    if bad:
        line = Text("DIFFERENT  ", "bold red")
        line.append(f"{len(bad):,} of {hosts}: {_names(sorted(bad))}", "bold")
    elif result.undecided:
        line = Text("UNDECIDED  ", "bold yellow")
        line.append(f"{hosts}{_unsettled(result)}", "bold")
    elif result.failed:
        line = Text("UNDECIDED  ", "bold yellow")
        line.append(f"{hosts} alike", "bold")
    else:
        line = Text("OK  ", "bold green")
        line.append(f"{hosts}{_models(result)}", "bold")
    if result.failed:
        line.append(f"; {format_count(result.failed, 'dump')} cannot be read", "bold yellow")
    return line


def _unsettled(result: Comparison) -> str:
    """Why nobody can tell which hosts are wrong."""
    models = _most_models(result)
    if len(models) > 1:
        return f": {_counted(models)}; they differ, and too few agree to say which are wrong"
    return ": they differ, and no majority says which are wrong"


def _models(result: Comparison) -> str:
    """``, none differs``, or of how many models of server the hosts are."""
    models = _most_models(result)
    return f": {_counted(models)}; nobody stands out" if len(models) > 1 else ", none differs"


def _most_models(result: Comparison) -> tuple[int, ...]:
    return max((diff.models for _, diff in result.diffs), key=len, default=())


def _counted(models: Sequence[int]) -> str:
    each = (
        f"{models[0]} hosts each"
        if len(set(models)) == 1
        else "by hosts " + " and ".join(f"{count:,}" for count in models[:_GROUPS])
    )
    return f"{len(models)} server models, {each}"


def _names(hosts: Sequence[str]) -> str:
    folded = visible(fold(hosts))
    return folded if len(folded) <= _NAMES_CHARS else f"{folded[:_NAMES_CHARS]}…"


def _group(
    hosts: Sequence[str], differs: Sequence[str], console: Console, *, verbose: bool
) -> None:
    style = "red" if differs else "green"
    line = Text(f"{len(hosts):>5}  ", style)
    line.append(_names(hosts), "default")
    console.print(line, soft_wrap=True)
    for difference in differs if verbose else differs[:_DIFFERENCES]:
        print_indented(Text(visible(difference)), 9, console)
    more = len(differs) - _DIFFERENCES
    if more > 0 and not verbose:
        console.print(Text(f"{'':9}and {more} more: see --verbose"))


def _actions(findings: Sequence[TopologyFinding], console: Console, *, amd: bool) -> None:
    names = dict.fromkeys(one.name for one in findings if one.severity is not TopologySeverity.INFO)
    told = [(name, BY_NAME[name].advice(amd=amd)) for name in names if name in BY_NAME][:_ACTIONS]
    if told:
        console.print()
    for name, action in told:
        line = Text(name, "bold")
        line.append(f": {action}", "default")
        print_indented(line, 0, console)
