"""How the places of a topology are called, and which host they belong to."""

from ncdiag.model.topology import NcclTopology


def host_of(topology: NcclTopology, cpu: int) -> str | None:
    """Return what tells the host of a CPU from others in the same dump."""
    return topology.cpus[cpu].host_hash


def cpu_name(topology: NcclTopology, cpu: int) -> str:
    """Return a CPU as it is spoken of: by NUMA node, else by its place in the dump."""
    numa = topology.cpus[cpu].numa
    return f"CPU {cpu if numa is None or numa < 0 else numa}"


def pci_name(topology: NcclTopology, pci: int) -> str:
    """Return a PCI device by its bus id, if it has one."""
    return topology.pci[pci].busid or "PCI device"
