"""``ncdiag isolate undo``: taking back in whom ncdiag isolated."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import (
    Context,
    File,
    PlaceKind,
    PlaceOption,
    StoreFile,
    TableFormat,
    TableFormatOption,
    Yes,
)
from ncdiag.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ncdiag.isolate.places.base import Place
    from ncdiag.model.isolation import Change
    from ncdiag.store.ledger import Ledger

_NOTHING_DONE = "nothing was changed; --yes carries it out"
_NOBODY = "ncdiag has nobody isolated"


def undo(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOST...]", help="These hosts only (default: all of the newest apply)."
        ),
    ] = None,
    *,
    to: PlaceOption = None,
    file: File = None,
    context: Context = None,
    yes: Yes = False,
    store: StoreFile = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Release what the newest apply isolated, or HOST; what somebody changed since stays as it is.

    Without --to, where ncdiag isolated last. The exit code is 0 where that was carried out or
    nothing had to be, 1 where --yes is missing to release some, 3 where some could not be released
    or the place cannot be asked.
    """
    from ncdiag.cli.isolate.asking import expand_all, open_ledger, who
    from ncdiag.isolate import apply as applying

    names = expand_all(hosts) if hosts else None
    with open_ledger(store, write=yes) as ledger:
        place = _place(ledger, to, file, context)
        changes: tuple[Change, ...] = ()
        if place is not None and yes:
            changes = applying.undo(ledger, place, names, who())
        elif place is not None:
            changes = applying.plan_undo(ledger, place, names)
    key = None if place is None else place.key
    match output_format:
        case TableFormat.JSON:
            from ncdiag.report.isolation import json_report

            console.write(json_report.render_undo(changes, key, carried_out=yes))
        case TableFormat.CSV:
            from ncdiag.report.isolation import csv_report

            console.write(csv_report.render_changes(changes))
        case TableFormat.TEXT if key is not None:
            from ncdiag.report.isolation import text

            text.render_undo(changes, key, console.results(no_color=no_color), carried_out=yes)
    said = console.messages(quiet=quiet, no_color=no_color)
    if key is None:
        said.print(_NOBODY, soft_wrap=True)
    elif changes and not yes:
        said.print(_NOTHING_DONE, soft_wrap=True)
    if any(one.error for one in changes):
        return ExitCode.UNDECIDED
    waiting = not yes and any(one.skipped is None for one in changes)
    return ExitCode.WRONG if waiting else ExitCode.DONE


def _place(
    ledger: "Ledger", to: PlaceKind | None, file: Path | None, context: str | None
) -> "Place | None":
    """The place of the options, else where ncdiag isolated last; ``None`` where it has nobody."""
    from ncdiag.cli.isolate.asking import place_of, place_of_key

    if to is not None:
        return place_of(to, file, context)
    for option, value in (("--file", file), ("--context", context)):
        if value is not None:
            raise UsageError(f"{option} needs --to, which says where hosts are isolated")
    newest = max(ledger.isolated().values(), key=lambda action: action.number, default=None)
    return None if newest is None else place_of_key(newest.place)
