"""The options that all of ``ncdiag history`` shares, and the store they are about."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.model.errors import UsageError
from ncdiag.model.units import parse_duration_s

if TYPE_CHECKING:
    from ncdiag.store.store import Store

_WHICH = "Which runs"
_OUTPUT = "Output"
# Runs say when they started in UTC.
_STARTED = "%Y-%m-%dT%H:%M:%S"


class TableFormat(StrEnum):
    """How histories are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def _since(text: str) -> str:
    """The time in UTC, as runs have it, of ``30d`` ago or of a date; raises BadParameter."""
    try:
        if text[:4].isdigit() and text[4:5] == "-":
            moment = datetime.fromisoformat(text)
            utc = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        else:
            utc = datetime.now(UTC) - timedelta(seconds=parse_duration_s(text))
        return f"{utc.astimezone(UTC):{_STARTED}}"
    except (ValueError, OverflowError, UsageError):
        raise typer.BadParameter(
            f"not a time: {text!r} (examples: 30d, 12h, 2026-11-01, 2026-11-01T08:00)"
        ) from None


StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        rich_help_panel=_WHICH,
        help="The store's file; default: in the user's data directory.",
    ),
]
Last = Annotated[
    int,
    typer.Option(
        "--last", metavar="N", min=1, rich_help_panel=_WHICH, help="The newest N runs only."
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        parser=_since,
        rich_help_panel=_WHICH,
        help="Runs that started since: 30d, 12h, 2026-11-01 (UTC).",
    ),
]
TableFormatOption = Annotated[
    TableFormat,
    typer.Option("--format", rich_help_panel=_OUTPUT, help="What goes to standard output."),
]


def open_to_read(path: Path | None) -> "Store":
    """The store at ``path``, by default that in the user's data directory.

    Raises :class:`UsageError` or :class:`UndecidedError`.
    """
    from ncdiag.store.location import default_store
    from ncdiag.store.store import Store

    return Store.open(default_store() if path is None else path)
