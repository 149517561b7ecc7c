"""An allocation of our own: outside of one, ``--launcher slurm`` has the command run in a new one.

The command asks for it by salloc, which runs the same command again inside, and gives the
allocation back when that ends, however it ends.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from ncdiag.cli import interrupts
from ncdiag.cluster.die_with_parent import die_with_parent
from ncdiag.cluster.launcher import LauncherOptions, SlurmOptions
from ncdiag.cluster.launchers.slurm import OWN_ALLOCATION, SlurmLauncher, unusable
from ncdiag.cluster.processes import ask
from ncdiag.cluster.slurm_job import made_with_no_kill
from ncdiag.cluster.slurm_nodes import JOB_VARIABLE, node_states
from ncdiag.cluster.slurm_step import site_arguments
from ncdiag.model.errors import ExitCode, UndecidedError, UsageError
from ncdiag.model.host import Host
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible

# salloc's own failures end with 1 unless told otherwise, which is ours for a faulty host.
_SALLOC_FAILED: Final = 113
_EXIT_ERROR = "SLURM_EXIT_ERROR"
_ANSWER_S = 60.0
_MAX_REASON = 300
_REFUSAL = re.compile(r"^(?:allocation failure: |srun: (?:error|fatal): )(?P<why>.*)", re.MULTILINE)
_START = re.compile(r"to start at (?P<when>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")
_TIME = "%Y-%m-%dT%H:%M:%S"  # Slurm's, which is local
_SILENT = re.compile(r"Unable to contact|configuration source|[Ss]ocket timed out")
_OPTION = re.compile(r"(?<!\S)(?P<short>-[A-Za-z])?(?:,\s*)?(?P<long>--[a-z][\w-]*)")


def in_allocation(
    launcher: str, slurm: SlurmOptions, nodes: str | None, hosts: Sequence[Host], messages: Console
) -> None:
    """Return inside an allocation; outside, run this command in one and exit with its code.

    For every command that starts things by a launcher: to be called once all that can be refused
    has been, and before anything is written, since what comes after it happens in a new process.
    ``launcher`` is the name of the one that was chosen; with another than slurm nothing is done.
    Inside an allocation that was made without ``--no-kill``, or may have been, a line says what
    that means. Raises UsageError where Slurm refuses the allocation, or where hosts are outside of
    the one around us, and UndecidedError where it cannot give it.
    """
    if launcher != SlurmLauncher.name:
        return
    if os.environ.get(JOB_VARIABLE):
        os.environ.pop(_EXIT_ERROR, None)  # what we set for salloc is not meant for its steps
        _tell_that_it_began()
        unusable(hosts)  # refused here, and not when the report's directory has been begun
        _warn_of_kill(os.environ[JOB_VARIABLE], messages)
        return
    if nodes == "-":
        raise UsageError(
            "--nodes - cannot be read again inside an allocation of our own: give a file"
        )
    arguments = _arguments(slurm, _obtainable(hosts, messages))
    _check(arguments, messages)
    raise typer.Exit(_run(arguments, quiet=messages.quiet))


def _tell_that_it_began() -> None:
    """Leave a mark for who has started us by salloc."""
    if mark := os.environ.get(OWN_ALLOCATION):
        with contextlib.suppress(OSError):
            Path(mark).touch()


def _warn_of_kill(job: str, messages: Console) -> None:
    no_kill = True if os.environ.get(OWN_ALLOCATION) else made_with_no_kill(job)
    if no_kill:
        return
    made = "was made" if no_kill is False else "may have been made"
    messages.print(
        f"Slurm job {visible(job)} {made} without --no-kill (salloc, sbatch): then the first node "
        "that fails ends it whole",
        soft_wrap=True,
    )


def _obtainable(hosts: Sequence[Host], messages: Console) -> list[str]:
    """The hosts that Slurm could give; raises UndecidedError where there are too few."""
    states = node_states(host.name for host in hosts)
    kept_back = {name: state for name, state in states.items() if state.not_allocated}
    for state in kept_back.values():
        messages.print(f"{state.name} is left out: {state}", soft_wrap=True)
    left = [host.name for host in hosts if host.name not in kept_back]
    if len(left) < 2:
        raise UndecidedError(
            f"Slurm can give {len(left)} of {len(hosts)} hosts, at least 2 are needed "
            "(sinfo -R tells why)"
        )
    return left


def _arguments(slurm: SlurmOptions, names: Sequence[str]) -> list[str]:
    """What both srun and salloc are told of the allocation."""
    arguments = [f"--nodes={len(names)}", f"--nodelist={fold(names)}", "--job-name=ncdiag"]
    # Whoever computes beside us would be measured as a slow host.
    arguments.append("--exclusive")
    for option, value in (
        ("partition", slurm.partition),
        ("account", slurm.account),
        ("time", slurm.time_limit),
    ):
        if value is not None:
            arguments.append(f"--{option}={value}")
    known = _options_of_salloc()
    options = LauncherOptions(python="", slurm=slurm)
    return [*arguments, *(one for one in site_arguments(options) if _option(one) in known)]


def _option(argument: str) -> str:
    return argument.partition("=")[0] if argument.startswith("--") else argument[:2]


def _options_of_salloc() -> frozenset[str]:
    """The options that salloc knows, with those of plugins; others are for srun alone."""
    if shutil.which("salloc") is None:
        raise UsageError("salloc is not installed (on Debian: apt-get install slurm-client)")
    done = ask(("salloc", "--help"), timeout_s=_ANSWER_S)
    if done.timed_out or done.code is None:
        why = done.error or f"no answer to --help within {_ANSWER_S:g} s"
        raise UndecidedError(f"salloc cannot be run: {visible(why)}")
    told = done.stdout.decode(errors="replace")
    return frozenset(
        option for found in _OPTION.finditer(told) for option in found.groups() if option
    )


def _check(arguments: Sequence[str], messages: Console) -> None:
    """Ask whether such an allocation can be at all, so that nobody waits for one that cannot."""
    done = ask(("srun", "--test-only", *arguments, "true"), timeout_s=_ANSWER_S)
    if done.timed_out or done.code is None:
        raise UndecidedError(f"Slurm does not answer within {_ANSWER_S:g} s")
    said_all = "\n".join(done.said)
    if done.code == 0:
        if (start := _START.search(said_all)) and start["when"] > time.strftime(_TIME):
            messages.print(f"Slurm expects to start it at {start['when']} (Ctrl-C gives it up)")
        return
    refusals = [match["why"] for match in _REFUSAL.finditer(said_all)]
    # It ends with a line that sums up, unless it has no words for it.
    said = [why for why in refusals if why != "No error"] or list(done.said) or ["no reason given"]
    why = visible(said[-1].strip())[:_MAX_REASON]
    if done.code < 0:
        raise UndecidedError(f"srun --test-only was killed by signal {-done.code}")
    if _SILENT.search(said_all):
        raise UndecidedError(f"Slurm does not answer: {why}")
    raise UsageError(f"Slurm refuses the allocation: {why} ({visible(' '.join(arguments))})")


def _run(arguments: Sequence[str], *, quiet: bool) -> int:
    """Run this command again under salloc; its exit code."""
    told = ("--quiet",) if quiet else ()
    # An allocation that Slurm takes back ends the command as an interrupt does.
    kept = ("--no-kill", "--kill-command=TERM")
    command = ("salloc", *kept, *told, *arguments, sys.executable, *sys.orig_argv[1:])
    with tempfile.TemporaryDirectory(prefix="ncdiag-") as folder:
        mark = Path(folder, "began")
        code = _await_salloc(command, mark)
        began = mark.exists()
    if interrupts.asked():
        return ExitCode.INTERRUPTED
    if code == _SALLOC_FAILED:
        raise UndecidedError("Slurm gave no allocation: what salloc said above tells why")
    if code in (ExitCode.DONE, ExitCode.WRONG) and not began:
        # Else whatever stands for salloc here would say that all hosts are well, or are not.
        raise UndecidedError(
            f"salloc ended with exit code {code} and did not run the command: nothing was measured"
        )
    return code if code >= 0 else ExitCode.UNDECIDED


def _await_salloc(command: Sequence[str], mark: Path) -> int:
    # In a session of its own: a Ctrl-C is for us alone, who pass on one signal. With no input,
    # since salloc would want its terminal for itself.
    salloc = subprocess.Popen(
        die_with_parent(command, by=signal.SIGTERM),
        env={**os.environ, OWN_ALLOCATION: str(mark), _EXIT_ERROR: str(_SALLOC_FAILED)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    while True:
        try:
            return salloc.wait()
        except KeyboardInterrupt:
            # It gives up waiting, or passes this on to the command; SIGINT it would ignore then.
            salloc.terminate()
