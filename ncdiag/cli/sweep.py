"""``ncdiag sweep``: measure every pair of hosts and say which ones to leave out."""

import typer

from ncdiag.cli import console, options
from ncdiag.model.errors import UsageError

# What a resumed sweep takes from its journal: half of it was measured that way.
_FIXED = ("mode", "engine", "profile", "seed", "faulty_below", "rails")
_FIXED_SETTINGS = ("pair_test", "nccl_tests_dir", "perftest")
_FIXED_TIMES = {"warmup_time": "warmup_s", "measure_time": "measure_s", "max_bytes": "max_bytes"}


def sweep(
    context: typer.Context,
    *,
    nodes: options.Nodes = None,
    fabric: options.Fabric = None,
    topology: options.TopologyDumps = None,
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
    engine: options.Engine = "torch",
    nccl_tests_dir: options.NcclTestsDirectory = None,
    pair_test: options.PairTestOption = options.PairTest.SENDRECV,
    perftest: options.PerftestOption = options.Perftest.WRITE,
    rails: options.RailsOption = options.Rails.TURN,
    at_a_time: options.AtATime = 64,
    profile: options.Profile = None,
    mode: options.SweepMode = options.Mode.FULL,
    warmup_time: options.WarmupTime = options.WARMUP_S,
    measure_time: options.MeasureTime = options.MEASURE_S,
    max_bytes: options.MaxBytes = None,
    faulty_below: options.FaultyBelow = 0.8,
    budget: options.Budget = None,
    seed: options.Seed = 0,
    resume: options.Resume = None,
    dry_run: options.DryRun = False,
    output: options.Output = None,
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
    """Measure the links between hosts, pair by pair, and name the culprit.

    Every pair is measured in both directions over the network and compared with what it should
    reach. Suspects are measured again in quiet; then hosts, NICs, switch links or single links
    are named, and the report directory gets the list of hosts to leave out.
    """
    asked = locals()
    # These bring numpy and distributed with them, which --help has no use for.
    from ncdiag.cli import run_sweep, unused
    from ncdiag.cli.allocation import in_allocation
    from ncdiag.cli.announcing import outlets
    from ncdiag.cli.host_dumps import read_host_dumps
    from ncdiag.cli.keeping import check, keep
    from ncdiag.cli.progress import ConsoleWatcher
    from ncdiag.cli.sweep_profile import variables_for
    from ncdiag.cli.way import way_of
    from ncdiag.measure.directory import prepare_directory
    from ncdiag.measure.engines.base import EngineSettings, Timing

    way = way_of(asked)
    messages = console.messages(quiet=quiet, no_color=no_color)
    if resume is None:
        unused.refuse(context, launcher, engine)
        hosts = run_sweep.choose_hosts(nodes, fabric, messages, way)
        timing = Timing(warmup_s=warmup_time, measure_s=measure_time, max_bytes=max_bytes)
        found = run_sweep.begin(
            hosts,
            way,
            mode=mode.value,
            engine=engine,
            profile=profile,
            variables=variables_for(profile, engine, messages),
            seed=seed,
            faulty_below=faulty_below,
            timing=timing,
            budget_s=budget,
            dumps=() if topology is None else read_host_dumps(topology, hosts, messages),
            rails=rails.value,
            engine_settings=EngineSettings(
                pair_test=pair_test.value,
                nccl_tests_dir=nccl_tests_dir,
                perftest=perftest.value,
                at_a_time=at_a_time,
            ),
        )
    else:
        if topology is not None:
            raise UsageError("--topology cannot change when a sweep is resumed; leave it out")
        found = run_sweep.take_up(resume, nodes, fabric, messages, way)
        plan = found.plan
        planned = {name: getattr(plan, name) for name in _FIXED}
        planned |= {name: getattr(plan.timing, field) for name, field in _FIXED_TIMES.items()}
        planned |= {name: getattr(plan.engine_settings, name) for name in _FIXED_SETTINGS}
        options.refuse_changes(context, planned | {"output": resume})
    chosen = way.launcher_for(found.plan.hosts).name
    unused.tell(context, chosen, found.plan.engine, messages)
    if dry_run:
        run_sweep.show_plan(found, way, console.results(no_color=no_color))
        return
    check(store, record=record)
    told = outlets(asked)
    in_allocation(chosen, way.slurm, nodes, found.plan.hosts, messages)
    directory = resume or prepare_directory(output, "sweep", force=force)
    with ConsoleWatcher(messages, verbose=verbose) as watcher:
        hurry = at_a_time if options.is_given(context, "at_a_time") else None
        run_sweep.carry_out(found, way, directory, watcher, budget_s=budget, at_a_time=hurry)
    code = run_sweep.conclude(found, directory, console.results(no_color=no_color))
    if record:
        keep(found.report(), store, directory=directory, quiet=quiet)
    if told:
        told.announce(found.report(), where=directory)
    raise typer.Exit(code)
