"""Expected bandwidths for programs: schema ``ncdiag/expect/1``."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from ncdiag.expect.collective import CollectiveExpectation
from ncdiag.expect.derivation import Line
from ncdiag.expect.machine import Machine
from ncdiag.expect.pair import GpuPairExpectation, PairExpectation
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/expect/1"
_DIGITS = 6


def render_collective(expected: CollectiveExpectation, size_bytes: int | None) -> bytes:
    """One collective; ``at`` is the point of ``size_bytes``, ``null`` without one."""
    return _document(
        "collective",
        machine=expected.machine,
        collective=expected.collective,
        algorithm=expected.algorithm,
        nodes=expected.nodes,
        gpus=expected.ranks,
        algbw_gb_per_s=expected.algbw_gb_per_s,
        busbw_gb_per_s=expected.busbw_gb_per_s,
        binding=expected.binding,
        notes=expected.notes,
        unreliable=expected.unreliable,
        unreliable_bytes=expected.unreliable_bytes,
        derivation=_lines(expected.derivation),
        weighed=[
            {"algorithm": algorithm, "busbw_gb_per_s": rate} for algorithm, rate in expected.others
        ],
        at=None if size_bytes is None else asdict(expected.at(size_bytes)),
        curve=[asdict(point) for point in expected.curve],
    )


def render_hosts(expected: PairExpectation) -> bytes:
    """Two hosts, rail by rail and together."""
    return _document(
        "hosts",
        source=expected.source,
        target=expected.target,
        gb_per_s=expected.gb_per_s,
        binding=expected.binding,
        derivation=_lines(expected.derivation),
        rails=[{**asdict(rail), "derivation": _lines(rail.derivation)} for rail in expected.rails],
        unmatched_rails=expected.unmatched,
    )


def render_gpus(expected: GpuPairExpectation) -> bytes:
    """Two GPUs."""
    return _document("gpus", **{**asdict(expected), "derivation": _lines(expected.derivation)})


def render_hardware(machines: Iterable[Machine]) -> bytes:
    """The catalogue, every machine with its sources."""
    return _document("hardware", machines=[_machine(machine) for machine in machines])


def _machine(machine: Machine) -> dict[str, Any]:
    rail = machine.rails[0]
    fabric = None
    if machine.fabric is not None:
        fabric = {
            "name": machine.fabric.name,
            "links": machine.fabric.links,
            "raw_gb_per_s": machine.fabric.raw_gb_per_s,
            "effective_gb_per_s": machine.fabric.effective_gb_per_s,
            "domain_gpus": machine.fabric.domain_gpus,
            "nvls": machine.fabric.multicast_share is not None,
        }
    return {
        "name": machine.name,
        "gpu": machine.gpu,
        "gpus": machine.gpus,
        "fabric": fabric,
        "pcie": None if machine.gpu_slot is None else asdict(machine.gpu_slot),
        "c2c_gb_per_s": machine.c2c_gb_per_s,
        "nics": len(machine.rails),
        "nic_gbit_per_s": rail.gbit_per_s,
        "nic_link": rail.layer,
        "nic_pcie": None if rail.slot is None else asdict(rail.slot),
        "sharp": machine.sharp,
        "sources": machine.sources,
    }


def _lines(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [asdict(line) for line in lines]


def _document(kind: str, **values: Any) -> bytes:
    return layout({"schema": SCHEMA, "kind": kind, **_rounded(values)})


def _rounded(value: Any) -> Any:
    """Figures without the noise of floating point."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return value
