"""How the Slurm allocation around us was made, and what its steps are by default.

Slurm keeps whether a failed node ends a job to itself: neither scontrol nor the environment tells.
What does is the command that made it, where that can still be found.
"""

import contextlib
import os
import re
from pathlib import Path

from ncdiag.cluster.slurm_nodes import scontrol

_MAX_ANCESTORS = 64
# -k, also among other short options that take no value; its value "off" is Slurm's own.
_NO_KILL = re.compile(r"(?:-[HIKQsv]*k|--no-kill)")
_BARE = re.compile(r"-[A-Za-z]|--[a-z-]+")
_SUBMIT_LINE = re.compile(r"\sSubmitLine=(?P<line>.*?)(?=\s[A-Z]\w*=|$)", re.MULTILINE)
_MPI_DEFAULT = re.compile(r"^MpiDefault\s*=\s*(\S+)", re.MULTILINE)
_VARIABLES = ("SALLOC_NO_KILL", "SBATCH_NO_KILL")


def made_with_no_kill(job: str) -> bool | None:
    """Whether the allocation outlives a node that fails; ``None`` where nothing tells."""
    if any(name in os.environ for name in _VARIABLES):
        return True
    if words := _salloc_above_us():
        return asks_for_no_kill(words)
    if line := _SUBMIT_LINE.search(scontrol("-o", "show", "job", job)):
        return asks_for_no_kill(line["line"].split()[1:]) or None
    script = scontrol("write", "batch_script", job, "-")
    lines = [line.split()[1:] for line in script.splitlines() if line.startswith("#SBATCH")]
    return True if any(map(asks_for_no_kill, lines)) else None


def asks_for_no_kill(words: list[str]) -> bool:
    """Whether these arguments of salloc or sbatch do; those of the command after them say nothing.

    Which options take a value is not known here: a word after a bare option counts as one.
    """
    before = ""
    for word in words:
        if not word.startswith("-") and not _BARE.fullmatch(before):
            return False
        if _NO_KILL.fullmatch(word):
            return True
        before = word
    return False


def default_mpi() -> str | None:
    """How ranks find one another (PMI) where srun is not told; ``None`` if Slurm does not say."""
    if chosen := os.environ.get("SLURM_MPI_TYPE"):
        return chosen
    found = _MPI_DEFAULT.search(scontrol("show", "config"))
    return found[1] if found else None


def _salloc_above_us() -> list[str]:
    """The arguments of the salloc that we were started by, up to its command as far as told."""
    pid = os.getppid()
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            break
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(words[0]).name == "salloc":
                return words[1:]
            stat = Path(f"/proc/{pid}/stat").read_text()
            pid = int(stat.rpartition(")")[2].split()[1])
            continue
        break
    return []
