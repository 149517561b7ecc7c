"""Whether a topology of Slurm is one that was broken off: what its last lines leave open."""

import re
from collections.abc import Sequence

from ncdiag.model.topology import SlurmSwitch, SlurmTopology, TruncatedTopologyError
from ncdiag.read.topology.text import quoted

_DIGITS = re.compile(r"\d+")


def refuse_cut_topology(topology: SlurmTopology, *, ended: bool) -> None:
    """Raise ``TruncatedTopologyError`` where lines that followed would settle what is missing.

    ``ended`` is false where the text breaks off in a line: its last name may be half a one then,
    and its list half a list.
    """
    last = topology.switches[-1]
    undefined = _undefined(topology.switches)
    if undefined and not any(switch.nodes for switch in topology.switches):
        raise _cut(f"before the switch {quoted(undefined[0])}")
    if ended:
        return
    named = dict.fromkeys(name for one in topology.switches for name in one.switches)
    # Where switches stand above those below them, the next lines are those of the next names.
    following = list(named)[list(named).index(last.name) :] if last.name in named else []
    if missing := [name for name in following if name in undefined]:
        raise _cut(f"before the switch {quoted(missing[0])}")
    if last.switches and _is_half_of_one(last.switches[-1], topology.switches, undefined):
        raise _cut(f"with {quoted(last.switches[-1])}, which is no switch")
    if last.switches and len(_roots(topology.switches)) > 1:
        raise _cut(f"with the switches of {quoted(last.name)}, and others are below none")
    if last.nodes and _is_half_a_name(last.nodes[-1], topology.switches):
        raise _cut(f"with {quoted(last.nodes[-1])}")
    sizes = topology.block_sizes
    if list(sizes) != sorted(sizes):
        raise _cut(f"with the block size {sizes[-1]}")


def _cut(what: str) -> TruncatedTopologyError:
    return TruncatedTopologyError(f"cut short: it ends {what}")


def _undefined(switches: Sequence[SlurmSwitch]) -> list[str]:
    """The switches without a line, in the order in which others name them."""
    defined = {switch.name for switch in switches}
    named = dict.fromkeys(name for switch in switches for name in switch.switches)
    return [name for name in named if name not in defined]


def _roots(switches: Sequence[SlurmSwitch]) -> list[str]:
    below = {name for switch in switches for name in switch.switches}
    return [switch.name for switch in switches if switch.name not in below]


def _is_half_of_one(name: str, switches: Sequence[SlurmSwitch], undefined: Sequence[str]) -> bool:
    """Whether no switch has this name, and one has a name that begins with it."""
    return name in undefined and any(switch.name.startswith(name) for switch in switches)


def _is_half_a_name(name: str, switches: Sequence[SlurmSwitch]) -> bool:
    """Whether a name has fewer digits than all others have, which end with as many."""
    others = {node for switch in switches for node in switch.nodes} - {name}
    if not others or not all(other[-1:].isdigit() for other in others):
        return False
    if not name[-1:].isdigit():
        return True
    stem = _DIGITS.sub("", name)
    like = {len(other) for other in others if _DIGITS.sub("", other) == stem}
    return len(like) == 1 and len(name) < min(like)
