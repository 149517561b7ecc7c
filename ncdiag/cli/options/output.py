"""Options that say what is printed and written, and where."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_OUTPUT = "Output"
_KEPT = "What is kept"
_CLASSES = "What findings mean"


class OutputFormat(StrEnum):
    """How a command that lists things prints them."""

    TEXT = "text"
    JSON = "json"


Record = Annotated[
    bool,
    typer.Option(
        "--record",
        rich_help_panel=_KEPT,
        help="Keep the result in the store, for ncdiag history and isolate.",
    ),
]
RecordEvidence = Annotated[
    bool,
    typer.Option(
        "--record",
        rich_help_panel=_KEPT,
        help="Keep what it says of hosts in the store as evidence, for ncdiag isolate.",
    ),
]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        rich_help_panel=_KEPT,
        help="The store's file; default: in the user's data directory.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        rich_help_panel=_OUTPUT,
        help="The report directory (default: a dated folder under reports/).",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=_OUTPUT, help="Write into a directory that is not empty."
    ),
]
Format = Annotated[
    OutputFormat,
    typer.Option("--format", rich_help_panel=_OUTPUT, help="What goes to standard output."),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", rich_help_panel=_OUTPUT, help="Say more about what is going on."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", rich_help_panel=_OUTPUT, help="Say nothing but results and errors."),
]
NoColor = Annotated[
    bool,
    typer.Option("--no-color", rich_help_panel=_OUTPUT, help="Print without colours."),
]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="CLASS",
        rich_help_panel=_CLASSES,
        help="Say what a class of finding means and how to act on it.",
    ),
]
ListClasses = Annotated[
    bool,
    typer.Option("--list-classes", rich_help_panel=_CLASSES, help="List all classes of findings."),
]
