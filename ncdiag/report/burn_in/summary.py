"""``summary.txt``: at most ten lines to paste into a ticket."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from ncdiag.model.burn_in import BurnInReport, Outcome, StageState
from ncdiag.model.nodes import fold
from ncdiag.report.burn_in import describe

_LINES: Final = 10
_OUT: Final = 2
_LINE: Final = 300


def render(report: BurnInReport) -> str:
    """The burn-in in ten lines or fewer."""
    return "".join(f"{_cut(line)}\n" for line in islice(_lines(report), _LINES))


def _lines(report: BurnInReport) -> Iterator[str]:
    yield f"ncdiag burn-in: {report.verdict.upper()} - {describe.verdict(report)}"
    yield f"ran:         {describe.ran(report)}"
    yield f"stages:      {_stages(report)}"
    if report.chosen:
        yield f"chosen:      {fold(report.chosen)}"
    if report.spares:
        yield f"spares:      {fold(report.spares)}"
    yield from (f"next:        {step}" for step in describe.next_steps(report)[:1])
    yield from _hosts(report, Outcome.REJECTED, "out:", _OUT)
    if report.isolate:
        yield f"isolate:     {fold(report.isolate)}"
    yield from _hosts(report, Outcome.UNDECIDED, "undecided:", 1)
    yield from (f"note:        {note}" for note in report.notes)


def _stages(report: BurnInReport) -> str:
    """Each stage of the last pass, with what kept it from its end."""
    last = {run.stage: run for run in report.stages}
    told = [
        run.stage.value if run.state is StageState.DONE else f"{run.stage} ({describe.ended(run)})"
        for run in last.values()
    ]
    return ", ".join(told) or "none"


def _hosts(report: BurnInReport, outcome: Outcome, what: str, most: int) -> Iterator[str]:
    groups = describe.by_reasons(describe.hosts_of(report, outcome))
    for number, (nodes, reasons, _) in enumerate(groups[:most], start=1):
        more = len(groups) - most if number == most else 0
        yield f"{what:12} {nodes}: {'; '.join(reasons)}" + (f" (+{more} more)" if more > 0 else "")


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."
