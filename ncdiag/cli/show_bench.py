"""``ncdiag bench --dry-run``: what would be run, and the commands that would start it."""

import os
import shlex

from rich.console import Console

from ncdiag.cli.run_bench import Bench
from ncdiag.cluster.launchers import RemoteJob
from ncdiag.cluster.launchers.slurm import SlurmLauncher
from ncdiag.cluster.slurm_nodes import JOB_VARIABLE
from ncdiag.measure.bench.nccl_tests import DEFAULT_SIZES
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_count

_SHOWN_COMMANDS = 4
# Which of them it is depends on what the hosts have.
_SIZES_OF_TORCH = "8 B to 8 GiB, x2; without GPUs 1 KiB to 64 MiB"


def show_plan(bench: Bench, console: Console) -> None:
    """Print the hosts, the sizes and the commands; raises UsageError where none can be started."""
    names = [host.name for host in bench.hosts]
    _line(console, "hosts", f"{len(names)}: {fold(names)}")
    ranks = _ranks_per_host(bench)
    _line(console, "ranks", f"{ranks} on each host" if ranks else "one for each GPU of a host")
    _line(console, "sizes", _sizes(bench))
    numbers = bench.scaling or (len(names),)
    times = "once" if bench.repeat == 1 else f"{bench.repeat} times"
    over = ", ".join(map(str, numbers[:-1])) + (" and " if numbers[1:] else "") + str(numbers[-1])
    hosts = "host" if numbers == (1,) else "hosts"
    _line(
        console,
        "measured",
        f"{bench.plan.collective} by {bench.engine}, {times} over {over} {hosts}",
    )
    launcher = bench.way.launcher_for(bench.hosts)
    if launcher.name == SlurmLauncher.name and JOB_VARIABLE not in os.environ:
        _line(console, "starts", "this command again, by salloc in an allocation of these hosts")
        return
    engine = bench.open()
    commands = launcher.launches(bench.hosts, RemoteJob(module=engine.first_module))
    why = f" ({found})" if (found := bench.way.why(bench.hosts)) else ""
    started = format_count(len(commands), "command")
    _line(console, "starts", f"{started} by the launcher {launcher.name}{why}:")
    for command in commands[:_SHOWN_COMMANDS]:
        console.print(f"  {shlex.join(command.argv)}", soft_wrap=True)
    if len(commands) > _SHOWN_COMMANDS:
        console.print(f"  and {len(commands) - _SHOWN_COMMANDS} more, one for each other host")
    job = engine.job(names[: numbers[-1]], ranks or 1)
    if job is not None:
        unknown = "" if ranks else ", here with one rank on each as their GPUs are not known yet"
        most = format_count(numbers[-1], "host")
        _line(console, "then", f"an MPI job over those that answer, as for {most}{unknown}:")
        console.print(f"  {shlex.join(job.argv)}", soft_wrap=True)


def _line(console: Console, name: str, text: str) -> None:
    console.print(f"{name:<10}{text}", soft_wrap=True)


def _ranks_per_host(bench: Bench) -> int | None:
    """How many ranks there will be; ``None`` until the hosts have said what GPUs they have."""
    if bench.plan.gpus_per_node is not None:
        return bench.plan.gpus_per_node
    counts = [host.gpus for host in bench.hosts]
    return None if None in counts else min(count for count in counts if count is not None)


def _sizes(bench: Bench) -> str:
    iterations = f"{format_count(bench.plan.iterations, 'iteration')} each"
    if bench.plan.sizes is None and bench.engine == "torch":
        return f"{_SIZES_OF_TORCH}; {iterations}"
    sizes = bench.plan.sizes or DEFAULT_SIZES
    if sizes.least_bytes == sizes.most_bytes:
        return f"{str(sizes).partition(' to ')[0]} alone; {iterations}"
    return f"{sizes} ({format_count(len(sizes.each()), 'size')}); {iterations}"
