"""What a burn-in announces."""

from collections.abc import Iterable
from typing import Final

from ncdiag.model.burn_in import BurnInReport, HostOutcome, Outcome, StageRun, StageState
from ncdiag.report.announce.announcement import STATUS_OF_EXIT, Announcement, Item, Status
from ncdiag.report.burn_in import describe

_OUTCOMES: Final = {
    Outcome.GOOD: Status.PASSED,
    Outcome.REJECTED: Status.FAILED,
    Outcome.UNDECIDED: Status.UNDECIDED,
}


def of_burn_in(report: BurnInReport, *, where: str | None = None) -> Announcement:
    """The verdict, every host with its reasons, and the stages that did not come to their end."""
    return Announcement(
        command="burn-in",
        verdict=report.verdict,
        status=STATUS_OF_EXIT[report.verdict.exit_code],
        headline=describe.verdict(report),
        started=report.started,
        seconds=report.seconds,
        isolate=report.isolate,
        items=(*map(_host, report.hosts), *_stages(report.stages)),
        report=where,
        interrupted=report.interrupted,
    )


def _host(one: HostOutcome) -> Item:
    return Item(
        about="host", name=one.name, status=_OUTCOMES[one.outcome], text="; ".join(one.reasons)
    )


def _stages(runs: Iterable[StageRun]) -> list[Item]:
    """A stage that was run twice in a pass is there once, as it went worse."""
    items: dict[str, Item] = {}
    for item in map(_stage, runs):
        if item.name not in items or item.status is not Status.PASSED:
            items[item.name] = item
    return list(items.values())


def _stage(one: StageRun) -> Item:
    name = one.stage if one.pass_number == 1 else f"{one.stage} of pass {one.pass_number}"
    if one.state is StageState.DONE:
        return Item(about="stage", name=name, status=Status.PASSED)
    text = f"{one.state}: {one.reason}" if one.reason else one.state
    return Item(about="stage", name=name, status=Status.WARNING, text=text)
