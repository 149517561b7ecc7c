"""The steps of ``ncdiag sweep``: begin or take up, show the plan, carry it out, conclude."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from ncdiag.cli import interrupts
from ncdiag.cli.sweep_profile import check_unchanged
from ncdiag.cli.way import Way
from ncdiag.cluster.fabric import place_hosts
from ncdiag.cluster.fleet import FleetOptions
from ncdiag.cluster.inventory import check_hosts
from ncdiag.cluster.launchers import RemoteJob
from ncdiag.measure.engines import ENGINES, check_engine, open_engine
from ncdiag.measure.engines.base import EngineOptions, EngineSettings, Timing
from ncdiag.measure.journal import JOURNAL_NAME, Journal, Plan, drop_torn_line, read_journal
from ncdiag.measure.plan import plan_size
from ncdiag.measure.record import SweepRecord
from ncdiag.measure.sweep import ROUND_OVERHEAD_S, Sweep, Watcher
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.host import Host, HostDump
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_duration
from ncdiag.model.versions import of_this_host
from ncdiag.report.terminal import render_terminal
from ncdiag.report.write import write_all

_SHOWN_COMMANDS = 3
_SHOWN_LEAVES = 8
_SHOWN_VERSIONS = ("ncdiag", "msgspec")


def begin(
    hosts: Sequence[Host],
    way: Way,
    *,
    mode: str,
    engine: str,
    profile: str | None,
    variables: Mapping[str, str],
    seed: int,
    faulty_below: float,
    timing: Timing,
    budget_s: float | None,
    dumps: Sequence[HostDump] = (),
    rails: str = "turn",
    engine_settings: EngineSettings | None = None,
) -> SweepRecord:
    """The empty record of a new sweep; raises :class:`UsageError` for what cannot be used."""
    check_engine(engine)
    budget = "none" if budget_s is None else format_duration(budget_s)
    plan = Plan(
        started=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        hosts=tuple(hosts),
        mode=mode,
        engine=engine,
        launcher=way.launcher_for(hosts).name,
        seed=seed,
        faulty_below=faulty_below,
        timing=timing,
        versions=of_this_host((*_SHOWN_VERSIONS, *ENGINES[engine].packages)),
        settings={
            "faulty below": f"{faulty_below:g} of the yardstick",
            "warm-up": f"{timing.warmup_s:g} s a direction",
            "measured": f"{timing.measure_s:g} s a direction, windows of {timing.window_s:g} s",
            "budget": budget,
            "seed": str(seed),
            "profile": profile or "none",
            **ENGINES[engine].describe(engine_settings or EngineSettings()),
        },
        profile=profile,
        variables=dict(variables),
        dumps=tuple(dumps),
        rails=rails,
        engine_settings=engine_settings or EngineSettings(),
    )
    return SweepRecord.of([plan])


def choose_hosts(
    nodes: str | None, fabric: str | None, messages: Console, way: Way
) -> tuple[Host, ...]:
    """The hosts of ``--nodes`` with the leaves of ``--fabric``; says which of them have none.

    Raises :class:`UsageError` and, for a fabric that is cut short, :class:`UndecidedError`.
    """
    hosts = way.hosts(nodes, at_least=2)
    if fabric is None:
        return hosts
    placing = place_hosts(hosts, fabric)
    if placing.missing:
        messages.print(
            f"--fabric {visible(fabric)}: not in it, and without a leaf from it, "
            f"{len(placing.missing)} of {len(hosts)} hosts: {fold(placing.missing)}",
            soft_wrap=True,
        )
    return placing.hosts


def take_up(
    directory: Path, nodes: str | None, fabric: str | None, messages: Console, way: Way
) -> SweepRecord:
    """The record of an earlier sweep; raises :class:`UsageError` where hosts differ."""
    record = SweepRecord.of(read_journal(directory))
    check_hosts(record.plan.hosts)
    check_engine(record.plan.engine)
    check_unchanged(record.plan.profile, record.plan.variables, record.plan.engine)
    if nodes is None and fabric is not None:
        raise UsageError(
            f"--fabric goes with --nodes; the sweep in {directory} has its leaves: leave it out"
        )
    if nodes is not None and choose_hosts(nodes, fabric, messages, way) != record.plan.hosts:
        raise UsageError(
            f"--nodes names other hosts, or other attributes, than the sweep in {directory}; "
            "leave --nodes out to resume it, or start a new sweep"
        )
    return record


def show_plan(record: SweepRecord, way: Way, console: Console) -> None:
    """Print what would be measured, how long it would take, and the commands to start it."""
    plan = record.plan
    launcher = way.launcher_for(plan.hosts)
    rounds, pairs = plan_size(plan, record.rails)
    seconds = rounds * (plan.timing.pair_s + ROUND_OVERHEAD_S)
    names = [host.name for host in plan.hosts]
    console.print(f"hosts     {len(names)}: {fold(names)}", soft_wrap=True)
    leaves = Counter(host.leaf for host in plan.hosts if host.leaf is not None)
    if leaves:
        shown = [f"{leaf} ({count})" for leaf, count in leaves.most_common(_SHOWN_LEAVES)]
        more = f" and {len(leaves) - len(shown)} more" if len(leaves) > len(shown) else ""
        console.print(f"leaves    {len(leaves)}: {visible(', '.join(shown))}{more}", soft_wrap=True)
    measured = f"{format_count(rounds, 'round')}, {format_count(pairs, 'pair')}"
    console.print(f"measured  {measured}, {plan.mode}, engine {plan.engine}")
    console.print(f"takes     about {format_duration(seconds)}, plus start-up and retests")
    engine = ENGINES[plan.engine]
    commands = launcher.launches(plan.hosts, RemoteJob(module=engine.first_module))
    why = f" ({found})" if (found := way.why(plan.hosts)) else ""
    started = format_count(len(commands), "command")
    console.print(f"starts    {started} by the launcher {launcher.name}{why}:", soft_wrap=True)
    for command in commands[:_SHOWN_COMMANDS]:
        console.print(f"  {shlex.join(command.argv)}", soft_wrap=True)
    if len(commands) > _SHOWN_COMMANDS:
        console.print(f"  and {len(commands) - _SHOWN_COMMANDS} more, one for each other host")
    if then := engine.then(plan.engine_settings):
        console.print(f"then      {then}", soft_wrap=True)
    if engine.job:
        console.print(f"  {shlex.join(engine.job(plan.hosts, launcher).argv)}", soft_wrap=True)


def carry_out(
    record: SweepRecord,
    way: Way,
    directory: Path,
    watcher: Watcher,
    *,
    budget_s: float | None,
    at_a_time: int | None = None,
) -> None:
    """Measure; every result is in ``record`` and in the journal, also after an interrupt.

    ``at_a_time`` holds for this run, whatever was planned: one that is resumed may be in a hurry.
    """
    plan = record.plan
    settings = plan.engine_settings
    if at_a_time is not None:
        settings = replace(settings, at_a_time=at_a_time)
    fresh = not (directory / JOURNAL_NAME).exists()
    engine = open_engine(
        plan.engine,
        plan.hosts,
        way.launcher_for(plan.hosts),
        EngineOptions(
            timing=plan.timing,
            settings=settings,
            fleet=FleetOptions(driver_address=way.driver_address),
            variables=plan.variables,
        ),
    )
    if not fresh:
        drop_torn_line(directory)
    with Journal(directory) as journal:
        if fresh:
            journal.append([plan])
        try:
            Sweep(
                record,
                engine,
                journal,
                watcher,
                budget_s=budget_s,
                is_stopped=interrupts.asked,
            ).run()
        except KeyboardInterrupt:
            record.interrupted = True  # a second one can have cut off the line that says so


def conclude(record: SweepRecord, directory: Path, console: Console) -> ExitCode:
    """Write and print the report; the exit code that carries its verdict."""
    report = record.report()
    write_all(report, directory)
    render_terminal(report, console, directory)
    return ExitCode.INTERRUPTED if report.interrupted else report.diagnosis.verdict.exit_code
