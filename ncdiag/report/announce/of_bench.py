"""What a benchmark announces."""

from ncdiag.model.bench import BenchFinding, BenchReport, BenchSeverity
from ncdiag.model.units import format_count
from ncdiag.report.announce.announcement import STATUS_OF_EXIT, Announcement, Item, Status
from ncdiag.report.bench import describe


def of_bench(report: BenchReport, *, where: str | None = None) -> Announcement:
    """The verdict, each finding, each number of hosts that was measured, and who was not there."""
    return Announcement(
        command="bench",
        verdict=report.verdict,
        status=STATUS_OF_EXIT[report.verdict.exit_code],
        headline=f"{report.collective}: {describe.verdict(report)}",
        started=report.started,
        seconds=report.seconds,
        items=(*map(_finding, report.findings), *_curves(report), *_unreachable(report)),
        report=where,
        interrupted=report.interrupted,
    )


def _finding(one: BenchFinding) -> Item:
    return Item(
        about="check",
        name=describe.kind(one.kind),
        status=Status.FAILED if one.severity is BenchSeverity.FAULT else Status.WARNING,
        text=one.text,
        next=one.next,
        host=one.host,
    )


def _curves(report: BenchReport) -> list[Item]:
    return [
        Item(
            about="collective",
            name=f"{report.collective} over {format_count(curve.ranks, 'rank')} "
            f"on {format_count(len(curve.hosts), 'host')}",
            status=Status.PASSED if curve.points and not curve.error else Status.UNDECIDED,
            text=curve.error or ("" if curve.points else "nothing was measured"),
        )
        for curve in report.curves
    ]


def _unreachable(report: BenchReport) -> list[Item]:
    return [
        Item(about="host", name=host, status=Status.UNDECIDED, text=reason)
        for host, reason in report.unreachable.items()
    ]
