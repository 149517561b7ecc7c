"""``ncdiag isolate audit``: who changed what, and when."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import StoreFile, TableFormat, TableFormatOption


def audit(
    *,
    last: Annotated[
        int,
        typer.Option(
            "--last", metavar="N", min=1, rich_help_panel="Output", help="The newest N entries."
        ),
    ] = 30,
    store: StoreFile = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    no_color: options.NoColor = False,
) -> None:
    """List who changed the isolation list or a place, and what came of it."""
    from ncdiag.cli.isolate.asking import open_ledger

    with open_ledger(store) as ledger:
        entries = ledger.audit(last=last)
    match output_format:
        case TableFormat.JSON:
            from ncdiag.report.isolation import json_report

            console.write(json_report.render_audit(entries))
        case TableFormat.CSV:
            from ncdiag.report.isolation import csv_report

            console.write(csv_report.render_audit(entries))
        case TableFormat.TEXT if entries:
            from ncdiag.report.isolation import text

            text.render_audit(entries, console.results(no_color=no_color))
        case TableFormat.TEXT:
            console.messages(no_color=no_color).print("nothing was changed yet", soft_wrap=True)
