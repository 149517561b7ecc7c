"""``ncdiag health``: whether this host, or each of a fleet, is fit to run a job."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ncdiag.cli import options
from ncdiag.model.errors import ExitCode
from ncdiag.model.health import HealthReport

_HOSTS = "Hosts and how to reach them"
_CHECKING = "What is checked"
_MONITORING = "For schedulers and monitoring"
_OUTPUT = "Output"


class HealthFormat(StrEnum):
    """How the health of hosts is printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=_HOSTS,
        help="Ask these hosts, not this one: a hosts file, else a node set such as "
        "gpu[001-128,130]; - is standard input.",
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        rich_help_panel=_CHECKING,
        help="Read the facts of a host that was recorded in this folder.",
    ),
]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        metavar="DURATION",
        parser=options.as_parameter(options.parse_duration_above_zero_s),
        rich_help_panel=_CHECKING,
        help="Read twice, so far apart, and tell which error counters rise: 10s.",
    ),
]
Only = Annotated[
    list[str],
    typer.Option(
        "--only",
        metavar="CHECK",
        rich_help_panel=_CHECKING,
        help="Make this check only; repeatable.",
    ),
]
Skip = Annotated[
    list[str],
    typer.Option(
        "--skip", metavar="CHECK", rich_help_panel=_CHECKING, help="Leave it out; repeatable."
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--gpus",
        metavar="N",
        min=0,
        max=1024,
        rich_help_panel=_CHECKING,
        help="How many GPUs a host should have, where the hosts file does not say.",
    ),
]
Nics = Annotated[
    list[str],
    typer.Option(
        "--nic",
        metavar="NAME",
        rich_help_panel=_CHECKING,
        help="A NIC that a host should have, where the hosts file names none; repeatable.",
    ),
]
ListChecks = Annotated[
    bool, typer.Option("--list-checks", rich_help_panel=_CHECKING, help="List all checks.")
]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="CHECK",
        rich_help_panel=_CHECKING,
        help="Say what a check means and how to act on it.",
    ),
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        rich_help_panel=_CHECKING,
        help="Say which hosts differ from most, and in what.",
    ),
]
Nagios = Annotated[
    bool,
    typer.Option(
        "--nagios",
        rich_help_panel=_MONITORING,
        help="One line for Nagios, and its codes: 0 OK, 1 warning, 2 critical, 3 unknown.",
    ),
]
Prolog = Annotated[
    bool,
    typer.Option(
        "--prolog",
        rich_help_panel=_MONITORING,
        help="For Slurm's prolog, epilog and HealthCheckProgram: a line and code 1 where this "
        "host is to be drained, else nothing and 0.",
    ),
]
Watch = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="DURATION",
        parser=options.as_parameter(options.parse_duration_above_zero_s),
        rich_help_panel=_MONITORING,
        help="Check again and again, so far apart, and say what changes: 60s.",
    ),
]
Metrics = Annotated[
    Path | None,
    typer.Option(
        "--metrics",
        metavar="FILE",
        rich_help_panel=_MONITORING,
        help="Write metrics for node_exporter's textfile collector, whole or not at all.",
    ),
]
Format = Annotated[
    HealthFormat,
    typer.Option("--format", rich_help_panel=_OUTPUT, help="What goes to standard output."),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        rich_help_panel=_OUTPUT,
        help="Also notes, what could not be checked, what passed, and the main facts.",
    ),
]


def health(
    context: typer.Context,
    *,
    nodes: Nodes = None,
    launcher: options.Launcher = "auto",
    ssh_option: options.SshOption = [],  # noqa: B006 - typer copies it
    remote_python: options.RemotePython = None,
    remote_setup: options.RemoteSetup = None,
    partition: options.Partition = None,
    account: options.Account = None,
    time: options.TimeLimit = None,
    srun_arg: options.SrunArgument = [],  # noqa: B006 - typer copies it
    container_image: options.ContainerImage = None,
    selector: options.Selector = None,
    namespace: options.Namespace = None,
    kube_context: options.KubeContext = None,
    container: options.Container = None,
    root: Root = None,
    interval: Interval = None,
    only: Only = [],  # noqa: B006 - typer copies it
    skip: Skip = [],  # noqa: B006 - typer copies it
    gpus: Gpus = None,
    nic: Nics = [],  # noqa: B006 - typer copies it
    list_checks: ListChecks = False,
    explain: Explain = None,
    nagios: Nagios = False,
    prolog: Prolog = False,
    watch: Watch = None,
    metrics: Metrics = None,
    output_format: Format = HealthFormat.TEXT,
    compare: Compare = False,
    record: options.RecordEvidence = False,
    store: options.StoreFile = None,
    junit: options.Junit = None,
    events: options.Events = None,
    webhook: options.Webhook = None,
    webhook_always: options.WebhookAlways = False,
    verbose: Verbose = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Check GPUs, NICs, memory, clock and file systems of this host, or of many.

    Facts are collected in a few seconds, whatever hangs, and nothing is measured. The exit code is
    0 when nothing is wrong (warnings are text), 1 with a fault on any host, 3 when a host could not
    be judged.
    """
    asked = locals()
    if prolog and not list_checks and explain is None:
        return _prolog(context, asked)
    # These collect and judge, which --help has no use for.
    from ncdiag.cli.health.modes import carry_out

    return carry_out(context, asked)


def _prolog(context: typer.Context, asked: Mapping[str, Any]) -> ExitCode:
    from ncdiag.cli.health.prolog import prolog

    def look() -> HealthReport:
        from ncdiag.cli.health.modes import look_for_prolog  # what fails there drains nobody

        return look_for_prolog(context, asked)

    return prolog(look)
