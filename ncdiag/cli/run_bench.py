"""The steps of ``ncdiag bench``: check, run, judge, conclude."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from ncdiag.cli import console, interrupts
from ncdiag.cli.sweep_profile import variables_besides
from ncdiag.cli.way import Way
from ncdiag.diagnose.bench import judge
from ncdiag.expect.collective import CollectiveExpectation, expect_collective
from ncdiag.expect.machine import Machine
from ncdiag.expect.machine_of_facts import alike, machine_of_facts
from ncdiag.measure.bench import ENGINES, check_engine
from ncdiag.measure.bench.base import BenchEngine, BenchPlan
from ncdiag.model.bench import BenchCurve, BenchReport, BenchRun
from ncdiag.model.errors import ExitCode, NcdiagError, UsageError
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_duration
from ncdiag.model.verdict import Verdict
from ncdiag.model.versions import of_this_host
from ncdiag.report.bench import json_report
from ncdiag.report.bench.presentable import presentable
from ncdiag.report.bench.text import render_terminal
from ncdiag.report.bench.write import write_all

# A median needs no more, and the curve of each is read.
_MAX_HISTORY = 50
# A set of hosts with fewer in common is another fleet.
_ALIKE_SHARE = 0.5
# torch's processes have their GPU by this.
_OWN_VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
# A profile with these has other NICs used than those that a host shows.
_OF_NETWORK = frozenset({"NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_NET", "NCCL_NET_PLUGIN"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What the operator asked for; ``scaling`` are numbers of hosts, none for all at once."""

    hosts: tuple[Host, ...]
    way: Way
    engine: str
    plan: BenchPlan
    machine: Machine | None
    repeat: int
    scaling: tuple[int, ...] = ()
    faulty_below: float = 0.8
    profile: str | None = None
    store: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be expected; raises :class:`UsageError`, UndecidedError."""
        ranks = self.plan.gpus_per_node
        for number in self.scaling or (len(self.hosts),):
            if ranks is not None:
                self.expect(number, ranks)

    def open(self) -> BenchEngine:
        """What measures; raises :class:`UsageError` where it cannot be used."""
        return ENGINES[self.engine](self.hosts, self.way.launcher_for(self.hosts), self.plan)

    def expect(self, hosts: int, ranks_per_host: int) -> CollectiveExpectation | None:
        """What so many hosts should reach; ``None`` without a machine, and for one rank alone."""
        if self.machine is None or hosts * ranks_per_host < 2:
            return None
        return expect_collective(
            self.machine, self.plan.collective, hosts, gpus_per_node=ranks_per_host
        )


def choose_hosts(nodes: str | None, scaling: str | None, way: Way) -> tuple[Host, ...]:
    """The hosts of ``--nodes``, as many as ``--scaling`` needs; raises :class:`UsageError`."""
    return way.hosts(nodes, at_least=max(parse_scaling(scaling), default=1))


def parse_scaling(text: str | None) -> tuple[int, ...]:
    """``2,4,8`` in rising order; raises :class:`UsageError`."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        raise UsageError(f"--scaling takes numbers of hosts, as 2,4,8; not {visible(text[:80])!r}")
    numbers = sorted({int(part) for part in parts})
    if numbers[0] < 1:
        raise UsageError("--scaling takes numbers of hosts from 1 on")
    return tuple(numbers)


def find_machine(machine: str | None, topology: str | None) -> Machine | None:
    """The machine of the catalogue, or of the dump; raises :class:`UsageError`."""
    if machine is not None and topology is not None:
        raise UsageError("give --machine or --topology, not both")
    if machine is not None:
        from ncdiag.expect.hardware import find_machine as find

        return find(machine, dumps="--topology")
    if topology is None:
        return None
    from ncdiag.cli.topo.reading import read_dump
    from ncdiag.expect.machine_of_dump import machine_of_dump

    name = "standard input" if topology == "-" else Path(topology).name
    return machine_of_dump(read_dump(topology), name)


def variables_of(profile: str | None, engine: str, messages: Console) -> dict[str, str]:
    """The variables of ``profile``; raises :class:`UsageError`."""
    check_engine(engine)
    if profile is None:
        return {}
    own = _OWN_VARIABLES if engine == "torch" else frozenset()
    return variables_besides(own, profile, engine, messages)


@dataclass(slots=True)
class _Course:
    """What has come of a benchmark so far."""

    runs: list[BenchRun] = field(default_factory=list)
    facts: tuple[HostFacts, ...] = ()
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    whole: bool = True


def carry_out(
    bench: Bench, engine: BenchEngine, messages: Console, *, verbose: bool
) -> BenchReport:
    """Measure and judge; after an interrupt the report is of what is known so far."""
    began, began_s = datetime.now(UTC), time.monotonic()
    started = f"{began:%Y-%m-%dT%H:%M:%SZ}"
    course = _Course()
    _attempt(bench, engine, course, messages, verbose=verbose)
    bench = _with_yardstick(bench, engine, course)
    expects = engine.compares and bench.machine is not None
    judged = judge(
        course.runs,
        bench.plan.collective,
        expect=partial(_expect, bench, course) if expects else lambda _hosts, _ranks: None,
        faulty_below=bench.faulty_below,
        history=_history(bench, started, messages),
        whole=course.whole and not engine.unreachable and not course.interrupted,
    )
    return BenchReport(
        started=started,
        seconds=time.monotonic() - began_s,
        collective=bench.plan.collective.value,
        engine=bench.engine,
        launcher=bench.way.launcher_for(bench.hosts).name,
        verdict=judged.verdict,
        curves=judged.curves,
        findings=judged.findings,
        unreachable=dict(engine.unreachable),
        settings=_settings(bench, engine),
        versions={**of_this_host(("ncdiag",)), **engine.versions},
        notes=tuple(dict.fromkeys((*course.notes, *judged.notes))),
        interrupted=course.interrupted,
    )


def _attempt(
    bench: Bench, engine: BenchEngine, course: _Course, messages: Console, *, verbose: bool
) -> None:
    """Measure, and note in ``course`` why it came to an end early, if it did."""
    try:
        _measure(bench, engine, course, messages, verbose=verbose)
    except KeyboardInterrupt:
        course.interrupted = True
        course.runs += [engine.partial] if engine.partial else []
    except NcdiagError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        course.notes.append(f"{error}")
        course.whole = False
    finally:
        engine.close()


def _with_yardstick(bench: Bench, engine: BenchEngine, course: _Course) -> Bench:
    """``bench`` with the machine that the hosts say they are, where the operator named none."""
    if not engine.compares:
        if bench.machine is not None:
            course.notes.append(
                "measured over TCP between CPUs, which does not compare with what GPUs should reach"
            )
        return bench
    if bench.machine is not None or _OF_NETWORK.intersection(bench.plan.variables):
        return bench
    if not alike(course.facts):
        course.notes.append("the hosts are not alike in GPUs and the rates of their NICs")
    return replace(bench, machine=machine_of_facts(course.facts))


def _expect(
    bench: Bench, course: _Course, hosts: int, ranks_per_host: int
) -> CollectiveExpectation | None:
    """What to expect, as far as the ranks that the hosts turned out to have let it be told."""
    try:
        return bench.expect(hosts, ranks_per_host)
    except NcdiagError as error:
        course.notes.append(f"not compared with theory: {error}")
        return None


def _measure(
    bench: Bench, engine: BenchEngine, course: _Course, messages: Console, *, verbose: bool
) -> None:
    def on_change(host: str, text: str) -> None:
        if verbose:
            messages.print(f"{visible(host)}: {visible(text)}", soft_wrap=True)

    facts = engine.start(on_change)
    course.facts = tuple(facts.values())
    up = [host.name for host in bench.hosts if host.name in facts]
    for number in _numbers(bench, engine, course, len(up)):
        if not _measure_over(up[:number], bench, engine, course, messages):
            course.whole = False
            return


def _numbers(bench: Bench, engine: BenchEngine, course: _Course, up: int) -> Sequence[int]:
    """The numbers of hosts to measure, of those ``up``; what is left out is noted."""
    if up * engine.ranks_per_host < 2:
        least = "a collective needs two ranks; give more hosts, or --gpus-per-node"
        course.notes.append(least if up else "no host could be reached")
        course.whole = False
        return ()
    if not bench.scaling:
        return (up,)
    numbers = [number for number in bench.scaling if number * engine.ranks_per_host >= 2]
    possible = [number for number in numbers if number <= up]
    if len(possible) < len(bench.scaling):
        left_out = [number for number in bench.scaling if number not in possible]
        course.notes.append(
            f"not measured: {', '.join(map(str, left_out))} of --scaling, with "
            f"{format_count(up, 'host')} reached and {engine.ranks_per_host} ranks on each"
        )
        course.whole = False
    return possible


def _measure_over(
    hosts: Sequence[str], bench: Bench, engine: BenchEngine, course: _Course, messages: Console
) -> bool:
    """All repeats over ``hosts``; whether larger numbers of hosts are worth trying."""
    ranks = format_count(len(hosts) * engine.ranks_per_host, "rank")
    for repeat in range(1, bench.repeat + 1):
        if interrupts.asked():
            raise KeyboardInterrupt
        messages.print(
            f"{bench.plan.collective} over {ranks} on {format_count(len(hosts), 'host')}, "
            f"run {repeat} of {bench.repeat}",
            soft_wrap=True,
        )
        run = engine.run(hosts)
        course.runs.append(run)
        if run.error:
            messages.print(f"failed: {run.error}", soft_wrap=True)
            # What failed once costs its whole time again.
            return bool(run.benchmark and run.benchmark.rows)
    return True


def _history(bench: Bench, before: str, messages: Console) -> Sequence[BenchCurve]:
    """Earlier benchmarks of these hosts that found no fault, from the store if there is one."""
    from ncdiag.store.location import default_store
    from ncdiag.store.store import Store

    path = bench.store or default_store()
    if not path.exists():
        return ()
    try:
        with Store.open(path) as store:
            past = store.bench_history(
                bench.plan.collective.value, engine=bench.engine, before=before, last=_MAX_HISTORY
            )
    except NcdiagError as error:
        messages.print(f"no history: {error}", soft_wrap=True)
        return ()
    names = {host.name for host in bench.hosts}
    return [
        BenchCurve(
            hosts=one.hosts,
            ranks=one.ranks,
            points=one.points,
            plateau_busbw_gb_per_s=one.plateau_busbw_gb_per_s,
            plateau_from_bytes=one.plateau_from_bytes,
        )
        for one in past
        if one.verdict != Verdict.FAULTY
        and len(names.intersection(one.hosts)) >= _ALIKE_SHARE * len(one.hosts)
    ]


def _settings(bench: Bench, engine: BenchEngine) -> dict[str, str]:
    plan = bench.plan
    found = {
        "hosts": fold([host.name for host in bench.hosts]),
        "ranks on each host": f"{engine.ranks_per_host}",
        "sizes": f"{engine.sizes}",
        "iterations": f"{plan.iterations}",
        "repeats": f"{bench.repeat}",
        "faulty below": f"{bench.faulty_below:g} of what is expected",
        "timeout": format_duration(plan.timeout_s),
        "profile": bench.profile or "none",
    }
    if bench.machine is not None:
        found["machine"] = bench.machine.name
    if bench.scaling:
        found["scaling"] = ",".join(map(str, bench.scaling))
    return found


def conclude(report: BenchReport, directory: Path, out: Console, *, as_json: bool) -> ExitCode:
    """Write and print the report; the exit code that carries its verdict."""
    write_all(report, directory)
    if as_json:
        console.write(json_report.render(presentable(report)))
    else:
        render_terminal(report, out, directory)
    return ExitCode.INTERRUPTED if report.interrupted else report.verdict.exit_code
