"""``ncdiag burn-in``: the gate before a launch; returns good hosts and spares."""

from enum import StrEnum
from typing import Annotated

import typer

from ncdiag.cli import console, options

_GATE = "The gate"


class Level(StrEnum):
    """How much is measured; the values are those of ``measure.burn_in.plan``."""

    QUICK = "quick"
    NORMAL = "normal"
    SOAK = "soak"


Need = Annotated[
    int | None,
    typer.Option(
        "--need",
        metavar="N",
        min=1,
        rich_help_panel=_GATE,
        show_default=False,
        help="How many good hosts the launch needs (default: all that are given).",
    ),
]
Spares = Annotated[
    int,
    typer.Option(
        "--spares",
        metavar="N",
        min=0,
        rich_help_panel=_GATE,
        help="How many good hosts to keep ready besides; missing ones fail nothing.",
    ),
]
LevelOption = Annotated[
    Level,
    typer.Option(
        "--level",
        rich_help_panel=_GATE,
        help="quick before each launch, normal as a gate, soak over a night.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="DURATION",
        parser=options.as_parameter(options.parse_duration_above_zero_s),
        rich_help_panel=_GATE,
        show_default=False,
        help="What a pass may take, shared by its stages (default: 3m, 10m or 1h by level).",
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(
        "--duration",
        metavar="DURATION",
        parser=options.as_parameter(options.parse_duration_above_zero_s),
        rich_help_panel=_GATE,
        show_default=False,
        help="Repeat all stages for so long, as 24h, and keep the worst (default: one pass).",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        rich_help_panel=_GATE,
        help="What measures; torch is the only one that can do all stages.",
    ),
]


def burn_in(
    context: typer.Context,
    *,
    nodes: options.Nodes = None,
    fabric: options.Fabric = None,
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
    need: Need = None,
    spares: Spares = 0,
    level: LevelOption = Level.NORMAL,
    budget: Budget = None,
    duration: Duration = None,
    engine: Engine = "torch",
    profile: options.Profile = None,
    faulty_below: options.FaultyBelow = 0.8,
    seed: options.Seed = 0,
    dry_run: options.DryRun = False,
    output: options.Output = None,
    output_format: options.Format = options.OutputFormat.TEXT,
    record: options.RecordEvidence = False,
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
    """Test hosts before a launch, and choose those to launch on, with spares.

    Reaches each host, checks its health, measures it alone, in pairs, all together, and under a
    load like training. Exits 0 when as many good hosts as needed are there, 1 when they are not,
    3 when undecided hosts may yet be good.
    """
    asked = locals()
    # These bring numpy and distributed with them, which --help has no use for.
    from ncdiag.cli import keeping, run_burn_in, unused
    from ncdiag.cli.allocation import in_allocation
    from ncdiag.cli.announcing import outlets
    from ncdiag.cli.hand_over_burn_in import hand_over
    from ncdiag.cli.run_sweep import choose_hosts
    from ncdiag.cli.way import way_of
    from ncdiag.measure.directory import prepare_directory

    way = way_of(asked)
    messages = console.messages(quiet=quiet, no_color=no_color)
    run_burn_in.check_engine(engine)
    unused.refuse(context, launcher, engine)
    hosts = choose_hosts(nodes, fabric, messages, way)
    plan = run_burn_in.begin(
        hosts,
        way,
        need=need,
        spares=spares,
        level=level.value,
        budget_s=budget,
        duration_s=duration,
        seed=seed,
        faulty_below=faulty_below,
        profile=profile,
        messages=messages,
    )
    unused.tell(context, plan.launcher, engine, messages)
    if dry_run:
        run_burn_in.show_plan(plan, way, console.results(no_color=no_color))
        return
    keeping.check(store, record=record)
    told = outlets(asked)
    in_allocation(plan.launcher, way.slurm, nodes, hosts, messages)
    directory = prepare_directory(output, "burn-in", force=force)
    report = run_burn_in.carry_out(plan, way, directory, messages, verbose=verbose)
    as_json = output_format is options.OutputFormat.JSON

    def tell() -> None:
        if record:
            run_burn_in.record(report, directory, store, quiet=quiet)
        told.announce(report, where=directory)

    results = console.results(no_color=no_color)
    raise typer.Exit(hand_over(report, directory, results, as_json=as_json, tell=tell))
