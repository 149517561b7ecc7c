"""What a Slurm topology's switches form together."""

from ncdiag.model.topology import SlurmSwitch, SlurmTopology


def roots(topology: SlurmTopology) -> tuple[SlurmSwitch, ...]:
    """The switches that stand below no other; all blocks are roots."""
    below = {name for one in topology.switches for name in one.switches}
    return tuple(one for one in topology.switches if one.name not in below)


def all_nodes(topology: SlurmTopology) -> set[str]:
    """The nodes of all switches."""
    return {name for one in topology.switches for name in one.nodes}
