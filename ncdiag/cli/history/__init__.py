"""``ncdiag history``: what was recorded, and what a host, a link or a collective did over time."""

from enum import StrEnum
from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.commands import MARKUP, Lazy, lazy_group
from ncdiag.cli.history.asking import Last, Since, StoreFile, TableFormat, TableFormatOption
from ncdiag.model.errors import UsageError

app = typer.Typer(
    name="history",
    cls=lazy_group(
        {
            "host": Lazy("ncdiag.cli.history.show", "host"),
            "link": Lazy("ncdiag.cli.history.show", "link"),
            "bench": Lazy("ncdiag.cli.history.show", "bench"),
            "export": Lazy("ncdiag.cli.history.export", "export"),
        }
    ),
    add_completion=False,
    rich_markup_mode=MARKUP,
    no_args_is_help=False,
)


class KindOfRun(StrEnum):
    """What was recorded."""

    SWEEP = "sweep"
    BENCH = "bench"
    IMPORT = "import"


Kind = Annotated[
    KindOfRun | None,
    typer.Option("--kind", rich_help_panel="Which runs", help="Only runs of this kind."),
]


@app.callback(invoke_without_command=True)
def history(
    context: typer.Context,
    *,
    store: StoreFile = None,
    last: Last = 30,
    since: Since = None,
    kind: Kind = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    no_color: options.NoColor = False,
) -> None:
    """Results over time: what ncdiag sweep, bench and import kept with --record.

    Without a command, lists the recorded runs.
    """
    if context.invoked_subcommand is not None:
        _refuse_options_before(context)
        return
    from ncdiag.cli.history.asking import open_to_read

    with open_to_read(store) as opened:
        runs = opened.runs(kind=None if kind is None else kind.value, since=since, last=last)
    match output_format:
        case TableFormat.JSON:
            from ncdiag.report.history import json_report

            console.write(json_report.render_runs(runs))
        case TableFormat.CSV:
            from ncdiag.report.history import csv_report

            console.write(csv_report.render_runs(runs).encode())
        case TableFormat.TEXT if runs:
            from ncdiag.report.history import text

            text.render_runs(runs, console.results(no_color=no_color))
        case TableFormat.TEXT:
            console.messages(no_color=no_color).print("no recorded run is what was asked for")


def _refuse_options_before(context: typer.Context) -> None:
    """An option before the command would be lost without a word."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "--format" if name == "output_format" else f"--{name.replace('_', '-')}"
            command = context.invoked_subcommand
            raise UsageError(f"{option} goes behind the command: ncdiag history {command} {option}")
