"""``ncdiag serve``: the last reports as pages, and their metrics, over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli import console, interrupts, options

_SERVED = "What is served"
_REACHED = "Who reaches it"

Reports = Annotated[
    Path,
    typer.Option(
        "--reports",
        metavar="DIR",
        rich_help_panel=_SERVED,
        help="The folder with report directories.",
    ),
]
Metrics = Annotated[
    list[Path],
    typer.Option(
        "--metrics",
        metavar="FILE|DIR",
        rich_help_panel=_SERVED,
        show_default=False,
        help="A textfile of metrics, or a folder of *.prom, to join at /metrics; repeatable.",
    ),
]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        rich_help_panel=_SERVED,
        help="The store whose isolation ledger is counted (default: the user's own, if any).",
    ),
]
Bind = Annotated[
    str,
    typer.Option(
        "--bind",
        metavar="ADDRESS",
        rich_help_panel=_REACHED,
        help="The address to listen on; any but loopback needs a token.",
    ),
]
Port = Annotated[
    int,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65535,
        rich_help_panel=_REACHED,
        help="The port; 0 is any free one.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        rich_help_panel=_REACHED,
        help="Whoever asks must give the token in this file, which only its owner may read "
        "(or set NCDIAG_SERVE_TOKEN).",
    ),
]


def serve(
    *,
    reports: Reports = Path("reports"),
    metrics: Metrics = [],  # noqa: B006 - typer copies it
    store: StoreFile = None,
    bind: Bind = "127.0.0.1",
    port: Port = 9273,
    token_file: TokenFile = None,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Serve the last reports as pages, and their metrics for Prometheus; changes nothing.

    / lists the reports, /metrics joins the metrics of the newest report of each kind, of textfiles
    and of the isolation ledger, /healthz answers ok. Ctrl-C or SIGTERM ends it, with exit code 130.
    """
    from ncdiag.cli.serving.start import serve_until_stopped

    try:
        serve_until_stopped(
            reports=reports,
            metrics=metrics,
            store=store,
            bind=bind,
            port=port,
            token_file=token_file,
            messages=console.messages(quiet=quiet, no_color=no_color),
        )
    except KeyboardInterrupt:
        # Python would wait for a reader, which a dead file server may hold for ever.
        interrupts.end_at_once()
