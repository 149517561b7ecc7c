"""Evidence of health checks: what breaks whatever runs on a host, and checks that were passed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from ncdiag.health.checks.check import Check
from ncdiag.isolate import words
from ncdiag.isolate.evidence.times import ended_s
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import HealthFinding, HealthReport, HostHealth, Severity
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.units import format_count

_NOT_CONCLUSIVE: Final = "a fault to be put right, and not conclusive: nobody is isolated for it"
# A fault makes a host faulty until it is put right, and drains nobody: it is kept for the lemon
# score, below what the shipped policy acts upon.
_CONFIDENCE: Final[Mapping[Severity, float]] = {Severity.FATAL: 1.0, Severity.FAULT: 0.7}
# What is broken inside of the host itself. A file server, a room or a switch fails for many.
_OWN_HARDWARE: Final = frozenset(
    (
        FindingClass.GPU_FELL_OFF_BUS,
        FindingClass.GPU_INTERNAL_FAULT,
        FindingClass.GPU_MEMORY_ERROR,
        FindingClass.GSP_TIMEOUT,
        FindingClass.HOST_MEMORY_ERROR,
        FindingClass.NIC_FIRMWARE_FAULT,
        FindingClass.NVLINK_ERROR,
        FindingClass.NVSWITCH_FATAL,
        FindingClass.PCIE_ERROR,
    )
)


def of_health(
    report: HealthReport,
    run: str,
    checks: Mapping[str, Check],
    *,
    source: str = "health",
    where: str | None = None,
) -> tuple[EvidencePiece, ...]:
    """What ``report`` says of hosts; ``checks`` is the table of all checks.

    What is wrong with settings accuses no hardware. Faults are conclusive where it is hardware of
    the host that is broken. A check that could not be made neither accuses nor clears.
    """
    ended = ended_s(report.started, report.seconds)
    blank = EvidencePiece(
        host="", kind=EvidenceKind.HEALTH, class_="", source=source, run=run, seen_s=0, text=""
    )
    return tuple(
        piece
        for host in report.hosts
        for piece in _of_host(
            host,
            checks,
            replace(
                blank,
                host=host.host,
                seen_s=_when(host, ended),
                report=where,
                uptime_s=host.facts.uptime_s if host.facts else None,
            ),
        )
    )


def _of_host(
    host: HostHealth, checks: Mapping[str, Check], blank: EvidencePiece
) -> Iterator[EvidencePiece]:
    for finding in host.findings:
        if finding.severity in _CONFIDENCE and not finding.configuration:
            yield _accusing(blank, finding)
    if covered := _covered(host, checks):
        yield replace(
            blank,
            class_=words.clean(EvidenceKind.HEALTH),
            text=f"{format_count(len(host.passed), 'check')} passed",
            clears=True,
            covers=covered,
        )


def _accusing(blank: EvidencePiece, finding: HealthFinding) -> EvidencePiece:
    conclusive = finding.severity is Severity.FATAL or finding.class_ in _OWN_HARDWARE
    return replace(
        blank,
        class_=finding.class_ or finding.check,
        text=finding.text if conclusive else f"{finding.text} ({_NOT_CONCLUSIVE})",
        confidence=_CONFIDENCE[finding.severity],
        conclusive=conclusive,
        component=finding.device,
    )


def _when(host: HostHealth, ended: float) -> float:
    """When the host answered by the clock of whoever asked; its own clock may be wrong."""
    if host.facts is None:
        return ended
    return host.facts.answered_s or ended or host.facts.taken_s


def _covered(host: HostHealth, checks: Mapping[str, Check]) -> tuple[str, ...]:
    """The checks that were passed, and the classes all of whose checks were."""
    if host.error is not None or not host.passed:
        return ()
    passed = frozenset(host.passed)
    classes: dict[str, bool] = {}
    for name, check in checks.items():
        if check.class_ is not None:
            known = classes.get(check.class_.value, True)
            classes[check.class_.value] = known and name in passed
    accused = {finding.class_ or finding.check for finding in host.findings}
    whole = {class_ for class_, all_passed in classes.items() if all_passed}
    return tuple(sorted((passed | whole) - accused))
