"""What a search for stragglers announces."""

from ncdiag.model.straggler import SlowRank, StragglerReport, TimeKind
from ncdiag.report.announce.announcement import STATUS_OF_EXIT, Announcement, Item, Status
from ncdiag.report.stragglers.text import slower, verdict


def of_stragglers(report: StragglerReport, *, where: str | None = None) -> Announcement:
    """The verdict, and each slow rank."""
    return Announcement(
        command="stragglers",
        verdict=report.verdict,
        status=STATUS_OF_EXIT[report.verdict.exit_code],
        headline=verdict(report),
        items=tuple(_rank(one, report.kind) for one in report.slow),
        report=where,
    )


def _rank(one: SlowRank, kind: TimeKind) -> Item:
    place = one.place or one.host
    return Item(
        about="rank",
        name=f"rank {one.rank} on {place}" if place else f"rank {one.rank}",
        status=Status.FAILED,
        text=f"{slower(one, kind)}, in {one.windows} of {one.windows_total} windows",
        host=one.host,
    )
