"""``ncdiag report``: render a sweep's report again, from its journal."""

from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli import console, options


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The report directory of a sweep.")
    ],
    *,
    no_color: options.NoColor = False,
) -> None:
    """Render the report of a sweep again from its journal; contacts nobody.

    The exit code is that of the sweep: 0 healthy, 1 faulty, 3 inconclusive, 130 interrupted.
    """
    # These bring numpy and pandas with them, which --help has no use for.
    from ncdiag.cli.run_sweep import conclude
    from ncdiag.measure.journal import read_journal
    from ncdiag.measure.record import SweepRecord

    record = SweepRecord.of(read_journal(directory))
    raise typer.Exit(conclude(record, directory, console.results(no_color=no_color)))
