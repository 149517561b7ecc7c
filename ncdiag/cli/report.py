"""``ncdiag report``: render a report again, or compare two sweeps."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.burn_in_again import is_burn_in, render_again
from ncdiag.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ncdiag.measure.journal import Line
    from ncdiag.model.verdict import SweepReport

_OF_BENCH = "bench.json"


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The report directory of a sweep or a burn-in.")
    ],
    later: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR2",
            show_default=False,
            help="That of a later sweep: say what changed, and write nothing.",
        ),
    ] = None,
    *,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> None:
    """Render the report of a sweep or burn-in again, or compare two sweeps; contacts nobody.

    The exit code is that of the run: 0 healthy, 1 faulty, 3 inconclusive, 130 interrupted. Of
    two sweeps it is 1 where something got worse, 3 where that could not be decided, else 0.
    """
    if later is not None:
        raise typer.Exit(_compare(directory, later, output_format, no_color=no_color))
    if output_format is not options.OutputFormat.TEXT:
        raise UsageError(f"--format goes with two sweeps; of one, {directory}/report.json is JSON")
    if is_burn_in(directory):
        raise typer.Exit(render_again(directory, no_color=no_color))
    # These bring numpy and pandas with them, which --help has no use for.
    from ncdiag.cli.run_sweep import conclude
    from ncdiag.measure.record import SweepRecord

    record = SweepRecord.of(_journal(directory))
    raise typer.Exit(conclude(record, directory, console.results(no_color=no_color)))


def _compare(
    earlier: Path, later: Path, output_format: options.OutputFormat, *, no_color: bool
) -> ExitCode:
    from ncdiag.diagnose.comparison import compare
    from ncdiag.report.comparison.json_report import render_json
    from ncdiag.report.comparison.text import render_text

    found = compare(_read(earlier), _read(later))
    if output_format is options.OutputFormat.JSON:
        console.write(render_json(found))
    else:
        render_text(found, console.results(no_color=no_color))
    return found.exit_code


def _read(directory: Path) -> "SweepReport":
    from ncdiag.measure.record import SweepRecord

    return SweepRecord.of(_journal(directory)).report()


def _journal(directory: Path) -> "list[Line]":
    """What a sweep noted; raises :class:`UsageError` where the directory is of no sweep."""
    from ncdiag.measure.journal import JOURNAL_NAME, read_journal

    if not (directory / JOURNAL_NAME).exists() and (directory / _OF_BENCH).exists():
        raise UsageError(
            f"{directory} holds the report of a benchmark, not of a sweep: see bench.html in it, "
            "and ncdiag history bench for several over time"
        )
    if is_burn_in(directory):
        raise UsageError(f"{directory} holds the report of a burn-in, and only sweeps are compared")
    return read_journal(directory)
