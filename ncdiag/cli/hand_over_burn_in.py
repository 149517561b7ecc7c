"""What a burn-in leaves behind: its report directory, what it prints, and its exit code."""

from pathlib import Path

from rich.console import Console

from ncdiag.cli import console as consoles
from ncdiag.model.burn_in import BurnInReport
from ncdiag.model.errors import ExitCode
from ncdiag.report.burn_in import json_report
from ncdiag.report.burn_in.presentable import presentable
from ncdiag.report.burn_in.text import render_text
from ncdiag.report.burn_in.write import write_all


def hand_over(
    report: BurnInReport, directory: Path, console: Console, *, as_json: bool = False
) -> ExitCode:
    """Write and print the report; the exit code that carries its verdict."""
    write_all(report, directory)
    if as_json:
        consoles.write(json_report.render(presentable(report)))
    else:
        render_text(report, console, directory)
    return ExitCode.INTERRUPTED if report.interrupted else report.verdict.exit_code
