"""``ncdiag topo diff``: which hosts of a fleet differ from the others, and in what."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.model.errors import ExitCode, UsageError

Dumps = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DIR|PATH",
        show_default=False,
        help="Folders of dumps, or dumps: one for each host, named after it.",
    ),
]


def diff(
    paths: Dumps = None,
    *,
    output_format: options.Format = options.OutputFormat.TEXT,
    verbose: options.Verbose = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Compare the dumps of a fleet, and name the hosts that differ from most.

    Numbers that are every host's own (GUIDs, host hashes, ranks) are set aside. The exit code is
    1 when a host differs, and 3 when hosts differ and no majority says which are wrong, or a dump
    could not be read.
    """
    if not paths:
        raise UsageError("nothing to compare; name a folder of dumps, or several dumps")
    from ncdiag.cli.topo.comparing import compare_all
    from ncdiag.report.topology import diff as report

    result = compare_all(paths, console.messages(no_color=no_color))
    if output_format is options.OutputFormat.JSON:
        console.write(report.render_json(result))
    else:
        report.render_text(result, console.results(no_color=no_color), verbose=verbose)
    return report.exit_code(result)
