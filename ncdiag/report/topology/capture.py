"""What ``topo capture`` collected, as text and as ``ncdiag/topology-capture/1``."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from ncdiag.health.topology.capture import KINDS
from ncdiag.health.topology.programs import Outcome
from ncdiag.model.errors import ExitCode
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.topology import TopologyFinding, TopologySeverity
from ncdiag.report.json_document import layout
from ncdiag.report.topology.json_report import finding_document, shown
from ncdiag.report.topology.styles import SEVERITIES, short

SCHEMA: Final = "ncdiag/topology-capture/1"
_LABEL: Final = 9
_FINDINGS: Final = 8


@dataclass(frozen=True, slots=True)
class Dump:
    """One dump that was asked for, and where it lies if it came."""

    kind: str
    outcome: Outcome
    reason: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class HostDumps:
    """The dumps of one host; ``error`` says why it could not be asked."""

    name: str
    dumps: tuple[Dump, ...] = ()
    findings: tuple[TopologyFinding, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """All of it, in ``directory``."""

    directory: str
    hosts: tuple[HostDumps, ...]

    @property
    def captured(self) -> bool:
        """Whether there is anything at all."""
        return any(dump.path for host in self.hosts for dump in host.dumps)


def exit_code(result: CaptureResult) -> ExitCode:
    """Wrong with a degraded link; undecided where a host or a tool gave no answer."""
    findings = [finding for host in result.hosts for finding in host.findings]
    if any(one.severity is not TopologySeverity.INFO for one in findings):
        return ExitCode.WRONG
    failed = any(dump.outcome is Outcome.FAILED for host in result.hosts for dump in host.dumps)
    unreachable = any(host.error for host in result.hosts)
    return ExitCode.UNDECIDED if failed or unreachable or not result.captured else ExitCode.DONE


def render_json(result: CaptureResult) -> bytes:
    """What was asked for on each host, what came, and what is wrong with its PCIe links."""
    document = {
        "schema": SCHEMA,
        "directory": result.directory,
        "hosts": [
            {
                "name": host.name,
                "error": host.error,
                "dumps": [
                    {
                        "kind": dump.kind,
                        "outcome": dump.outcome.value,
                        "reason": dump.reason,
                        "path": dump.path,
                    }
                    for dump in host.dumps
                ],
            }
            for host in result.hosts
        ],
        "findings": [
            {"host": host.name, **finding_document(finding)}
            for host in result.hosts
            for finding in host.findings
        ],
    }
    return layout(shown(document))


def render_text(result: CaptureResult, console: Console) -> None:
    """A line for each kind of dump, then hosts without an answer, then degraded links."""
    for kind, (about, _) in KINDS.items():
        _say(console, kind, f"{about}: {'; '.join(_told(result, kind))}")
    errors: dict[str, list[str]] = defaultdict(list)
    for host in result.hosts:
        if host.error:
            errors[host.error].append(host.name)
    for error, names in errors.items():
        _say(console, "failed", f"{visible(fold(names))}: {visible(error)}")
    findings = [(host.name, finding) for host in result.hosts for finding in host.findings]
    for name, finding in findings[:_FINDINGS]:
        line = Text(f"{finding.severity.value.upper():<{_LABEL}} ", SEVERITIES[finding.severity])
        line.append(f"{short(name)}: {visible(finding.explanation)}", "default")
        console.print(line)
    if len(findings) > _FINDINGS:
        console.print(f"and {len(findings) - _FINDINGS:,} more in capture.json")
    _say(console, "written", visible(result.directory), whole=True)


def _told(result: CaptureResult, kind: str) -> Iterator[str]:
    """``gpu[01-15]``, ``failed on gpu16: no answer``; where it is nowhere, only why."""
    alike: dict[tuple[Outcome, str | None], list[str]] = defaultdict(list)
    for host in result.hosts:
        for dump in host.dumps:
            if dump.kind == kind:
                alike[dump.outcome, dump.reason].append(host.name)
    order = (Outcome.CAPTURED, Outcome.FAILED, Outcome.ABSENT)
    for (outcome, reason), names in sorted(alike.items(), key=lambda it: order.index(it[0][0])):
        hosts, why = visible(fold(names)), visible(reason or "no reason given")
        if outcome is Outcome.CAPTURED:
            yield hosts
        elif outcome is Outcome.FAILED:
            yield f"failed on {hosts}: {why}"
        else:
            yield why if len(alike) == 1 else f"not on {hosts}: {why}"
    if not alike:
        yield "nothing"


def _say(console: Console, label: str, text: str, *, whole: bool = False) -> None:
    line = Text(f"{label:<{_LABEL}} ", "bold")
    line.append(text, "default")
    console.print(line, soft_wrap=whole)
