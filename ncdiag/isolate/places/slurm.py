"""Slurm: a node is drained, with a reason that says by whom and why.

What is drained, down, reserved or in maintenance for another reason is left alone. A host at a time
is changed: where one name of several is unknown, Slurm says that all failed and drains the others.
"""

from dataclasses import replace
from typing import Final

from ncdiag.cluster.slurm_nodes import NodeState, parse_nodes
from ncdiag.isolate.places.base import (
    MARK,
    Asked,
    LeftAloneError,
    Standing,
    asking,
    explained,
    told,
    with_aliases,
)
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState
from ncdiag.model.text import visible

# slurmctld answers within its MessageTimeout (10 s unless set), or it is not there.
_ANSWER_S: Final = 30.0
_NOT_INSTALLED: Final = (
    "scontrol is not installed here; run this where Slurm's own commands are, such as a login node"
)
# States and flags (node_state_string in src/common/slurm_protocol_defs.c of Slurm 22.05 to 24.11)
# of a node that nobody has taken out; with any other, or one of a later Slurm, it is left alone.
_RUNNING: Final = frozenset(("IDLE", "ALLOCATED", "MIXED", "COMPLETING", "PLANNED", "BLOCKED"))
_POWER: Final = frozenset(
    ("POWERING_UP", "POWER_UP", "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN")
)
_ABOUT: Final = frozenset(("CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "PERFCTRS", "NOT_RESPONDING"))
_IN_USE: Final = _RUNNING | _POWER | _ABOUT
_DRAINED: Final = frozenset(("DRAIN", "DRAINING", "DRAINED"))
# What Slurm says, and the cure; of the silent ones nobody knows whether anything was done.
_REFUSALS: Final = (
    ("Invalid user id", "this account may not change nodes: it takes an operator of Slurm or root"),
    (
        "ermission denied",
        "this account may not change nodes: it takes an operator of Slurm or root",
    ),
)
_SILENT: Final = (
    ("Unable to contact slurm controller", "slurmctld is not running, or not to be reached"),
    ("Could not establish a configuration source", "is SLURM_CONF set?"),
    ("DNS SRV lookup failed", "is SLURM_CONF set?"),
    ("Socket timed out", "slurmctld is too busy; try again"),
    ("Zero Bytes were transmitted", "slurmctld went away; try again"),
    ("authentication", "is munge running here?"),
    ("unge", "is munge running here?"),
)


class SlurmPlace:
    """The cluster that scontrol is told of."""

    key = "slurm"

    def ask(self) -> Asked:
        """How all nodes stand."""
        with asking():
            found = asked(_scontrol("show", "node", "--oneliner"))
        if not found.standings:
            raise UndecidedError("scontrol did not answer with nodes")
        return found

    def isolate(self, name: str, reason: str, run: str) -> None:  # noqa: ARG002 - is not kept there
        """Drain the node."""
        now = self._now(name)
        if now.state is PlaceState.OURS:
            return
        if now.state is not PlaceState.AVAILABLE:
            raise LeftAloneError(now.why or now.state.value)
        _scontrol("update", f"nodename={name}", "state=drain", f"reason={reason}")

    def release(self, name: str, reason: str) -> None:
        """Take the drain away, and nothing else: a node that is down for itself stays so."""
        now = self._now(name)
        if now.state is PlaceState.AVAILABLE:
            return
        if now.state is not PlaceState.OURS or now.reason != reason:
            raise LeftAloneError(f"changed since: {now.why or now.reason}")
        _scontrol("update", f"nodename={name}", "state=undrain")

    def _now(self, name: str) -> Standing:
        standing = asked(_scontrol("show", "node", "--oneliner", name)).standings.get(name)
        if standing is None:
            raise UsageError(f"Slurm no longer knows {visible(name)}")
        return standing


def asked(text: str) -> Asked:
    """The nodes of ``scontrol show node --oneliner``."""
    nodes = parse_nodes(text)
    more = ((node.host_name, name) for name, node in nodes.items() if node.host_name)
    return with_aliases({name: _standing(node) for name, node in nodes.items()}, more)


def _standing(node: NodeState) -> Standing:
    standing = Standing(state=PlaceState.AVAILABLE, name=node.name, reason=node.reason)
    if node.words & _DRAINED and (node.reason or "").startswith(MARK):
        return replace(standing, state=PlaceState.OURS)
    if node.words <= _IN_USE:
        return standing
    return replace(standing, state=PlaceState.THEIRS, why=f"{node}")


def _scontrol(*arguments: str) -> str:
    argv = ("scontrol", *arguments)
    try:
        return told(argv, _ANSWER_S, _NOT_INSTALLED).decode(errors="replace")
    except UsageError as error:
        raise explained(error, _REFUSALS, _SILENT) from None
