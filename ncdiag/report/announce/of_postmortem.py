"""What a post-mortem announces."""

from typing import Final

from ncdiag.model.finding import Finding, Postmortem, Role
from ncdiag.report.announce.announcement import STATUS_OF_EXIT, Announcement, Item, Status
from ncdiag.report.postmortem import describe
from ncdiag.report.postmortem.presentable import presentable

_ROLES: Final = {
    Role.ROOT: Status.FAILED,
    Role.CONSEQUENCE: Status.WARNING,
    Role.WARNING: Status.WARNING,
}


def of_postmortem(postmortem: Postmortem, *, where: str | None = None) -> Announcement:
    """The verdict, each finding, and each host to leave out."""
    shown = presentable(postmortem)
    return Announcement(
        command="parse-log",
        verdict=shown.verdict,
        status=STATUS_OF_EXIT[shown.verdict.exit_code],
        headline=describe.headline(shown),
        isolate=tuple(one.host for one in shown.isolate),
        items=(
            *map(_finding, shown.findings),
            *(
                Item(about="host", name=one.host, status=Status.FAILED, text=one.because)
                for one in shown.isolate
            ),
        ),
        report=where,
    )


def _finding(one: Finding) -> Item:
    hosts = [suspect.name for suspect in one.suspects if suspect.kind == "host"]
    return Item(
        about="cause" if one.role is Role.ROOT else one.role,
        name=one.class_,
        status=_ROLES[one.role],
        text=one.explanation or (one.evidence[0].text if one.evidence else ""),
        next=one.actions[0] if one.actions else "",
        host=hosts[0] if len(hosts) == 1 else None,
    )
