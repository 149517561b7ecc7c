"""The arguments and options that several ``topo`` commands share."""

from enum import StrEnum
from typing import Annotated

import typer

READING = "Reading"


class LiveTool(StrEnum):
    """What asks the fabric itself."""

    IBNETDISCOVER = "ibnetdiscover"
    IBLINKINFO = "iblinkinfo"


Live = Annotated[
    LiveTool | None,
    typer.Option(
        "--live",
        rich_help_panel=READING,
        help="Ask the InfiniBand fabric this host is on, by that tool, instead of reading a file.",
    ),
]
