"""Why a host did not come up, in one line, from what the command that should start it said.

Exit codes tell little: ssh ends with 255 for all its own failures, else with the code of the
remote command. The texts are those of OpenSSH 8 to 10, dash, bash and CPython; a test walks the
tables.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ncdiag.model.text import visible

_MAX_REASON = 300
# What tells why is shorter by far; searching garbage takes time, and all hosts wait for it.
_MAX_LINE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Reason:
    """A line that tells why: ``told`` may use the pattern's groups.

    ``sample`` is a line that must match, ``near_miss`` one that must not.
    """

    pattern: str
    told: str
    sample: str
    near_miss: str


# What slurmstepd says when Slurm, or somebody through it, ends a step.
_TAKEN_BACK: Final = (
    Reason(
        r"(?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+ DUE TO TIME LIMIT",
        "Slurm ended it: the time limit of the allocation is over",
        "slurmstepd: error: *** STEP 5.0 ON h1 CANCELLED AT 2026-11-30T11:40:20 DUE TO TIME LIMIT "
        "***",
        "slurmstepd: error: *** STEP 5.0 ON h1 CANCELLED AT 2026-11-30T11:40:20 ***",
    ),
    Reason(
        r"(?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+ DUE TO (?P<why>[A-Z ]+)",
        "Slurm ended it, due to {why}",
        "slurmstepd: error: *** JOB 5 ON h1 CANCELLED AT 2026-11-30T11:40:20 DUE TO PREEMPTION ***",
        "slurmstepd: error: *** STEP 5.0 ON h1 CANCELLED AT 2026-11-30T11:40:20 ***",
    ),
    Reason(
        r"(?:STEP|JOB) \S+ ON \S+ CANCELLED AT ",
        "Slurm ended it (scancel)",
        "slurmstepd: error: *** STEP 5.0 ON h1 CANCELLED AT 2026-11-30T11:40:20 ***",
        "srun: Force Terminated StepId=15.2",
    ),
)

# In order: the first row that matches any line gives the reason, so what is said by the host comes
# before what ssh adds to it.
NOT_STARTED: Final = (
    Reason(
        r"No module named '?ncdiag\.",
        "the ncdiag there is not of this version: install the same for its --remote-python",
        "ModuleNotFoundError: No module named 'ncdiag.cluster.fleet'",
        "ModuleNotFoundError: No module named 'ncdiag'",
    ),
    Reason(
        r"No module named '?ncdiag\b",
        "no ncdiag there: install it for the Python of --remote-python",
        "/usr/bin/python3: Error while finding module specification for "
        "'ncdiag.cluster.fleet.worker' (ModuleNotFoundError: No module named 'ncdiag')",
        "No module named 'ncdiagnose'",
    ),
    Reason(
        r"No module named '?(?P<module>[\w.]+)",
        "the Python there lacks {module}: install ncdiag with all it needs",
        "ModuleNotFoundError: No module named 'distributed'",
        "No module: distributed",
    ),
    Reason(
        r"[Uu]nknown option:? -P",
        "the Python there is older than 3.11 (--remote-python names another)",
        "Unknown option: -P",
        "unknown option -- y",
    ),
    Reason(
        r"User \"(?P<user>[^\"]+)\" cannot create resource \"pods/exec\"",
        "permission denied: {user} may not start anything in pods (create of pods/exec)",
        'Error from server (Forbidden): pods "p1" is forbidden: User "ops" cannot create resource '
        '"pods/exec" in API group "" in the namespace "ai"',
        'Error from server (Forbidden): pods is forbidden: User "ops" cannot list resource "pods"',
    ),
    Reason(
        r"container (?P<container>\S+) (?:is not valid for|not found in) pod (?P<pod>\S+)",
        "its pod has no container {container} (--container)",
        "Error from server (BadRequest): container gpu is not valid for pod p1",
        "Defaulted container main out of: main, sidecar",
    ),
    Reason(
        r"pods \"(?P<pod>[^\"]+)\" not found",
        "its pod {pod} is gone",
        'Error from server (NotFound): pods "p1" not found',
        'Error from server (NotFound): namespaces "ai" not found',
    ),
    Reason(
        r"exec: (?P<python>[^:]+): ",
        "no python there: {python} cannot be run (--remote-python names another)",
        "bash: line 1: exec: /root/venv/bin/python: cannot execute: Permission denied",
        "ops@gpu1: Permission denied (publickey).",
    ),
    Reason(
        r"(?<!\S)(?P<python>\S*python\S*): (?:command )?(?:[Nn]o such file|not found)",
        "no python there: {python} is not found (--remote-python names another)",
        "bash: line 1: /opt/venv/bin/python: No such file or directory",
        "python: can't open file 'x.py': [Errno 2] No such file or directory",
    ),
    Reason(
        r": (?:can(?:not|'t) open )?(?P<file>[^:]+): No such file",
        "no such file there: {file} (--remote-setup)",
        "sh: 1: .: cannot open ./setup.sh: No such file",
        "sh: 1: exec: /opt/python: not found",
    ),
    Reason(
        r"Could not resolve hostname (?P<name>\S+?):",
        "unknown name: {name} does not resolve",
        "ssh: Could not resolve hostname gpu9: Name or service not known",
        "resolve hostname gpu9",
    ),
    Reason(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "host key changed: remove the old one with ssh-keygen -R if that is right",
        "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",
        "Host key verification failed.",
    ),
    Reason(
        r"Host key verification failed|host key is known for",
        "host key unknown: add it to known_hosts (ssh to it once, or ssh-keyscan)",
        "Host key verification failed.",
        "Warning: Permanently added '10.0.0.1' (ED25519) to the list of known hosts.",
    ),
    Reason(
        r"Permission denied \((?P<methods>[^)]*(?:password|keyboard-interactive)[^)]*)\)",
        "permission denied: ssh would ask for a password (give it a key: ssh-copy-id)",
        "ops@gpu1: Permission denied (publickey,password).",
        "ops@gpu1: Permission denied (publickey).",
    ),
    Reason(
        r"Permission denied \(|Too many authentication failures",
        "permission denied: no key of ours is accepted there",
        "ops@gpu1: Permission denied (publickey).",
        "cat: x: Permission denied",
    ),
    Reason(
        r"Bad configuration option|Can't open user config file|[Cc]ommand-line.*(?:Bad|bad) ",
        "ssh does not accept its configuration or --ssh-option: {line}",
        "command-line: line 0: Bad configuration option: proxyjmp",
        "debug1: Reading configuration data /etc/ssh/ssh_config",
    ),
    Reason(
        r"timed out during banner exchange|Connection to \S+ timed out during",
        "timed out: it accepts connections, but its sshd does not answer",
        "Connection timed out during banner exchange",
        "ssh: connect to host gpu1 port 22: Connection timed out",
    ),
    Reason(
        r"port \d+: (?:Connection|Operation) timed out|^Connection timed out",
        "timed out: nothing answers there",
        "ssh: connect to host gpu1 port 22: Connection timed out",
        "timed out",
    ),
    Reason(
        r"port (?P<port>\d+): Connection refused",
        "refused: no sshd listens on port {port}",
        "ssh: connect to host gpu1 port 22: Connection refused",
        "connection was refused",
    ),
    Reason(
        r"No route to host|Network is unreachable|Host is down",
        "no route: it is down, or its link is",
        "ssh: connect to host 10.0.0.8 port 22: No route to host",
        "no route",
    ),
    Reason(
        r"kex_exchange_identification|Connection (?:reset|closed) by|reset by peer",
        "its sshd closed the connection (a firewall, or MaxStartups)",
        "kex_exchange_identification: Connection closed by remote host",
        "Connection to gpu1 established",
    ),
    Reason(
        r"(?:account is (?:currently )?not available|nologin)",
        "this account may not log in there",
        "This account is currently not available.",
        "account is available",
    ),
    Reason(
        r"srun: error: .*(?P<why>[Rr]equested node configuration is not available|"
        r"Required node not available.*)",
        "Slurm cannot start a step on these nodes: {why} (scontrol show node tells)",
        "srun: error: Unable to create step for job 15: Requested node configuration is not "
        "available",
        "srun: Requested partition configuration not available now",
    ),
    Reason(
        r"srun: error: Unable to create step for job \S+: (?P<why>.*)",
        "Slurm refuses the step: {why}",
        "srun: error: Unable to create step for job 14: More processors requested than permitted",
        "srun: Job 14 step creation temporarily disabled, retrying",
    ),
    Reason(
        r"srun: error: Task launch for \S+ failed on node \S+: (?P<why>.*)",
        "its slurmd did not take the task: {why}",
        "srun: error: Task launch for StepId=15.3 failed on node h3: Communication connection "
        "failure",
        "srun: error: Application launch failed: Communication connection failure",
    ),
    Reason(
        r"srun: (?:error|fatal): .*(?P<why>Unable to contact slurm controller.*|"
        r"Could not establish a configuration source)",
        "Slurm does not answer: {why}",
        "srun: error: Unable to confirm allocation for job 5: Unable to contact slurm controller "
        "(connect failure)",
        "srun: error: h3: task 1: Killed",
    ),
    Reason(
        r"srun: error: Unable to confirm allocation for job \S+: (?P<why>.*)",
        "the Slurm allocation is over: {why}",
        "srun: error: Unable to confirm allocation for job 5: Invalid job id specified",
        "srun: error: Unable to create step for job 5: Invalid job id specified",
    ),
    Reason(
        r"srun: error: Slurm job \S+ has expired",
        "the Slurm allocation is over",
        "srun: error: Slurm job 5 has expired",
        "srun: error: Slurm job 5 queued and waiting for resources",
    ),
    Reason(
        r"srun: (?:(?:error|fatal): (?P<why>.*(?:[Ii]nvalid|[Ii]llegal|[Bb]ad) .*)|"
        r"(?P<option>unrecognized option .*|invalid option .*))",
        "srun does not accept its arguments (--srun-arg): {why}{option}",
        "srun: unrecognized option '--gress=gpu:8'",
        "srun: error: h3: task 2: Exited with exit code 2",
    ),
    *_TAKEN_BACK,
)

# What ssh or srun says when what worked ends.
LOST: Final = (
    Reason(
        r"Timeout, server \S+ not responding",
        "its connection timed out (down, or its link is)",
        "Timeout, server gpu1 not responding.",
        "Timeout",
    ),
    Reason(
        r"Connection to \S+ closed by remote host|client_loop: |Connection reset",
        "its connection was closed",
        "Connection to gpu1 closed by remote host.",
        "Connection to gpu1 closed.",
    ),
    Reason(
        r"srun: error: Node failure on ",
        "Slurm took its node for failed",
        "srun: error: Node failure on h3",
        "srun: error: h3: task 1: Killed",
    ),
    *_TAKEN_BACK,
    Reason(
        r"srun: error: \S+: tasks? [\d,-]+: (?P<how>\S.*)",
        "worker ended ({how})",
        "srun: error: h3: task 2: Exited with exit code 127",
        "srun: error: h3 exited",
    ),
)

# What is said beside the reason.
_NOISE = re.compile(
    r"^(?:Warning: |debug\d: |\*\* |@+|\s*$)|^Connection to \S+ closed\.$"
    # srun's own words about a task's end, which the task has mostly told better.
    r"|^srun: (?!error: |fatal: )|^srun: error: \S+: tasks? [\d,-]+: "
    r"|couldn't chdir to "
)
# How srun tells of the end of a task, while others may go on.
_TASK_ENDED = re.compile(r"^srun: error: \S+: tasks? [\d,-]+: ")
# Slurm ends the whole step where one node does not take its task.
_NOT_LAUNCHED = re.compile(r"^srun: error: Task launch for \S+ failed on node ")


def why_not_started(returncode: int, lines: Sequence[str]) -> str:
    """The reason in one line; ``lines`` are what the command wrote to standard error."""
    known = _look_up(NOT_STARTED, lines)
    if known:
        return known
    said = [line.strip() for line in lines if not _NOISE.search(line)]
    if said:
        return visible(said[-1])[:_MAX_REASON]
    if over := _look_up(LOST, lines):
        return over
    return f"its start ended {ended(returncode)} and said nothing"


def why_lost(returncode: int | None, lines: Sequence[str]) -> str:
    """The reason in one line; ``returncode`` is ``None`` while the command still runs."""
    known = _look_up(LOST, lines)
    if known:
        return known
    return "worker ended" if returncode is None else f"worker ended ({ended(returncode)})"


def tells_of_an_end(line: str) -> bool:
    """Whether the launcher says by this line that a host's process is over."""
    return _TASK_ENDED.match(line) is not None


def tells_of_no_launch(line: str) -> bool:
    """Whether the launcher gave up on all hosts because of those that this line names."""
    return _NOT_LAUNCHED.match(line) is not None


def ended(returncode: int) -> str:
    """How a process ended, after subprocess's rule for signals."""
    return f"by signal {-returncode}" if returncode < 0 else f"with exit code {returncode}"


def _look_up(table: Sequence[Reason], lines: Sequence[str]) -> str | None:
    beginnings = [line[:_MAX_LINE_CHARS] for line in lines]
    for row in table:
        for line in beginnings:
            if match := re.search(row.pattern, line):
                found = {name: visible(text or "") for name, text in match.groupdict().items()}
                told = row.told.format(line=visible(line.strip()), **found)
                return told[:_MAX_REASON]
    return None
