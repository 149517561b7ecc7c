"""The steps of ``ncdiag burn-in``: plan, show the plan, carry it out, hand over."""

import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console

from ncdiag.cli import interrupts
from ncdiag.cli.progress import ConsoleWatcher
from ncdiag.cli.sweep_profile import variables_for
from ncdiag.cli.way import Way
from ncdiag.cluster.launchers import RemoteJob
from ncdiag.diagnose.burn_in import conclude
from ncdiag.measure.burn_in.plan import LEVEL_BUDGET_S, BurnInPlan, Level, allot, measuring_s
from ncdiag.measure.burn_in.result import BurnInResult
from ncdiag.measure.engines import ENGINES
from ncdiag.model.burn_in import BurnInReport, Stage
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_duration
from ncdiag.model.versions import of_this_host

_ENGINE: Final = "torch"
_SHOWN_COMMANDS: Final = 3
_SHOWN_LEAVES: Final = 8
_SHOWN_VERSIONS: Final = ("ncdiag", "torch")


def check_engine(engine: str) -> None:
    """Refuse an engine that cannot measure all stages; raises :class:`UsageError`."""
    if engine != _ENGINE:
        raise UsageError(
            f"--engine {visible(engine)} cannot do all stages of a burn-in, only {_ENGINE} can; "
            "leave it out, and use ncdiag sweep or ncdiag bench with the engine"
        )


def begin(
    hosts: Sequence[Host],
    way: Way,
    *,
    need: int | None,
    spares: int,
    level: str,
    budget_s: float | None,
    duration_s: float | None,
    seed: int,
    faulty_below: float,
    profile: str | None,
    messages: Console,
) -> BurnInPlan:
    """What will be done; raises :class:`UsageError` for what cannot be."""
    _check_need(need, len(hosts))
    _check_times(budget_s, duration_s)
    chosen = Level(level)
    pass_s = budget_s or min(LEVEL_BUDGET_S[chosen], duration_s or LEVEL_BUDGET_S[chosen])
    launcher = way.launcher_for(hosts).name
    return BurnInPlan(
        hosts=tuple(hosts),
        level=chosen,
        need=need or len(hosts),
        spares=spares,
        budget_s=pass_s,
        duration_s=duration_s,
        started=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        seed=seed,
        faulty_below=faulty_below,
        variables=variables_for(profile, _ENGINE, messages),
        launcher=launcher,
        profile=profile,
        settings={
            "budget": _budget(pass_s, duration_s),
            "launcher": launcher,
            **_settings(faulty_below, seed, profile),
        },
        versions=of_this_host(_SHOWN_VERSIONS),
    )


def _check_need(need: int | None, hosts: int) -> None:
    if need is not None and need > hosts:
        raise UsageError(
            f"--need {need} is more than the {format_count(hosts, 'host')} of --nodes; "
            "give more hosts, or need fewer"
        )


def _check_times(budget_s: float | None, duration_s: float | None) -> None:
    if budget_s is not None and duration_s is not None and budget_s > duration_s:
        raise UsageError(
            "--budget is what one pass may take, and --duration how long passes are repeated: "
            f"{format_duration(budget_s)} is more than {format_duration(duration_s)}"
        )


def _settings(faulty_below: float, seed: int, profile: str | None) -> dict[str, str]:
    return {
        "engine": _ENGINE,
        "faulty below": f"{faulty_below:g} of the yardstick",
        "seed": str(seed),
        "profile": profile or "none",
    }


def _budget(pass_s: float, duration_s: float | None) -> str:
    repeated = f", repeated for {format_duration(duration_s)}" if duration_s else ""
    return f"{format_duration(pass_s)} a pass{repeated}"


def show_plan(plan: BurnInPlan, way: Way, console: Console) -> None:
    """Print the stages with what each may take, and the commands to start it."""
    launcher = way.launcher_for(plan.hosts)
    names = [host.name for host in plan.hosts]
    _line(console, "hosts", f"{len(names)}: {fold(names)}")
    leaves = Counter(host.leaf for host in plan.hosts if host.leaf is not None)
    if leaves:
        shown = [f"{leaf} ({count})" for leaf, count in leaves.most_common(_SHOWN_LEAVES)]
        more = f" and {len(leaves) - len(shown)} more" if len(leaves) > len(shown) else ""
        _line(console, "leaves", f"{len(leaves)}: {visible(', '.join(shown))}{more}")
    _line(console, "needs", f"{plan.need} good, and {format_count(plan.spares, 'spare')}")
    _line(console, "level", f"{plan.level}, {plan.settings['budget']}")
    _line(console, "stages", "each at most, and what one leaves over goes to those after it:")
    for stage, seconds in _shares(plan):
        share = "no time is left for it" if seconds is None else format_duration(seconds)
        console.print(f"  {stage:<12}{share}", soft_wrap=True)
    commands = launcher.launches(plan.hosts, RemoteJob(module=ENGINES[_ENGINE].first_module))
    why = f" ({found})" if (found := way.why(plan.hosts)) else ""
    started = format_count(len(commands), "command")
    _line(console, "starts", f"{started} by the launcher {launcher.name}{why}:")
    for command in commands[:_SHOWN_COMMANDS]:
        console.print(f"  {shlex.join(command.argv)}", soft_wrap=True)
    if len(commands) > _SHOWN_COMMANDS:
        console.print(f"  and {len(commands) - _SHOWN_COMMANDS} more, one for each other host")


def _line(console: Console, name: str, text: str) -> None:
    console.print(f"{name:<10}{text}", soft_wrap=True)


def _shares(plan: BurnInPlan) -> list[tuple[Stage, float | None]]:
    """Each stage with the seconds it gets where those before it use up theirs."""
    stages = list(Stage)
    left_s = measuring_s(plan.budget_s)
    shares = []
    for number, stage in enumerate(stages, start=1):
        seconds = allot(plan.level, stage, stages[number:], left_s)
        left_s -= seconds or 0.0
        shares.append((stage, seconds))
    return shares


def carry_out(
    plan: BurnInPlan, way: Way, directory: Path, messages: Console, *, verbose: bool
) -> BurnInReport:
    """Measure and conclude; after an interrupt the report is of what is known so far."""
    from ncdiag.measure.burn_in.burn_in import BurnIn

    with ConsoleWatcher(messages, verbose=verbose) as watcher:
        result = BurnIn(
            plan,
            way.launcher_for(plan.hosts),
            directory,
            watcher,
            is_stopped=interrupts.asked,
            driver_address=way.driver_address,
        ).run()
    return report_of(plan, result)


def report_of(plan: BurnInPlan, result: BurnInResult) -> BurnInReport:
    """What is concluded of ``result``, with what was asked for."""
    sweep = result.sweep
    found = conclude(
        plan.hosts,
        result.stages,
        None if sweep is None else sweep.diagnosis,
        need=plan.need,
        spares=plan.spares,
    )
    return BurnInReport(
        started=result.started,
        seconds=result.seconds,
        level=plan.level,
        need=plan.need,
        spares_wanted=plan.spares,
        verdict=found.verdict,
        confidence=found.confidence,
        hosts=found.hosts,
        stages=result.stages,
        chosen=found.chosen,
        spares=found.spares,
        left=found.left,
        isolate=found.isolate,
        leaves=found.leaves,
        passes=result.passes,
        sweep=sweep,
        health=result.health,
        settings=dict(plan.settings),
        versions={**plan.versions, **result.versions},
        notes=tuple(dict.fromkeys((*found.notes, *result.notes))),
        interrupted=result.interrupted,
    )


def record(report: BurnInReport, directory: Path, store: Path | None, *, quiet: bool) -> None:
    """Keep what the report says of hosts as evidence; the same run counts once."""
    from ncdiag.cli.keeping import keep_evidence
    from ncdiag.health.checks.table import CHECKS
    from ncdiag.isolate.evidence.of_burn_in import of_burn_in
    from ncdiag.isolate.evidence.times import run_name

    run = run_name("burn-in", report.started, [host.name for host in report.hosts])
    pieces = of_burn_in(report, run, CHECKS, where=str(directory.absolute()))
    keep_evidence(pieces, store, runs=(run,), quiet=quiet)
