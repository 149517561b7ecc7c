"""Topology reports as JSON: schemas ``ncdiag/topology/1``, ``-check/1`` and ``-diff/1``."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from ncdiag.model.text import visible
from ncdiag.model.topology import (
    GpuMatrix,
    IbFabric,
    IbNodeKind,
    IbPorts,
    NcclGraphs,
    NcclTopology,
    SlurmTopology,
    Topology,
    TopologyFinding,
)
from ncdiag.report.json_document import layout
from ncdiag.report.topology.cables import Cables
from ncdiag.report.topology.rows import GpuRow, NcclRows
from ncdiag.report.topology.slurm_tree import all_nodes, roots

SCHEMA: Final = "ncdiag/topology/1"


def render(topology: Topology, findings: Sequence[TopologyFinding]) -> bytes:
    """What one dump holds, and what is wrong with it."""
    head = {
        "schema": SCHEMA,
        "kind": topology.kind.value,
        "findings": [finding_document(one) for one in findings],
    }
    return layout(shown({**head, **_body(topology)}))


def finding_document(finding: TopologyFinding) -> dict[str, Any]:
    """One finding as every schema writes it."""
    return {
        "class": finding.name,
        "severity": finding.severity.value,
        "where": finding.where,
        "explanation": finding.explanation,
    }


def shown(value: Any) -> Any:
    """``value`` with control characters visible in every text, keys included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {shown(key): shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value


def _body(topology: Topology) -> dict[str, Any]:
    match topology:
        case NcclTopology():
            return _nccl(topology)
        case NcclGraphs():
            return _graphs(topology)
        case GpuMatrix():
            return _matrix(topology)
        case IbFabric():
            return _fabric(topology)
        case IbPorts():
            return _ports(topology)
        case SlurmTopology():
            return _slurm(topology)
        case _:
            assert_never(topology)


def _nccl(topology: NcclTopology) -> dict[str, Any]:
    rows = NcclRows(topology, nccl=True)
    return {
        "cpus": [
            {"numa": cpu.numa, "arch": cpu.arch, "vendor": cpu.vendor} for cpu in topology.cpus
        ],
        "gpus": [_gpu(row) for row in rows.gpus],
        "nics": [
            {
                "name": row.name,
                "speed_gbit_per_s": row.speed_gbit_per_s,
                "port": row.port,
                "guid": row.guid,
                "gdr": row.gdr,
                "busid": row.busid,
            }
            for row in rows.nics
        ],
        "nvswitches": rows.nvswitches,
        "hosts": rows.hosts,
    }


def _gpu(row: GpuRow) -> dict[str, Any]:
    return {
        "busid": row.busid,
        "index": row.index,
        "rank": row.rank,
        "sm": row.sm,
        "pcie_gen": row.pcie_gen,
        "pcie_lanes": row.pcie_lanes,
        "pcie_gb_per_s": _rounded(row.pcie_gb_per_s),
        "nvlinks": row.nvlinks,
        "link_kind": row.link_kind,
        "nvlink_gb_per_s": _rounded(row.nvlink_gb_per_s),
        "nvlink_to": row.nvlink_to,
        "c2c_gb_per_s": _rounded(row.c2c_gb_per_s),
        "nearest_nics": list(row.nearest_nics),
        "nearest_path": row.nearest_path,
        "nearest_nics_nccl": list(row.nearest_nics_nccl),
        "nearest_path_nccl": row.nearest_path_nccl,
    }


def _graphs(topology: NcclGraphs) -> dict[str, Any]:
    return {
        "graphs": [
            {
                "id": graph.id,
                "pattern": graph.pattern,
                "channels": graph.nchannels,
                "intra_gb_per_s": graph.intra_gb_per_s,
                "inter_gb_per_s": graph.inter_gb_per_s,
                "intra_path": graph.intra_path,
                "inter_path": graph.inter_path,
            }
            for graph in topology.graphs
        ]
    }


def _matrix(topology: GpuMatrix) -> dict[str, Any]:
    return {
        "gpus": list(topology.gpus),
        "nics": list(topology.nics),
        "nic_names": topology.nic_names,
        "links": [
            {"a": cell.a, "b": cell.b, "path": cell.path}
            for cell in topology.cells
            if cell.a != cell.b
        ],
        "numa": topology.numa,
    }


def _fabric(topology: IbFabric) -> dict[str, Any]:
    cables = Cables(topology)
    return {
        "switches": cables.count(IbNodeKind.SWITCH),
        "cas": cables.count(IbNodeKind.CA),
        "links": len(cables.rates),
        "links_by_rate": cables.by_rate,
    }


def _ports(topology: IbPorts) -> dict[str, Any]:
    return {
        "ports": [
            {
                "ca": port.ca,
                "port": port.port,
                "state": port.state,
                "physical": port.physical,
                "rate_gbit_per_s": port.rate_gbit_per_s,
                "link_layer": port.link_layer,
            }
            for port in topology.ports
        ]
    }


def _slurm(topology: SlurmTopology) -> dict[str, Any]:
    tree = topology.plugin == "tree"
    return {
        "plugin": topology.plugin,
        "switches": len(topology.switches),
        "nodes": len(all_nodes(topology)),
        "roots": len(roots(topology)) if tree else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
