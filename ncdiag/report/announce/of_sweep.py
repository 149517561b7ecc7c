"""What a sweep announces."""

from typing import Final

from ncdiag.model.verdict import CulpritKind, HostStatus, HostVerdict, SweepReport
from ncdiag.report import describe
from ncdiag.report.announce.announcement import STATUS_OF_EXIT, Announcement, Item, Status

_HOSTS: Final = {
    HostStatus.HEALTHY: Status.PASSED,
    HostStatus.FAULTY: Status.FAILED,
    HostStatus.DEGRADED: Status.WARNING,
    HostStatus.INCONCLUSIVE: Status.UNDECIDED,
    HostStatus.UNREACHABLE: Status.UNDECIDED,
}


def of_sweep(report: SweepReport, *, where: str | None = None) -> Announcement:
    """The verdict, a finding for each culprit, and every host."""
    diagnosis = report.diagnosis
    return Announcement(
        command="sweep",
        verdict=diagnosis.verdict,
        status=STATUS_OF_EXIT[diagnosis.verdict.exit_code],
        headline=describe.verdict(report),
        started=report.started,
        seconds=report.seconds,
        isolate=diagnosis.isolate,
        items=(*_culprits(report), *map(_host, diagnosis.hosts)),
        report=where,
        interrupted=report.interrupted,
    )


def _culprits(report: SweepReport) -> tuple[Item, ...]:
    return tuple(
        Item(
            about="culprit",
            name=describe.culprit(one, report.plan.endpoint),
            status=Status.FAILED,
            text=f"{'with' if one.damaged else 'at'} {describe.reaches(one)}: {one.reason}",
            next=one.next,
            host=_host_of(one.kind, one.name),
        )
        for one in report.diagnosis.culprits
    )


def _host_of(kind: CulpritKind, name: str) -> str | None:
    if kind is CulpritKind.HOST:
        return name
    return name.rpartition(":")[0] or None if kind is CulpritKind.NIC else None


def _host(one: HostVerdict) -> Item:
    return Item(about="host", name=one.name, status=_HOSTS[one.status], text=one.reason)
