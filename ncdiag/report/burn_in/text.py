"""What a burn-in ends with on the terminal: the verdict, the hosts, and what to do next."""

from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.model.burn_in import BurnInReport, GateVerdict, Outcome, StageRun, StageState
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_duration, format_share
from ncdiag.report.burn_in import describe
from ncdiag.report.burn_in.presentable import presentable
from ncdiag.report.labelled import say, say_whole

STYLES: Final = {
    GateVerdict.MET: "bold green",
    GateVerdict.SHORT: "bold red",
    GateVerdict.UNDECIDED: "bold yellow",
}
_MOST_GROUPS: Final = 20
_MOST_RUNS: Final = 18
_STATE_WIDTH: Final = 44


def render_text(report: BurnInReport, console: Console, directory: Path | None) -> None:
    """Print the result; everything else is in the report under ``directory``.

    What is there to be copied, node lists and paths, is never wrapped.
    """
    report = presentable(report)
    line = Text(f"{report.verdict.upper()}: ", style=STYLES[report.verdict])
    line.append(describe.verdict(report), style="default")
    console.print(line, soft_wrap=True)
    for what, names in (("chosen", report.chosen), ("spares", report.spares)):
        if names:
            say_whole(console, what, fold(names))
    if report.leaves:
        say(console, "leaves", describe.leaves(report))
    for what, outcome in (("out", Outcome.REJECTED), ("undecided", Outcome.UNDECIDED)):
        _hosts(report, console, what, outcome)
    if report.isolate:
        say_whole(console, "isolate", fold(report.isolate))
    console.print(_stages(report))
    for note in report.notes:
        say(console, "note", note)
    say(console, "sure", describe.sure(report))
    say(console, "ran", describe.ran(report))
    if directory is not None:
        say_whole(console, "report", visible(str(directory / "report.html")))
    for step in describe.next_steps(report):
        say(console, "next", step)


def _hosts(report: BurnInReport, console: Console, what: str, outcome: Outcome) -> None:
    groups = describe.by_reasons(describe.hosts_of(report, outcome))
    for nodes, reasons, sure in groups[:_MOST_GROUPS]:
        how_sure = f" ({format_share(sure)} sure)" if outcome is Outcome.REJECTED else ""
        say(console, what, f"{nodes}: {'; '.join(reasons)}{how_sure}")
    if len(groups) > _MOST_GROUPS:
        say(console, what, f"for {len(groups) - _MOST_GROUPS} more reasons, in the report")


def _stages(report: BurnInReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    for column in ("hosts", "time", "found"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", max_width=_STATE_WIDTH, overflow="fold")
    shown = shown_runs(report.stages)
    several = report.passes > 1
    for run in shown:
        found = len({one.host for one in run.findings if one.outcome is not Outcome.GOOD})
        table.add_row(
            f"{run.pass_number}. {run.stage}" if several else run.stage.value,
            f"{run.hosts:,}",
            format_duration(run.seconds),
            f"{found:,}" if found else "-",
            Text(describe.state(run), style="" if run.state is StageState.DONE else "yellow"),
        )
    if len(shown) < len(report.stages):
        table.caption = f"+{len(report.stages) - len(shown)} more in the report"
    return table


def shown_runs(stages: tuple[StageRun, ...]) -> list[StageRun]:
    """The stages in their order; of many passes those that found something, and the last."""
    if len(stages) <= _MOST_RUNS:
        return list(stages)
    odd = [place for place, run in enumerate(stages) if run.findings or run.state != "done"]
    last = range(len(stages) - 1, -1, -1)
    kept = dict.fromkeys([*odd[: _MOST_RUNS // 2], *last])
    return [stages[place] for place in sorted(list(kept)[:_MOST_RUNS])]
