"""All rules for an NCCL topology."""

from collections.abc import Iterator

from ncdiag.diagnose.topology.adapters import check_adapters
from ncdiag.diagnose.topology.layout import check_layout
from ncdiag.diagnose.topology.machine import Machine
from ncdiag.diagnose.topology.nvlink import check_links
from ncdiag.diagnose.topology.pcie import check_pcie
from ncdiag.model.topology import NcclTopology, TopologyFinding


def check_nccl(topology: NcclTopology) -> Iterator[TopologyFinding]:
    """Yield what is wrong with one NCCL topology."""
    machine = Machine(topology)
    yield from check_links(machine)
    yield from check_layout(machine)
    yield from check_pcie(machine)
    yield from check_adapters(machine)
