"""What a sweep ends with on the terminal: the culprits, what to do, and one line of verdict."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.verdict import Culprit, HostStatus, SweepReport, Verdict
from ncdiag.report import describe
from ncdiag.report.labelled import say, say_whole
from ncdiag.report.presentable import presentable

_STYLES = {
    Verdict.HEALTHY: "bold green",
    Verdict.FAULTY: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}
_UNSETTLED = {HostStatus.UNREACHABLE: "unreachable", HostStatus.INCONCLUSIVE: "undecided"}
_CULPRITS = 20


def render_terminal(report: SweepReport, console: Console, directory: Path) -> None:
    """Print the sweep's result; everything else is in the report under ``directory``.

    What is there to be copied, node lists and paths, is never wrapped.
    """
    report = presentable(report)
    diagnosis = report.diagnosis
    if diagnosis.culprits:
        console.print(_culprits(diagnosis.culprits, report.plan.endpoint))
    for status, what in _UNSETTLED.items():
        for nodes, reason in describe.hosts_by_reason(report, status):
            say(console, what, f"{nodes}: {reason}")
    for one in diagnosis.contention:
        say(console, "contention", describe.contention(one))
    for note in (describe.untested(report), *diagnosis.notes):
        if note:
            say(console, "note", note)
    say(console, "measured", describe.measured(report))
    say(console, "yardstick", describe.yardstick(report))
    say_whole(console, "report", visible(str(directory / "report.html")))
    if diagnosis.isolate:
        say_whole(console, "isolate", fold(diagnosis.isolate))
    line = Text(f"{diagnosis.verdict.upper()}: ", style=_STYLES[diagnosis.verdict])
    line.append(describe.verdict(report), style="default")
    console.print(line, soft_wrap=True)


def _culprits(culprits: tuple[Culprit, ...], endpoint: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("culprit", max_width=26, overflow="fold")
    table.add_column("reaches", justify="right", no_wrap=True)
    table.add_column("sure", justify="right", no_wrap=True)
    table.add_column("why, and what next", overflow="fold", ratio=1)
    for one in culprits[:_CULPRITS]:
        why = Text(one.reason)
        if one.next:
            why.append(f"\n-> {one.next}", style="dim")
        table.add_row(
            Text(describe.culprit(one, endpoint), style="bold"),
            describe.reaches(one),
            describe.percent(one.confidence),
            why,
        )
    if len(culprits) > _CULPRITS:
        table.caption = f"+{len(culprits) - _CULPRITS} more in the report"
    return table
