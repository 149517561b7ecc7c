"""``ncdiag env audit``: what every rank took of a profile, proved by its log."""

import os
from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.text import visible
from ncdiag.profiles import placeholders, profile_files

_READING = "Reading"
MAX_BYTES = 1 << 40
_GLOB = frozenset("*?[")

Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        show_default=False,
        help="Logs, folders of logs, or patterns; plain or compressed. - is standard input.",
    ),
]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile", metavar="NAME|FILE", show_default=False, help="What the ranks were to take."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        max=1024,
        rich_help_panel=_READING,
        help="How many processes read (default: one a core).",
    ),
]


def audit(
    logs: Logs,
    *,
    profile: ProfileOption,
    jobs: Jobs = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Prove from NCCL's logs what every rank took of a profile.

    Needs logs with NCCL_DEBUG=INFO and ENV among NCCL_DEBUG_SUBSYS. The exit code is 0 when all
    ranks took all of it, 1 when one did not, 3 when the logs cannot tell.
    """
    wanted = profile_files.load(profile)
    placeholders.check(wanted)
    for path in logs:
        if path != "-" and not os.path.lexists(path) and not _GLOB & set(path):
            raise UsageError(f"there is no {visible(path)}; name a log, a folder or a pattern")
    # These read and judge, which --help has no use for.
    from ncdiag.cli.reading import read_evidence
    from ncdiag.diagnose.env_audit import audit as judge
    from ncdiag.report.env import audit as report

    messages = console.messages(no_color=no_color)
    evidence = read_evidence(logs, None, messages, max_bytes=MAX_BYTES, jobs=jobs)
    result = judge(wanted, evidence)
    if output_format is options.OutputFormat.JSON:
        console.write(report.render_json(result))
    else:
        report.show(result, console.results(no_color=no_color))
    return result.exit_code
