"""What is said of a health report alike in every format."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ncdiag.model.health import (
    HealthFinding,
    HealthReport,
    HostFitness,
    HostHealth,
    Severity,
    SourceState,
)
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count

WORST_FIRST: Final = tuple(reversed(Severity))
# A verdict of faulty stands also where another host could not be judged, as the exit code does.
_VERDICTS: Final = (
    HostFitness.FATAL,
    HostFitness.FAULTY,
    HostFitness.UNKNOWN,
    HostFitness.WARNING,
)
_NO_ANSWER: Final = "it gave no answer"


def verdict(report: HealthReport) -> HostFitness:
    """The one word for all hosts."""
    there = {host.fitness for host in report.hosts}
    return next((one for one in _VERDICTS if one in there), HostFitness.HEALTHY)


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one check that weigh alike; each with its host, in the order of the report."""

    check: str
    severity: Severity
    findings: tuple[tuple[str, HealthFinding], ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that have one."""
        return tuple(dict.fromkeys(host for host, _ in self.findings))


def groups(report: HealthReport, severities: Iterable[Severity] = Severity) -> list[Group]:
    """Like findings together: the worst first, and of those the ones of most hosts."""
    wanted = set(severities)
    alike: dict[tuple[Severity, str], list[tuple[str, HealthFinding]]] = defaultdict(list)
    for host in report.hosts:
        for one in host.findings:
            if one.severity in wanted:
                alike[one.severity, one.check].append((host.host, one))
    found = [Group(check, severity, tuple(ones)) for (severity, check), ones in alike.items()]
    found.sort(key=lambda group: (WORST_FIRST.index(group.severity), -len(group.hosts)))
    return found


def told(group: Group, *, alone: bool) -> str:
    """Who has it and what it is; ``alone``: the report is of one host, which needs no name."""
    host, first = group.findings[0]
    devices = list(dict.fromkeys(one.device for _, one in group.findings if one.device))
    where = [] if alone else [fold(group.hosts)]
    if devices:
        where.append(fold(devices))
    text = first.text
    places = {(name, one.device) for name, one in group.findings}
    if len(places) > 1 and len({one.text for _, one in group.findings}) > 1:
        name = " ".join(filter(None, (None if alone else host, first.device)))
        text = f"such as {name}: {text}" if name else f"such as: {text}"
    elif len(devices) == 1 and text.startswith(devices[0]):
        where.pop()
    return visible(": ".join(filter(None, (" ".join(where), text))))


def unknown_hosts(report: HealthReport) -> list[tuple[str, str]]:
    """Hosts that could not be judged, folded, with the reason."""
    return folded_by(
        (host.host, host.error or _NO_ANSWER)
        for host in report.hosts
        if host.fitness is HostFitness.UNKNOWN
    )


def unread_sources(report: HealthReport) -> list[tuple[str, str]]:
    """What is there and did not answer: hosts, folded, and what it was with the reason."""
    return folded_by(
        (host.host, f"{one.source.value} {_state(one.state)}{_reason(one.reason)}")
        for host in report.hosts
        if host.facts
        for one in host.facts.sources
        if one.state not in (SourceState.READ, SourceState.ABSENT)
    )


def not_known(report: HealthReport) -> list[tuple[str, tuple[str, ...], str]]:
    """Hosts, what was not checked there, and why: most checks first."""
    by_host: dict[tuple[str, str], list[str]] = defaultdict(list)
    for host in report.hosts:
        for one in host.not_known:
            by_host[host.host, one.reason].append(one.check)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (host_name, reason), checks in by_host.items():
        alike[reason, tuple(checks)].append(host_name)
    found = [
        (visible(fold(hosts)), checks, visible(reason)) for (reason, checks), hosts in alike.items()
    ]
    return sorted(found, key=lambda one: -len(one[1]))


def counts(report: HealthReport) -> Mapping[HostFitness, int]:
    """How many hosts there are of each."""
    states = [host.fitness for host in report.hosts]
    return {one: states.count(one) for one in HostFitness}


def number_of(host: HostHealth) -> Mapping[Severity, int]:
    """How many findings weigh so much; what one check says of one device is one, however often."""
    kinds = [
        severity
        for severity, _, _ in {
            (one.severity, one.check, one.device or one.text) for one in host.findings
        }
    ]
    return {one: kinds.count(one) for one in WORST_FIRST}


def findings_of(host: HostHealth) -> str:
    """``1 fatal, 2 warnings``, empty where there are none."""
    parts = [_count(number, severity) for severity, number in number_of(host).items() if number]
    return ", ".join(parts)


def conclusion(report: HealthReport) -> str:
    """What stands behind the verdict, in a sentence."""
    if len(report.hosts) == 1:
        return _of_one(report.hosts[0])
    by_fitness = counts(report)
    total = format_count(len(report.hosts), "host")
    if not report.hosts or by_fitness[HostFitness.HEALTHY] == len(report.hosts):
        return f"all {total} healthy" if report.hosts else "no hosts"
    words = {
        HostFitness.FATAL: "to be drained",
        HostFitness.FAULTY: "faulty",
        HostFitness.UNKNOWN: "unknown",
        HostFitness.WARNING: "with warnings",
        HostFitness.HEALTHY: "healthy",
    }
    parts = [f"{by_fitness[one]} {word}" for one, word in words.items() if by_fitness[one]]
    return f"of {total} {', '.join(parts)}"


def named(report: HealthReport, fitness: HostFitness) -> str:
    """The hosts of that fitness, folded."""
    return visible(fold(host.host for host in report.hosts if host.fitness is fitness))


def folded_by(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """``(host, text)`` turned into folded hosts for each text, those of most hosts first."""
    alike: dict[str, list[str]] = defaultdict(list)
    for host, text in pairs:
        alike[text].append(host)
    ordered = sorted(alike.items(), key=lambda item: -len(item[1]))
    return [(visible(fold(hosts)), visible(text)) for text, hosts in ordered]


def _of_one(host: HostHealth) -> str:
    name = visible(host.host)
    if host.facts is None:
        return f"{name}: {visible(host.error or _NO_ANSWER)}"
    checked = format_count(len(host.passed) + len({one.check for one in host.findings}), "check")
    unknown = f", {len(host.not_known)} not checked" if host.not_known else ""
    return f"{name}: {findings_of(host) or 'nothing found'}; {checked} made{unknown}"


def _count(number: int, severity: Severity) -> str:
    return f"{number} fatal" if severity is Severity.FATAL else format_count(number, severity)


def _state(state: SourceState) -> str:
    return "was denied" if state is SourceState.DENIED else state.value


def _reason(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
