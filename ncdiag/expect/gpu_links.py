"""What NCCL takes one GPU link for, by architecture, in GB/s each way."""

import re
from dataclasses import dataclass

from ncdiag.model.topology import Gpu, GpuLink, GpuLinkKind

# PCI class of an NVSwitch; NCCL's id of one that a virtual machine does not show, in the spellings
# seen (src/graph/xml.h, topo.cc).
NVSWITCH_CLASS = 0x068000
_HIDDEN_SWITCH = re.compile(r"f{7,8}:f{2,4}:.*")


@dataclass(frozen=True, slots=True)
class LinkGeneration:
    """NVLink of compute capabilities from ``sm`` on; ``most_links`` is what NCCL asks NVML for."""

    sm: int
    gb_per_s: float
    most_links: int


# SMxx_NVLINK_BW (NCCL src/graph/topo.h, 2.30) and the link counts of src/graph/xml.cc: effective
# rates, 20 to 26 % below those of the data sheets.
NVLINK_GENERATIONS = (
    LinkGeneration(60, 18.0, 4),
    LinkGeneration(70, 20.0, 6),
    LinkGeneration(80, 20.0, 12),
    LinkGeneration(86, 12.0, 12),
    LinkGeneration(87, 20.0, 12),
    LinkGeneration(90, 20.6, 18),
    LinkGeneration(100, 40.1, 18),
)
# xGMI by gfx architecture, of one link (RCCL src/graph/topo.h); the first prefix that fits.
_XGMI_GB_PER_S = (("gfx90a", 36.0), ("910", 36.0), ("gfx94", 48.0), ("94", 48.0), ("gfx95", 48.0))
_XGMI_OTHERS_GB_PER_S = 24.0


def is_amd(gpu: Gpu) -> bool:
    """Whether the dump is RCCL's: there ``sm`` counts compute units and ``gcn`` names the part."""
    return gpu.gcn is not None or (gpu.sm or "").startswith("gfx")


def nvlink_generation(gpu: Gpu) -> LinkGeneration | None:
    """NVLink generation of ``gpu``; ``None`` for AMD's, for older ones and where none is told."""
    if is_amd(gpu) or gpu.sm is None or not gpu.sm.isdecimal() or len(gpu.sm) > 4:
        return None
    sm = int(gpu.sm)
    return next((one for one in reversed(NVLINK_GENERATIONS) if one.sm <= sm), None)


def link_gb_per_s(gpu: Gpu, kind: GpuLinkKind) -> float | None:
    """GB/s of one link of ``gpu``; ``None`` where the architecture is not known."""
    if kind is GpuLinkKind.XGMI:
        architecture = gpu.gcn or gpu.sm or ""
        return next(
            (rate for prefix, rate in _XGMI_GB_PER_S if architecture.startswith(prefix)),
            _XGMI_OTHERS_GB_PER_S,
        )
    generation = nvlink_generation(gpu)
    return None if generation is None else generation.gb_per_s


def nvlink_gb_per_s(gpu: Gpu) -> float | None:
    """GB/s of all NVLinks of ``gpu`` together, 0 for one without; ``None`` where not known.

    Links are counted as the dump has them, even more of them than the generation has.
    """
    rate = link_gb_per_s(gpu, GpuLinkKind.NVLINK)
    if rate is None:
        return None
    links = sum(link.count or 0 for link in gpu.links if link.kind is GpuLinkKind.NVLINK)
    return round(rate * links, 4)


def to_switch(link: GpuLink) -> bool:
    """Whether a link ends at an NVSwitch, seen or hidden."""
    if link.target_class is not None:
        return link.target_class == NVSWITCH_CLASS
    return link.target is not None and _HIDDEN_SWITCH.fullmatch(link.target) is not None
