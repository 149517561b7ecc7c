"""What a burn-in leaves behind: its report directory, what it prints, and its exit code."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from ncdiag.cli import console as consoles
from ncdiag.model.burn_in import BurnInReport
from ncdiag.model.errors import ExitCode, NcdiagError
from ncdiag.report.burn_in import json_report
from ncdiag.report.burn_in.presentable import presentable
from ncdiag.report.burn_in.text import render_text
from ncdiag.report.burn_in.write import write_all


def hand_over(
    report: BurnInReport,
    directory: Path,
    console: Console,
    *,
    as_json: bool = False,
    tell: Callable[[], None] | None = None,
) -> ExitCode:
    """Write and print the report, and have ``tell`` tell others; the code of its verdict.

    A day of measuring is not lost with a full disk: what cannot be written is raised in the end.
    """
    unwritten = None
    try:
        write_all(report, directory)
    except NcdiagError as error:
        unwritten = error
    if as_json:
        consoles.write(json_report.render(presentable(report)))
    else:
        render_text(report, console, directory if unwritten is None else None)
    if tell is not None:
        tell()
    if unwritten is not None:
        raise unwritten
    return ExitCode.INTERRUPTED if report.interrupted else report.verdict.exit_code
