"""The classes of findings: one table, for the rules, the documentation and ``--list-classes``."""

from dataclasses import dataclass
from enum import StrEnum

from ncdiag.model.topology import GpuMatrix, NcclTopology, Topology, TopologySeverity

# PCI vendor of AMD's GPUs.
AMD_VENDOR = "0x1002"
_INFO = (TopologySeverity.INFO,)
_DEGRADED = (TopologySeverity.DEGRADED,)
_FATAL_OR_DEGRADED = (TopologySeverity.FATAL, TopologySeverity.DEGRADED, TopologySeverity.INFO)
_DEGRADED_OR_INFO = (TopologySeverity.DEGRADED, TopologySeverity.INFO)


class Area(StrEnum):
    """What a class is about."""

    GPUS = "GPUs and NVLink"
    PCIE = "PCIe"
    ADAPTERS = "Adapters"
    FILE = "The file itself"
    INFINIBAND = "InfiniBand"
    SLURM = "Slurm"
    FLEET = "Fleet"


@dataclass(frozen=True, slots=True)
class FindingClass:
    """One class: the severities it may have (worst first), what it means, what to do.

    ``amd_action`` is what to do where the GPUs are AMD's, if that is something else.
    """

    name: str
    area: Area
    severities: tuple[TopologySeverity, ...]
    meaning: str
    action: str
    amd_action: str = ""

    def advice(self, *, amd: bool) -> str:
        """Return what to do, on a host with AMD's GPUs or another."""
        return self.amd_action if amd and self.amd_action else self.action


CLASSES: tuple[FindingClass, ...] = (
    FindingClass(
        "nvlink_missing",
        Area.GPUS,
        _FATAL_OR_DEGRADED,
        "a GPU has fewer NVLinks than the GPUs like it",
        "look at nvidia-smi nvlink --status and for Xid 74; reset or replace the GPU or baseboard",
        "look at amd-smi topology (or rocm-smi --showtopo) and amd-smi xgmi, and for amdgpu errors "
        "in dmesg; reset or replace the GPU or baseboard",
    ),
    FindingClass(
        "nvlink_asymmetric",
        Area.GPUS,
        _DEGRADED,
        "two GPUs state different numbers of links to each other",
        "write the dump again; if it stays, look at the link's status at both ends",
    ),
    FindingClass(
        "nvlink_count_impossible",
        Area.GPUS,
        _DEGRADED_OR_INFO,
        "a GPU states more NVLinks than its generation has",
        "mistrust the file: NCCL would expect bandwidth that is not there",
    ),
    FindingClass(
        "nvlink_count_unknown",
        Area.GPUS,
        _DEGRADED_OR_INFO,
        "a row of a GPU's links states no number, or one that no count can be",
        "write the dump again, or state the number: NCCL takes the row for no link at all",
    ),
    FindingClass(
        "nvlink_target_contradiction",
        Area.GPUS,
        _DEGRADED_OR_INFO,
        "a link's target is not what the link says it is, or is nowhere in the file",
        "mistrust the file, or write it with all GPUs of the host in use",
    ),
    FindingClass(
        "gpu_missing",
        Area.GPUS,
        _DEGRADED_OR_INFO,
        "a GPU that the numbering or the others' layout lets expect is not there",
        "look at lspci and for Xid 79 (fallen off the bus); check CUDA_VISIBLE_DEVICES",
        "look at lspci, amd-smi list (or rocm-smi) and for amdgpu errors in dmesg; check "
        "ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES",
    ),
    FindingClass(
        "duplicate_busid",
        Area.GPUS,
        _DEGRADED,
        "two devices claim one bus id, or two GPUs one index",
        "write the dump again; a file edited by hand needs a bus id of its own for each device",
    ),
    FindingClass(
        "pcie_downgraded_width",
        Area.PCIE,
        _DEGRADED_OR_INFO,
        "a device has fewer PCIe lanes than the devices like it",
        "reseat the card or riser; look at LnkSta in lspci -vv",
    ),
    FindingClass(
        "pcie_downgraded_speed",
        Area.PCIE,
        _DEGRADED_OR_INFO,
        "a device runs at a lower PCIe generation than the devices like it",
        "look again under load; then reseat the card, and compare firmware settings of the slot",
    ),
    FindingClass(
        "pcie_uplink_narrow",
        Area.PCIE,
        _DEGRADED_OR_INFO,
        "a bridge is slower than the device below it",
        "look at LnkSta of the bridge; where all are alike it is the design, or an idle reading",
    ),
    FindingClass(
        "pcie_unknown",
        Area.PCIE,
        _INFO,
        "the file gives no PCIe speed or width",
        "NCCL assumes x16 and a generation of its own; state them in the file",
    ),
    FindingClass(
        "gpu_nic_far",
        Area.ADAPTERS,
        _DEGRADED,
        "most GPUs have an adapter behind their own PCIe switch, and this one has not",
        "look for the adapter in lspci: missing, in another slot, or on the other socket",
    ),
    FindingClass(
        "nic_missing",
        Area.ADAPTERS,
        _DEGRADED,
        "adapters are fewer at one PCIe switch or socket, and equally many at the rest",
        "look for the adapter in lspci and ibstat; check NCCL_IB_HCA",
    ),
    FindingClass(
        "nic_speed_mixed",
        Area.ADAPTERS,
        _DEGRADED_OR_INFO,
        "a fabric port is slower than the others",
        "look at the port's rate in ibstat, at the cable, and at the switch's port",
    ),
    FindingClass(
        "nic_speed_implausible",
        Area.ADAPTERS,
        _DEGRADED_OR_INFO,
        "a port states a speed that no port has",
        "do not use the figure; state the speed in Mbit/s in the file",
    ),
    FindingClass(
        "gdr_unavailable",
        Area.ADAPTERS,
        _DEGRADED_OR_INFO,
        "GPUDirect RDMA is off",
        "load nvidia-peermem or use dma-buf; check IOMMU and ACS settings",
        "use dma-buf (or AMD's peer memory for InfiniBand); check IOMMU and ACS settings",
    ),
    FindingClass(
        "virtual_nics_many",
        Area.ADAPTERS,
        _INFO,
        "many bridges, tunnels and container interfaces",
        "choose the interfaces with NCCL_SOCKET_IFNAME",
    ),
    FindingClass(
        "no_rdma_nic",
        Area.ADAPTERS,
        _INFO,
        "only socket adapters",
        "expect TCP speed between hosts; check that the RDMA stack is loaded, if there is one",
    ),
    FindingClass(
        "truncated_input",
        Area.FILE,
        _DEGRADED,
        "the text ends too early to be judged (exit code 3)",
        "write or copy the dump again",
    ),
    FindingClass(
        "numa_unknown",
        Area.FILE,
        _INFO,
        "the NUMA nodes are not known",
        "paths through a socket cannot be told from paths between sockets",
    ),
    FindingClass(
        "vm_flattened",
        Area.FILE,
        _INFO,
        "the PCIe tree is invented or flat, as in a virtual machine or a template",
        "paths from this file say little; use the provider's topology file",
    ),
    FindingClass(
        "matrix_damaged",
        Area.FILE,
        _DEGRADED_OR_INFO,
        "parts of the table could not be read, or contradict each other",
        "copy the table again, in full width",
    ),
    FindingClass(
        "matrix_cell_unknown",
        Area.FILE,
        _INFO,
        "a cell says nothing that is known",
        "run the tool again; a new word may need a newer ncdiag",
    ),
    FindingClass(
        "graph_empty",
        Area.FILE,
        _DEGRADED,
        "the ring or tree search found no channel",
        "look in the log of NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=GRAPH for the reason",
    ),
    FindingClass(
        "graph_channels_mismatch",
        Area.FILE,
        _DEGRADED,
        "a graph states another number of channels than it lists",
        "write the graph again; NCCL trusts the stated number",
    ),
    FindingClass(
        "ib_link_width_mismatch",
        Area.INFINIBAND,
        _DEGRADED_OR_INFO,
        "a link has fewer lanes than its like, or its ends disagree",
        "reseat or replace the cable; look at ibdiagnet and mlxlink",
    ),
    FindingClass(
        "ib_link_speed_mismatch",
        Area.INFINIBAND,
        _DEGRADED_OR_INFO,
        "a link is slower than both its ends are elsewhere, or its ends disagree",
        "reseat or replace the cable; look at the port's enabled speeds in mlxlink",
    ),
    FindingClass(
        "ib_link_one_sided",
        Area.INFINIBAND,
        _DEGRADED,
        "one end lists the link, the other does not",
        "discover the fabric again; if it stays, restart the port",
    ),
    FindingClass(
        "ib_self_loop",
        Area.INFINIBAND,
        _DEGRADED,
        "both ends of a cable are at one node",
        "follow the cable",
    ),
    FindingClass(
        "ib_port_down",
        Area.INFINIBAND,
        _DEGRADED_OR_INFO,
        "a port of a host's adapter is not up",
        "look at the cable, the switch's port and the subnet manager",
    ),
    FindingClass(
        "ca_without_links",
        Area.INFINIBAND,
        _DEGRADED,
        "an adapter is in the fabric's list and has no link",
        "look at the cable and the port's state",
    ),
    FindingClass(
        "ib_uplinks_uneven",
        Area.INFINIBAND,
        _DEGRADED_OR_INFO,
        "the way up from one leaf is narrower than from the usual leaf",
        "look for cables that are down between leaf and spine",
    ),
    FindingClass(
        "ib_host_hca_missing",
        Area.INFINIBAND,
        _DEGRADED_OR_INFO,
        "a host has fewer adapters in the fabric than the other hosts",
        "look at the host's ports in ibstat",
    ),
    FindingClass(
        "slurm_node_in_two_leaves",
        Area.SLURM,
        _DEGRADED,
        "a node is named under two leaves or blocks",
        "name it once; slurmctld would place jobs by a wrong tree",
    ),
    FindingClass(
        "slurm_no_common_root",
        Area.SLURM,
        _DEGRADED_OR_INFO,
        "the switches have no common root, or some of them form a ring",
        "jobs across the parts are not placed by topology; name each switch below one other only, "
        "and add the switch above all of them",
    ),
    FindingClass(
        "slurm_undefined_switch",
        Area.SLURM,
        _DEGRADED,
        "a switch is named that has no line of its own",
        "define it, or correct its name",
    ),
    FindingClass(
        "fleet_differs",
        Area.FLEET,
        _DEGRADED_OR_INFO,
        "a host differs from most hosts of the fleet in a way that no other class names",
        "compare the two dumps; look for another firmware, slot or setting",
    ),
)

BY_NAME = {entry.name: entry for entry in CLASSES}


def has_amd_gpus(topology: Topology) -> bool:
    """Whether a dump shows AMD's GPUs."""
    if isinstance(topology, GpuMatrix):
        return any(cell.path == "XGMI" for cell in topology.cells)
    if not isinstance(topology, NcclTopology):
        return False
    return any(
        gpu.gcn is not None or topology.pci[gpu.pci].vendor == AMD_VENDOR for gpu in topology.gpus
    )
