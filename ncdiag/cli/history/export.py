"""``ncdiag history export``: what was recorded as one table, for those who outgrow the store."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.history.asking import Since, StoreFile, open_to_read
from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible
from ncdiag.model.units import format_count

_OUTPUT = "Output"


class Table(StrEnum):
    """What a row of the file is."""

    LINKS = "links"
    HOSTS = "hosts"
    BENCH = "bench"


def export(
    *,
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="FILE", rich_help_panel=_OUTPUT, help="FILE.csv or FILE.parquet."
        ),
    ],
    table: Annotated[
        Table,
        typer.Option(
            "--table",
            rich_help_panel=_OUTPUT,
            help="A row is a link or a host in a run, or a size of a benchmark.",
        ),
    ] = Table.LINKS,
    store: StoreFile = None,
    since: Since = None,
    force: Annotated[
        bool,
        typer.Option("--force", rich_help_panel=_OUTPUT, help="Write over a file that exists."),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write what was recorded into one table, as CSV or Parquet."""
    if to.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--to {visible(str(to))}: its name must end in .csv or .parquet")
    if to.exists() and not force:
        raise UsageError(f"{visible(str(to))} exists; give --force to write over it")
    from ncdiag.report.history import export as exporting

    with open_to_read(store) as opened:
        rows = exporting.export(opened, table.value, to, since=since)
    console.messages(quiet=quiet).print(
        f"{format_count(rows, 'row')} in {visible(str(to))}", soft_wrap=True
    )
