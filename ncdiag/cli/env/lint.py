"""``ncdiag env lint``: what is wrong with settings, and what to write instead."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.env.arguments import HOSTS
from ncdiag.model.environment import LintSeverity
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.profiles.context import LintContext
from ncdiag.profiles.versions import Version, parse_version

_JOB = "What they are for"

Operands = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROFILE|FILE",
        show_default=False,
        help="Profiles, scripts, sbatch files, Kubernetes manifests, Dockerfiles, nccl.conf; - is "
        "standard input. Without any, the environment and NCCL's own files.",
    ),
]
OnHost = Annotated[
    bool,
    typer.Option(
        "--host", rich_help_panel=_JOB, help="Look for the devices they name on this host."
    ),
]
Fleet = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=HOSTS,
        help="Look for the devices they name on these hosts: a hosts file, else a node set.",
    ),
]


def _version(text: str) -> Version:
    try:
        return parse_version(text)
    except UsageError as error:
        raise typer.BadParameter(f"{error}") from None


NcclVersion = Annotated[
    str | None,
    typer.Option(
        "--nccl",
        metavar="VERSION",
        rich_help_panel=_JOB,
        help="The release of NCCL that will read them: 2.21.5.",
    ),
]
Ranks = Annotated[
    int | None,
    typer.Option(
        "--ranks", metavar="N", min=1, rich_help_panel=_JOB, help="How many processes the job has."
    ),
]


def lint(
    operands: Operands = None,
    *,
    host: OnHost = False,
    nccl: NcclVersion = None,
    ranks: Ranks = None,
    nodes: Fleet = None,
    launcher: options.Launcher = "auto",
    ssh_option: options.SshOption = [],  # noqa: B006 - typer copies it
    remote_python: options.RemotePython = None,
    remote_setup: options.RemoteSetup = None,
    driver_address: options.DriverAddress = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    verbose: options.Verbose = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Say what is wrong with settings of NCCL's environment variables, and what to write instead.

    The exit code is 0 with warnings only, 1 with an error, 3 when a host could not be asked, or a
    file names variables and sets none in a way that can be read.
    """
    from ncdiag.cli.env import linting
    from ncdiag.report.env import lint as report

    if host and nodes is not None:
        raise UsageError("--host looks at this host, --nodes at others; give one of them")
    version = None if nccl is None else _version(nccl)
    messages = console.messages(no_color=no_color)
    asked = linting.Asked()
    if host:
        asked = linting.this_host()
    elif nodes is not None:
        from ncdiag.cli.way import Way

        way = Way(
            launcher=launcher,
            ssh_options=tuple(ssh_option),
            python=remote_python,
            setup=remote_setup,
            driver_address=driver_address,
        )
        asked = linting.fleet(nodes, way, messages, verbose=verbose)
    context = LintContext(nccl=version, ranks=ranks, hosts=asked.hosts)
    found = linting.lint_all(operands or [], context, asked.values)
    if output_format is options.OutputFormat.JSON:
        told = report.render_json(found.findings, found.settings, found.unread, asked.unreachable)
        console.write(told)
    else:
        out = console.results(no_color=no_color)
        report.show(found.findings, found.settings, found.unread, asked.unreachable, out)
    for nodes_folded, why in asked.reasons():
        messages.print(f"ncdiag: {nodes_folded} cannot be asked: {why}", soft_wrap=True)
    if any(one.severity is LintSeverity.ERROR for one in found.findings):
        return ExitCode.WRONG
    return ExitCode.UNDECIDED if asked.unreachable or found.unread else ExitCode.DONE
