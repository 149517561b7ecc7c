"""Options that tell other systems of a verdict."""

from pathlib import Path
from typing import Annotated

import typer

_TELLING = "Telling others"

Junit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        rich_help_panel=_TELLING,
        help="Write the verdict as JUnit XML, for GitLab or Jenkins.",
    ),
]
Events = Annotated[
    Path | None,
    typer.Option(
        "--events",
        metavar="FILE",
        rich_help_panel=_TELLING,
        help="Append it and its findings as JSON lines, for Elasticsearch.",
    ),
]
Webhook = Annotated[
    str | None,
    typer.Option(
        "--webhook",
        metavar="URL",
        rich_help_panel=_TELLING,
        show_default=False,
        help="Post a message as Slack takes it unless all is healthy (default: the variable "
        "NCDIAG_WEBHOOK, which others do not see).",
    ),
]
WebhookAlways = Annotated[
    bool,
    typer.Option(
        "--webhook-always", rich_help_panel=_TELLING, help="Post it when all is healthy, too."
    ),
]
