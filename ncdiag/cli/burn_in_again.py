"""``ncdiag report`` of a burn-in: rendered again from its ``report.json``."""

from pathlib import Path

from ncdiag.cli import console
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.text import visible

REPORT = "report.json"
# Where the schema stands, which is said first.
_HEAD_BYTES = 64


def is_burn_in(directory: Path) -> bool:
    """Whether the report in ``directory`` is one of a burn-in."""
    try:
        with (directory / REPORT).open("rb") as file:
            return b'"ncdiag/burn-in/' in file.read(_HEAD_BYTES)
    except OSError:
        return False


def render_again(directory: Path, *, no_color: bool) -> ExitCode:
    """Write and print the report in ``directory`` again; raises :class:`UsageError`."""
    # These bring numpy and matplotlib with them.
    from ncdiag.cli.hand_over_burn_in import hand_over
    from ncdiag.report.burn_in import json_report

    path = directory / REPORT
    try:
        document = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {visible(str(path))}: {error.strerror}") from error
    report = json_report.read(document, visible(str(path)))
    return hand_over(report, directory, console.results(no_color=no_color))
