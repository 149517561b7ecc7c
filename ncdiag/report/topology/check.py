"""What ``topo check`` found in one dump or several, as text and as ``ncdiag/topology-check/1``."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from ncdiag.diagnose.topology.classes import BY_NAME
from ncdiag.model.errors import ExitCode
from ncdiag.model.text import visible
from ncdiag.model.topology import TopologyFinding, TopologySeverity
from ncdiag.model.units import format_count
from ncdiag.report.json_document import layout
from ncdiag.report.postmortem.paths import ShortPaths
from ncdiag.report.topology.json_report import finding_document, shown
from ncdiag.report.topology.styles import SEVERITIES, print_indented, short

SCHEMA: Final = "ncdiag/topology-check/1"

_ORDER: Final = tuple(TopologySeverity)
# What a screen of 24 lines takes.
_IN_FULL, _IN_A_LINE, _FINE = 4, 8, 6
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Checked:
    """One input: what it is (``kind`` for programs, ``about`` for people), what is wrong with it.

    ``error`` says why it could not be judged; it has neither kind nor findings then. ``amd`` tells
    that its GPUs are AMD's.
    """

    path: str
    kind: str | None
    about: str
    findings: Sequence[TopologyFinding] = ()
    error: str | None = None
    amd: bool = False


def exit_code(inputs: Sequence[Checked]) -> ExitCode:
    """Wrong with a finding that matters; undecided where an input could not be judged."""
    if any(_matters(one) for checked in inputs for one in checked.findings):
        return ExitCode.WRONG
    return ExitCode.UNDECIDED if any(one.error for one in inputs) else ExitCode.DONE


def render_json(inputs: Sequence[Checked]) -> bytes:
    """The findings of all inputs; ``errors`` names those that could not be judged."""
    kinds = {one.kind for one in inputs if one.kind}
    document = {
        "schema": SCHEMA,
        "kind": kinds.pop() if len(kinds) == 1 else None,
        "inputs": [{"path": one.path, "kind": one.kind} for one in inputs if not one.error],
        "findings": [
            {"path": one.path, **finding_document(finding)}
            for one in inputs
            for finding in one.findings
        ],
        "errors": [{"path": one.path, "error": one.error} for one in inputs if one.error],
    }
    return layout(shown(document))


def render_text(inputs: Sequence[Checked], console: Console, *, verbose: bool) -> None:
    """One screen: the verdict, the findings by severity, the inputs with nothing wrong."""
    found = [(one, finding) for one in inputs for finding in one.findings]
    found.sort(key=lambda item: _ORDER.index(item[1].severity))
    console.print(_verdict(inputs, [finding for _, finding in found]))
    if len(inputs) == 1 and inputs[0].about:
        print_indented(Text(f"{visible(inputs[0].path)}: {inputs[0].about}"), 0, console)
    paths = ShortPaths(one.path for one in inputs) if len(inputs) > 1 else None
    full = len(found) if verbose else _IN_FULL
    told: set[str] = set()
    for checked, finding in found[:full]:
        known = BY_NAME.get(finding.name)
        action = known.advice(amd=checked.amd) if known else None
        _in_full(checked, finding, None if finding.name in told else action, console, paths)
        told.add(finding.name)
    rest = found[full : full + _IN_A_LINE]
    if rest:
        console.print()
    for checked, finding in rest:
        console.print(_head(checked, finding, paths), no_wrap=True, overflow="ellipsis")
    if len(found) > full + len(rest):
        console.print(Text(f"and {len(found) - full - len(rest):,} more: see --verbose"))
    fine = [one for one in inputs if not one.findings and not one.error]
    if paths and fine:
        _nothing_wrong(fine, paths, console, verbose=verbose)


def _matters(finding: TopologyFinding) -> bool:
    return finding.severity is not TopologySeverity.INFO


def _verdict(inputs: Sequence[Checked], findings: Sequence[TopologyFinding]) -> Text:
    counts = Counter(one.severity for one in findings)
    worst = next((one for one in _ORDER if counts[one]), None)
    failed = sum(one.error is not None for one in inputs)
    told = ", ".join(f"{counts[one]} {one.value}" for one in _ORDER if counts[one])
    of = format_count(len(inputs) - failed, "dump")
    if worst in {None, TopologySeverity.INFO}:
        word, style = ("UNDECIDED", "bold yellow") if failed else ("OK", "bold green")
    else:
        word, style = f"{worst}".upper(), SEVERITIES[worst or TopologySeverity.INFO]
    line = Text(f"{word}  ", style)
    line.append(f"{told or 'nothing wrong'} in {of}", "bold")
    if failed:
        line.append(f"; {format_count(failed, 'input')} could not be judged", "bold yellow")
    return line


def _head(checked: Checked, finding: TopologyFinding, paths: ShortPaths | None) -> Text:
    head = Text(" " * _INDENT)
    head.append(f"{finding.severity.value.upper():<8}  ", SEVERITIES[finding.severity])
    head.append(short(finding.name), "bold")
    head.append(f"  {short(finding.where)}")
    if paths:
        head.append(f"  in {short(paths.name(checked.path))}", "dim")
    return head


def _in_full(
    checked: Checked,
    finding: TopologyFinding,
    action: str | None,
    console: Console,
    paths: ShortPaths | None,
) -> None:
    """What was found, and what to do where that has not been said of the class yet."""
    console.print()
    console.print(_head(checked, finding, paths))
    print_indented(Text(visible(finding.explanation)), 2 * _INDENT, console)
    if action:
        print_indented(Text(f"-> {action}", "dim"), 2 * _INDENT, console)


def _nothing_wrong(
    fine: Sequence[Checked], paths: ShortPaths, console: Console, *, verbose: bool
) -> None:
    console.print()
    most = len(fine) if verbose else _FINE
    for one in fine[:most]:
        console.print(
            Text(f"{'':{_INDENT}}ok  {short(paths.name(one.path))}: {one.about}"),
            no_wrap=True,
            overflow="ellipsis",
        )
    if len(fine) > most:
        console.print(Text(f"{'':{_INDENT}}ok  and {len(fine) - most:,} more"))
