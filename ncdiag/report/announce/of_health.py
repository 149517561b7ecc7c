"""What a check of health announces."""

from collections.abc import Iterator
from typing import Final

from ncdiag.model.health import HealthFinding, HealthReport, HostFitness, HostHealth, Severity
from ncdiag.report.announce.announcement import STATUS_OF_EXIT, Announcement, Item, Status
from ncdiag.report.health import describe

_HOSTS: Final = {
    HostFitness.HEALTHY: Status.PASSED,
    HostFitness.WARNING: Status.WARNING,
    HostFitness.FAULTY: Status.FAILED,
    HostFitness.FATAL: Status.FAILED,
    HostFitness.UNKNOWN: Status.UNDECIDED,
}
_FINDINGS: Final = {
    Severity.WARNING: Status.WARNING,
    Severity.FAULT: Status.FAILED,
    Severity.FATAL: Status.FAILED,
}


def of_health(report: HealthReport, *, where: str | None = None) -> Announcement:
    """The verdict, every host, and what tripped on it but for notes."""
    verdict = describe.verdict(report)
    warns = verdict is HostFitness.WARNING  # which changes no exit code, and is told all the same
    return Announcement(
        command="health",
        verdict=verdict,
        status=Status.WARNING if warns else STATUS_OF_EXIT[report.exit_code],
        headline=describe.conclusion(report),
        started=report.started,
        seconds=report.seconds,
        isolate=tuple(one.host for one in report.hosts if one.fitness is HostFitness.FATAL),
        items=tuple(item for host in report.hosts for item in _items(host)),
        report=where,
    )


def _items(host: HostHealth) -> Iterator[Item]:
    tripped = [one for one in host.findings if one.severity in _FINDINGS]
    text = host.error or (tripped[0].text if tripped else "")
    yield Item(about="host", name=host.host, status=_HOSTS[host.fitness], text=text)
    for one in tripped:
        yield _finding(host.host, one)


def _finding(host: str, one: HealthFinding) -> Item:
    return Item(
        about="check",
        name=f"{one.check} {one.device}" if one.device else one.check,
        status=_FINDINGS[one.severity],
        text=one.text,
        next=one.next,
        host=host,
    )
