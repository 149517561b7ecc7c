"""``ncdiag import``: judge results that other tools have measured."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.expect.traffic import Collective

_IMPORTING = "What the results are of"

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="[HOST,HOST=]PATH...",
        help="Files of results, or directories of them; names before = are for a file that does "
        "not tell its hosts, the sending one first.",
        show_default=False,
    ),
]
HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=_IMPORTING,
        help="A hosts file: names, addresses, rates and leaves of the hosts. Contacts nobody.",
    ),
]
CollectiveOption = Annotated[
    Collective | None,
    typer.Option(
        "--collective",
        metavar="NAME",
        rich_help_panel=_IMPORTING,
        help="What was measured, where a file does not tell.",
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        rich_help_panel=_IMPORTING,
        help="What collectives should reach: a machine of ncdiag expect hardware.",
    ),
]

TopologyOption = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="FILE",
        rich_help_panel=_IMPORTING,
        help="The same, from an NCCL topology dump of one of the hosts, which are alike.",
    ),
]


def import_(
    paths: Paths,
    *,
    hosts: HostsOption = None,
    collective: CollectiveOption = None,
    machine: MachineOption = None,
    topology: TopologyOption = None,
    faulty_below: options.FaultyBelow = 0.8,
    output: options.Output = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    record: options.Record = False,
    store: options.StoreFile = None,
    junit: options.Junit = None,
    events: options.Events = None,
    webhook: options.Webhook = None,
    webhook_always: options.WebhookAlways = False,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Judge what other tools have measured, and write the same reports.

    Figures of pairs (mpiGraph, ClusterKit, perftest, osu_bw, nccl-tests between two hosts) are
    judged as a sweep is; collectives (nccl-tests, rccl-tests, SuperBench) as a benchmark is;
    nvbandwidth's as the links inside one host. Nothing is measured, nobody is contacted.
    """
    asked = locals()
    # These bring numpy and more with them, which --help has no use for.
    from ncdiag.cli import keeping, run_bench, run_import
    from ncdiag.cli.announcing import outlets

    messages = console.messages(quiet=quiet, no_color=no_color)
    keeping.check(store, record=record)
    found = run_import.read_all(paths, hosts, messages)
    wanted = run_import.Wanted(
        faulty_below=faulty_below,
        collective=collective,
        machine=run_bench.find_machine(machine, topology),
        output=output,
        force=force,
        as_json=output_format is options.OutputFormat.JSON,
        record=record,
        store=store,
        quiet=quiet,
        outlets=outlets(asked),
    )
    raise typer.Exit(run_import.conclude(found, wanted, console.results(no_color=no_color)))
