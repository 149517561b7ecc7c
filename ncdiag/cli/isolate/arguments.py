"""The options that the commands of ``ncdiag isolate`` share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli.options import OutputFormat, StoreFile

__all__ = [
    "Context",
    "File",
    "HostNames",
    "Nodes",
    "OutputFormat",
    "Place",
    "PlaceKind",
    "PlaceOption",
    "PolicyFile",
    "StoreFile",
    "TableFormat",
    "TableFormatOption",
    "Yes",
]

_OUTPUT = "Output"
_WHERE = "Where it is carried out"
_BY = "What it is decided by"


class PlaceKind(StrEnum):
    """Where hosts are isolated."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    HOSTFILE = "hostfile"


class TableFormat(StrEnum):
    """How lists are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


TableFormatOption = Annotated[
    TableFormat,
    typer.Option("--format", rich_help_panel=_OUTPUT, help="What goes to standard output."),
]
HostNames = Annotated[
    list[str],
    typer.Argument(metavar="HOST...", help="Hosts, or node sets such as gpu[003,007]."),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        rich_help_panel=_BY,
        help="TOML with what differs from the policy that is shipped.",
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=_BY,
        help="The fleet: only these hosts, which the safety budget is a share of, with their "
        "leaves (default: all that the place has).",
    ),
]
Place = Annotated[
    PlaceKind, typer.Option("--to", rich_help_panel=_WHERE, help="Where hosts are isolated.")
]
PlaceOption = Annotated[
    PlaceKind | None,
    typer.Option("--to", rich_help_panel=_WHERE, help="Where hosts are isolated."),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        rich_help_panel=_WHERE,
        help="hostfile: the hosts file that lines are taken out of.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        rich_help_panel=_WHERE,
        help="kubernetes: the context of kubectl's configuration.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        rich_help_panel=_WHERE,
        help="Carry it out; without it, only what would be done is printed.",
    ),
]
