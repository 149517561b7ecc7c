"""``ncdiag env diff``: what two profiles, files or environments set differently."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.env.arguments import Source, effective, own_settings, source_of
from ncdiag.model.environment import Setting
from ncdiag.model.errors import ExitCode
from ncdiag.profiles.placeholders import form_of

if TYPE_CHECKING:
    from ncdiag.report.env.profiles import Change

First = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE|FILE",
        show_default=False,
        help="A profile, or a file that sets variables; - is standard input.",
    ),
]
Second = Annotated[
    str | None,
    typer.Argument(
        metavar="PROFILE|FILE", show_default=False, help="Another; without it, the environment."
    ),
]
ENVIRONMENT = "the environment"


def diff(
    first: First,
    second: Second = None,
    *,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Say what two profiles or files set differently, or one and the current environment.

    A value that is filled in on each host equals any that has its form. The exit code is 1 when
    there is a difference.
    """
    from ncdiag.report.env import profiles as report

    before = source_of(first)
    after = Source(ENVIRONMENT, own_settings()) if second is None else source_of(second)
    changes = changes_between(effective(before.settings), effective(after.settings))
    if output_format is options.OutputFormat.JSON:
        console.write(report.changes_json(before.name, after.name, changes))
    else:
        out = console.results(no_color=no_color)
        report.show_changes(before.name, after.name, changes, out)
    return ExitCode.WRONG if changes else ExitCode.DONE


def changes_between(before: Mapping[str, Setting], after: Mapping[str, Setting]) -> "list[Change]":
    """The variables that differ, by name; values that may be secrets are not shown."""
    from ncdiag.read.nccl.settings import safe_value
    from ncdiag.report.env.profiles import Change

    changes = []
    for name in sorted({*before, *after}):
        first, second = (side[name].value if name in side else None for side in (before, after))
        if not _alike(first, second):
            shown = (None if v is None else safe_value(name, v) for v in (first, second))
            changes.append(Change(name, *shown))
    return changes


def _alike(first: str | None, second: str | None) -> bool:
    if first is None or second is None:
        return first == second
    if first == second:
        return True
    return bool(form_of(first).fullmatch(second) or form_of(second).fullmatch(first))
