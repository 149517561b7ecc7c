"""Why an MPI job ended, in one line, from what its process manager said of it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from ncdiag.measure.engines.mpi.job import JobEnded
from ncdiag.model.text import visible

_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Death:
    """A line that names the host where a process of the job died; ``host`` is a group of it.

    ``sample`` is a line that must match, ``near_miss`` one that must not.
    """

    pattern: str
    sample: str
    near_miss: str


DEATHS: Final = (
    # MPICH 3 to 5 and Intel MPI, which adds ranks and names.
    Death(
        r"PID \d+ RUNNING AT (?P<host>\S+)",
        "=   PID 5126 RUNNING AT h3",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    ),
    # Open MPI 3 to 5; the last calls it prterun.
    Death(
        r"process rank \d+ with PID \d+ on node (?P<host>\S+) exited",
        "mpirun noticed that process rank 2 with PID 0 on node h3 exited on signal 9 (Killed).",
        "mpirun noticed that the job aborted, but has no info as to the process",
    ),
    # Open MPI where its daemon on a host is lost.
    Death(
        r"^\s*remote host:\s+(?P<host>\S+)",
        "  Remote host: h3",
        "  Local host:  h1",
    ),
    # Slurm.
    Death(
        r"srun: error: (?P<host>[\w.\-]+): task \d+: (?:Killed|Exited|Aborted|Segm)",
        "srun: error: h3: task 2: Killed",
        "srun: error: Unable to allocate resources: Invalid account",
    ),
)
# A process that ended itself by a fault in its code, which MPI's is where a partner is lost.
_CRASHED = re.compile(
    r"^=\s+EXIT CODE: (?:4|6|7|8|11)$|exited on signal (?:4|6|7|8|11)\b"
    r"|: task \d+: (?:Aborted|Bus error|Floating point|Illegal instr|Segmentation)"
)
# MPI itself gave up: every process of the job may say so, and which of them did first is chance.
_GAVE_UP = re.compile(r"^Abort\(|Fatal error in|MPI_ABORT was invoked|\bMPI_Init\w* failed")
# What tells more than the last line does, which is about another rank or in other words.
_TELLING = re.compile(r"network device '[^']*' is not available")
# What says nothing of the reason.
_FILLER = re.compile(
    r"^[\s=*\-]*$|^=\s+(?:BAD TERMINATION|PID \d|EXIT CODE|CLEANING UP|YOU CAN IGNORE)"
    r"|EXIT STRING|Fatal error in|Press Ctrl-C"
    r"|^srun: (?!error: |fatal: )|^srun: error: \S+: tasks? [\d,-]+: "
    r"|^slurmstepd\S*: error: \*\*\* (?:STEP|JOB) "
)

# Where in its own code a process manager noticed: better than nothing.
_INTERNAL = re.compile(r"^\[(?:mpiexec|proxy)[@:]")


def mpi_gave_up(said: Sequence[str]) -> bool:
    """Whether MPI ended the job by itself, with an error of its own."""
    return any(_GAVE_UP.search(line) for line in said)


@dataclass(frozen=True, slots=True)
class Dead:
    """The host whose process is said to have died first, and whether it crashed.

    One that crashed may have done so because its partner's died, of which nothing is said then.
    """

    host: str
    crashed: bool


def who_died(said: Sequence[str], hosts: Collection[str]) -> Dead | None:
    """The host whose process died and took the job along, if it was said."""
    for number, line in enumerate(said):
        for death in DEATHS:
            match = re.search(death.pattern, line, re.IGNORECASE)
            if match and (host := _known(match["host"].rstrip(".,"), hosts)):
                # Hydra tells the exit code a line later, the others in the same.
                about = (line, *(more for more in said[number + 1 :][:1] if more.startswith("=")))
                return Dead(host, crashed=any(map(_CRASHED.search, about)))
    return None


def why_ended(ended: JobEnded) -> str:
    """What its last words say, else its exit code."""
    lines = [line.strip() for line in ended.said if not _FILLER.search(line)]
    for line in lines:
        if found := _TELLING.search(line):
            return visible(line[found.start() :])[:_MAX_TEXT]
    plain = [line for line in lines if not _INTERNAL.search(line)]
    if plain or lines:
        return visible((plain or lines)[-1])[:_MAX_TEXT]
    return f"it ended with exit code {ended.code}"


def _known(name: str, hosts: Collection[str]) -> str | None:
    """The host of this name, where one of the two may be the short form of the other."""
    if name in hosts:
        return name
    short = name.partition(".")[0]
    alike = [host for host in hosts if host.partition(".")[0] == short]
    return alike[0] if len(alike) == 1 else None
