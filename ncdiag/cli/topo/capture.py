"""``ncdiag topo capture``: collect topology dumps on this host or on a fleet."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.text import visible

REPORTS = Path("reports")

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        rich_help_panel="Output",
        help="The folder to write to (default: a dated folder under reports/).",
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel="Hosts and how to reach them",
        help="Collect on these hosts, not here: a hosts file, else a node set such as "
        "gpu[001-128,130]; - is standard input.",
    ),
]


def capture(
    *,
    nodes: Nodes = None,
    launcher: options.Launcher = "auto",
    ssh_option: options.SshOption = [],  # noqa: B006 - typer copies it
    remote_python: options.RemotePython = None,
    remote_setup: options.RemoteSetup = None,
    driver_address: options.DriverAddress = None,
    output: Output = None,
    force: options.Force = False,
    output_format: options.Format = options.OutputFormat.TEXT,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Collect the topology dumps there are into a folder, for topo check and topo diff.

    Asks NCCL (through PyTorch), nvidia-smi, rocm-smi, amd-smi, ibstat and lstopo, and reads the
    PCIe links from sysfs; what is not there is left out. Exits with 1 when a PCIe link runs below
    what both its ends can do, with 3 when something that is there gave no answer.
    """
    from ncdiag.cli.topo import capturing
    from ncdiag.report.topology import capture as report

    messages = console.messages(quiet=quiet, no_color=no_color)
    if nodes is None:
        directory = _prepared(output, force=force)
        hosts = [capturing.this_host(_own_name())]
    else:
        from ncdiag.cli.way import Way
        from ncdiag.cluster.inventory import read_hosts

        fleet = read_hosts(nodes)
        way = Way(
            launcher=launcher,
            ssh_options=tuple(ssh_option),
            python=remote_python,
            setup=remote_setup,
            driver_address=driver_address,
        )
        way.launcher_for(fleet)  # before anything is made, refuse what cannot be started
        directory = _prepared(output, force=force)
        hosts = capturing.fleet_hosts(fleet, way, messages, verbose=verbose)
    result = capturing.write(hosts, directory)
    if output_format is options.OutputFormat.JSON:
        console.write(report.render_json(result))
    else:
        report.render_text(result, console.results(no_color=no_color))
    return report.exit_code(result)


def _own_name() -> str:
    from ncdiag.model.nodes import is_host_name

    name = socket.gethostname()
    return name if is_host_name(name) and not name.startswith((".", "<")) else "localhost"


def _prepared(output: Path | None, *, force: bool) -> Path:
    """The folder to write to, made where it is missing; raises :class:`UsageError`."""
    directory = output or REPORTS / f"topology-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    called = visible(str(directory))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not force:
            raise UsageError(
                f"{called} is not empty; give another --output, or --force to write into it"
            )
    except OSError as error:
        raise UsageError(f"cannot write to {called}: {error.strerror}") from error
    return directory
