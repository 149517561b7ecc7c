"""What Slurm knows of its nodes, by ``scontrol -o show node``: a line a node in every version."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ncdiag.cluster.names import expand, parted
from ncdiag.cluster.processes import ask
from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible

# What Slurm calls an allocation; set in whatever runs inside one.
JOB_VARIABLE: Final = "SLURM_JOB_ID"
_NODES_VARIABLE = "SLURM_JOB_NODELIST"
# slurmctld answers within its MessageTimeout (10 s unless set), or it is not there.
_ANSWER_S = 30.0
# Node names that one scontrol is asked for; the kernel takes 128 KiB an argument.
_NAMES_AT_A_TIME = 1000

_FIELD = re.compile(r"(?:^|\s)(NodeName|NodeHostName|State)=(\S+)")
# Reason= is free text; what follows it in later versions is named.
_REASON = re.compile(
    r"\sReason=(?P<why>.*?)(?: \[[^\[\]]*@[^\[\]]*\])?\s*(?=$|\s(?:Comment|Extra|AdminComment)=)"
)
# Flags that Slurm's sinfo puts behind a state as one character.
_CANNOT_RUN: Final = frozenset(
    ("DOWN", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "FUTURE", "UNKNOWN")
)
_NOT_ALLOCATED: Final = _CANNOT_RUN | frozenset(
    ("DRAIN", "DRAINING", "DRAINED", "FAIL", "FAILING", "MAINT", "REBOOT_ISSUED")
)


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node: its state's words, as ``IDLE+DRAIN``, and the reason that was given for it.

    ``host_name`` is what the machine calls itself, which may differ from the node's name.
    """

    name: str
    state: str
    reason: str | None = None
    host_name: str | None = None

    @property
    def words(self) -> frozenset[str]:
        """The state and its flags."""
        return frozenset(self.state.rstrip("*~#!%$@^-").split("+"))

    @property
    def cannot_run(self) -> bool:
        """Whether no step can be started on it, though it is ours."""
        return bool(self.words & _CANNOT_RUN) or "*" in self.state

    @property
    def not_allocated(self) -> bool:
        """Whether no allocation can have it, so that a request which names it waits for ever."""
        return bool(self.words & _NOT_ALLOCATED) or "*" in self.state

    def __str__(self) -> str:
        said = f"Slurm says it is {visible(self.state.lower())}"
        return f"{said}: {visible(self.reason)}" if self.reason else said


def parse_nodes(text: str) -> dict[str, NodeState]:
    """The nodes of ``scontrol -o show node``; other lines are passed over."""
    found = {}
    for line in text.splitlines():
        # A reason may look like a field.
        fields = dict(_FIELD.findall(line.partition(" Reason=")[0]))
        if "NodeName" in fields and "State" in fields:
            reason = _REASON.search(line)
            name = fields["NodeName"]
            why = reason["why"] if reason else None
            found[name] = NodeState(name, fields["State"], why, fields.get("NodeHostName"))
    return found


def node_states(names: Iterable[str]) -> dict[str, NodeState]:
    """What Slurm says of these nodes; those it does not know, or cannot be asked for, are left out.

    Slurm that does not answer will say so itself to whatever is started next.
    """
    names = list(names)
    found: dict[str, NodeState] = {}
    for start in range(0, len(names), _NAMES_AT_A_TIME):
        part = ",".join(names[start : start + _NAMES_AT_A_TIME])
        found |= parse_nodes(scontrol("-o", "show", "node", part))
    return {name: found[name] for name in names if name in found}


def allocated_nodes(environment: Mapping[str, str] = os.environ) -> frozenset[str] | None:
    """The nodes of the allocation around us; ``None`` outside of one."""
    nodes = environment.get(_NODES_VARIABLE)
    if not environment.get(JOB_VARIABLE) or not nodes:
        return None
    try:
        return frozenset(name for entry in parted(nodes) for name in expand(entry))
    except UsageError as error:
        raise UsageError(f"{_NODES_VARIABLE}: {error}") from None


def scontrol(*arguments: str) -> str:
    """What it answers; nothing where it does not in time.

    It ends with 1 where it does not know one of several nodes.
    """
    done = ask(("scontrol", *arguments), timeout_s=_ANSWER_S)
    return "" if done.timed_out else done.stdout.decode(errors="replace")
