"""``ncdiag bench``: run one collective over hosts and judge what it reaches."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.expect import choice_of
from ncdiag.expect.traffic import Collective

_MEASURING = "Measuring"
_JUDGING = "What it is compared with"
_TIMEOUT_S = 1800.0

CollectiveArgument = Annotated[
    Collective,
    typer.Argument(
        metavar="COLLECTIVE",
        parser=choice_of(Collective),
        help=f"What is run: {', '.join(Collective)}.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        rich_help_panel=_MEASURING,
        help="What measures: nccl-tests, or torch, which needs no programs on the hosts.",
    ),
]
SizesOption = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        metavar="LEAST:MOST:FACTOR",
        rich_help_panel=_MEASURING,
        help="Message sizes, as nccl-tests counts them (default: 8:8G:2; without GPUs 1K:64M:2).",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        min=1,
        max=1000,
        metavar="N",
        rich_help_panel=_MEASURING,
        help="How often everything is measured; medians count.",
    ),
]
Iterations = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=1,
        max=100_000,
        metavar="N",
        rich_help_panel=_MEASURING,
        help="How often each size is timed in a run.",
    ),
]
Scaling = Annotated[
    str | None,
    typer.Option(
        "--scaling",
        metavar="N,N,...",
        rich_help_panel=_MEASURING,
        help="Measure the first 2, 4, 8 ... hosts, to see where bandwidth breaks.",
    ),
]
GpusPerNode = Annotated[
    int | None,
    typer.Option(
        "--gpus-per-node",
        min=1,
        max=1024,
        metavar="N",
        rich_help_panel=_MEASURING,
        help="How many ranks on each host (default: its GPUs; without any, one).",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        parser=options.as_parameter(options.parse_duration_above_zero_s),
        rich_help_panel=_MEASURING,
        show_default=False,
        help="A run that takes longer is killed (default: 30m).",
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        rich_help_panel=_JUDGING,
        help="A machine of the catalogue; ncdiag expect hardware lists them.",
    ),
]
Topology = Annotated[
    str | None,
    typer.Option(
        "--topology",
        metavar="FILE",
        rich_help_panel=_JUDGING,
        help="An NCCL topology dump of one of the hosts, which are alike.",
    ),
]
FaultyBelow = Annotated[
    float,
    typer.Option(
        "--faulty-below",
        metavar="SHARE",
        parser=options.as_parameter(options.parse_share),
        rich_help_panel=_JUDGING,
        help="A plateau below this share of its expectation is a fault.",
    ),
]


def bench(
    context: typer.Context,
    collective: CollectiveArgument,
    *,
    nodes: options.Nodes = None,
    launcher: options.Launcher = "auto",
    ssh_option: options.SshOption = [],  # noqa: B006 - typer copies it
    remote_python: options.RemotePython = None,
    remote_setup: options.RemoteSetup = None,
    driver_address: options.DriverAddress = None,
    partition: options.Partition = None,
    account: options.Account = None,
    time: options.TimeLimit = None,
    srun_arg: options.SrunArgument = [],  # noqa: B006 - typer copies it
    container_image: options.ContainerImage = None,
    selector: options.Selector = None,
    namespace: options.Namespace = None,
    kube_context: options.KubeContext = None,
    container: options.Container = None,
    engine: Engine = "nccl-tests",
    nccl_tests_dir: options.NcclTestsDirectory = None,
    sizes: SizesOption = None,
    repeat: Repeat = 1,
    iterations: Iterations = 20,
    scaling: Scaling = None,
    gpus_per_node: GpusPerNode = None,
    timeout: Timeout = _TIMEOUT_S,
    profile: options.Profile = None,
    dry_run: options.DryRun = False,
    machine: MachineOption = None,
    topology: Topology = None,
    faulty_below: FaultyBelow = 0.8,
    output: options.Output = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    record: options.Record = False,
    store: options.StoreFile = None,
    junit: options.Junit = None,
    events: options.Events = None,
    webhook: options.Webhook = None,
    webhook_always: options.WebhookAlways = False,
    force: options.Force = False,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> None:
    """Run one collective over all hosts and judge it where large messages level off.

    Finds a cliff at one size, figures that do not repeat, a slow rank, wrong data, and the number
    of hosts at which bandwidth breaks. With --machine or --topology it is compared with theory.
    """
    asked = locals()
    # These bring a lot with them, which --help has no use for.
    from ncdiag.cli import keeping, run_bench, show_bench, unused
    from ncdiag.cli.allocation import in_allocation
    from ncdiag.cli.announcing import outlets
    from ncdiag.cli.way import way_of
    from ncdiag.measure.bench.base import BenchPlan
    from ncdiag.measure.bench.sizes import parse_sizes
    from ncdiag.measure.directory import prepare_directory

    way = way_of(asked)
    messages = console.messages(quiet=quiet, no_color=no_color)
    unused.refuse(context, launcher, engine)
    hosts = run_bench.choose_hosts(nodes, scaling, way)
    bench_ = run_bench.Bench(
        hosts=hosts,
        way=way,
        engine=engine,
        plan=BenchPlan(
            collective=collective,
            sizes=None if sizes is None else parse_sizes(sizes),
            iterations=iterations,
            gpus_per_node=gpus_per_node,
            timeout_s=timeout,
            nccl_tests_dir=nccl_tests_dir,
            driver_address=driver_address,
            variables=run_bench.variables_of(profile, engine, messages),
        ),
        machine=run_bench.find_machine(machine, topology),
        repeat=repeat,
        scaling=run_bench.parse_scaling(scaling),
        faulty_below=faulty_below,
        profile=profile,
        store=store,
    )
    bench_.check()
    chosen = way.launcher_for(hosts).name
    unused.tell(context, chosen, engine, messages)
    if dry_run:
        show_bench.show_plan(bench_, console.results(no_color=no_color))
        return
    keeping.check_history(store, record=record)
    told = outlets(asked)
    in_allocation(chosen, way.slurm, nodes, hosts, messages)
    opened = bench_.open()
    directory = prepare_directory(output, "bench", force=force)
    report = run_bench.carry_out(bench_, opened, messages, verbose=verbose)
    code = run_bench.conclude(
        report,
        directory,
        console.results(no_color=no_color),
        as_json=output_format is options.OutputFormat.JSON,
    )
    if record:
        keeping.keep(report, store, directory=directory, quiet=quiet)
    told.announce(report, where=directory)
    raise typer.Exit(code)
