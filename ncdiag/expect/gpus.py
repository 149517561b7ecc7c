"""The GPUs of the catalogue: links, PCIe, and where each figure is from."""

from dataclasses import dataclass

from ncdiag.expect.machine import GpuFabric
from ncdiag.expect.rates import PCIE_GENERATIONS
from ncdiag.model.host import PcieLink

# What a kernel gets out of one link, of what it signals (NCCL 2.30, src/graph/topo.h).
_NVLINK2 = (25.0, 20.0)
_NVLINK3 = (25.0, 20.0)
_NVLINK4 = (25.0, 20.6)
_NVLINK5 = (50.0, 40.1)
# AMD counts 48 of 64 GB/s on MI300, after CRC and headers (ROCm blog "Understanding RCCL Bandwidth
# and xGMI Performance on AMD Instinct MI300X"; rccl issue 1210). The share is taken to be the same
# on the faster links of MI350, for which RCCL's own table repeats the 48 of MI300.
_XGMI_SHARE = 0.75
# RCCL 2.22, src/graph/topo.h: MI200_XGMI_WIDTH.
MI200_LINK = (50.0, 36.0)
MI300_LINK = (64.0, 64.0 * _XGMI_SHARE)
MI350_LINK = (76.8, 76.8 * _XGMI_SHARE)
# What reduction and multicast in the switch reach, of what a link's kernel gets (NCCL 2.30,
# src/graph/tuning.cc, nvlsEfficiency by architecture).
HOPPER_MULTICAST = 0.85
BLACKWELL_MULTICAST = 0.74

_PCIE = {generation.name: generation.gigatransfers_per_s for generation in PCIE_GENERATIONS}
_RACK_GPUS = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuKind:
    """One product; ``sources`` has an entry for each figure."""

    name: str
    generation: str
    slot: PcieLink
    sources: dict[str, str]
    fabric: GpuFabric | None = None
    c2c_gb_per_s: float | None = None


def _slot(generation: str, lanes: int = 16) -> PcieLink:
    return PcieLink(gigatransfers_per_s=_PCIE[generation], lanes=lanes)


def _nvlink(
    links: int, rates: tuple[float, float], *, multicast: float | None, domain: int = 8
) -> GpuFabric:
    return GpuFabric(
        name="NVLink",
        links=links,
        raw_gb_per_s=rates[0],
        effective_gb_per_s=rates[1],
        switched=True,
        domain_gpus=domain,
        multicast_share=multicast,
    )


def _mesh(
    name: str,
    links: int,
    rates: tuple[float, float],
    ring_links: tuple[tuple[int, int], ...],
    pair_links: tuple[tuple[int, ...], ...] = (),
) -> GpuFabric:
    return GpuFabric(
        name=name,
        links=links,
        raw_gb_per_s=rates[0],
        effective_gb_per_s=rates[1],
        switched=False,
        domain_gpus=ring_links[-1][0],
        ring_links=ring_links,
        pair_links=pair_links,
    )


def _pairs(*rows: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, row)) for row in rows)


_NCCL = "NCCL 2.30 src/graph/topo.h for what a link yields"
_RCCL = "RCCL src/graph/topo.h for what a link yields"
_XGMI = "AMD's 48 of 64 GB/s for what a link yields (ROCm blog on xGMI, rccl#1210)"
_FULL_MESH_OF_8 = tuple((gpus, gpus - 1) for gpus in range(2, 9))
# DGX-1: two quads; within one a GPU has 4 links, and rings over all 8 GPUs use all 6.
_CUBE_MESH = ((2, 2), (4, 4), (8, 6))
_CUBE_MESH_PAIRS = _pairs(
    "01122000",
    "10210200",
    "12020010",
    "21200001",
    "20000112",
    "02001021",
    "00101202",
    "00012120",
)
# 8 dies in pairs: 4 links inside a pair, and 3 to other pairs, each of which rings use both ways.
_MI250X_RINGS = ((2, 4), (8, 6))
# Who is one hop away: ROCm's guide to MI200 (rocm-smi --showtopo). Some of the pairs of two modules
# have a second link, which differs by board.
_MI250X_PAIRS = _pairs(
    "04100010",
    "40010100",
    "10041000",
    "01400001",
    "00100410",
    "01004001",
    "10001004",
    "00010140",
)

GPUS: dict[str, GpuKind] = {
    kind.name: kind
    for kind in (
        GpuKind(
            name="V100 SXM2",
            generation="Volta",
            slot=_slot("gen3"),
            fabric=_mesh("NVLink", 6, _NVLINK2, _CUBE_MESH, _CUBE_MESH_PAIRS),
            sources={
                "fabric": f"NVIDIA V100 data sheet: 6 NVLink2, 300 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA V100 data sheet: PCIe gen3 x16",
            },
        ),
        GpuKind(
            name="A100 SXM",
            generation="Ampere",
            slot=_slot("gen4"),
            fabric=_nvlink(12, _NVLINK3, multicast=None),
            sources={
                "fabric": f"NVIDIA A100 data sheet: 12 NVLink3, 600 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA A100 data sheet: PCIe gen4 x16",
            },
        ),
        GpuKind(
            name="A800 SXM",
            generation="Ampere",
            slot=_slot("gen4"),
            fabric=_nvlink(8, _NVLINK3, multicast=None),
            sources={
                "fabric": f"NVIDIA A800 data sheet: 8 NVLink3, 400 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA A800 data sheet: PCIe gen4 x16",
            },
        ),
        GpuKind(
            name="A100 PCIe",
            generation="Ampere",
            slot=_slot("gen4"),
            fabric=_mesh("NVLink", 12, _NVLINK3, ((2, 12),)),
            sources={
                "fabric": f"NVIDIA A100 PCIe brief: bridges of 12 NVLink3 between two; {_NCCL}",
                "slot": "NVIDIA A100 data sheet: PCIe gen4 x16",
            },
        ),
        GpuKind(
            name="H100 SXM",
            generation="Hopper",
            slot=_slot("gen5"),
            fabric=_nvlink(18, _NVLINK4, multicast=HOPPER_MULTICAST),
            sources={
                "fabric": f"NVIDIA H100 data sheet: 18 NVLink4, 900 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA H100 data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="H100 NVL",
            generation="Hopper",
            slot=_slot("gen5"),
            fabric=_mesh("NVLink", 12, _NVLINK4, ((2, 12),)),
            sources={
                "fabric": f"NVIDIA H100 NVL data sheet: bridges of 12 NVLink4 between two; {_NCCL}",
                "slot": "NVIDIA H100 NVL data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="H200 SXM",
            generation="Hopper",
            slot=_slot("gen5"),
            fabric=_nvlink(18, _NVLINK4, multicast=HOPPER_MULTICAST),
            sources={
                "fabric": f"NVIDIA H200 data sheet: 18 NVLink4, 900 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA H200 data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="H800 SXM",
            generation="Hopper",
            slot=_slot("gen5"),
            fabric=_nvlink(8, _NVLINK4, multicast=HOPPER_MULTICAST),
            sources={
                "fabric": f"NVIDIA H800 data sheet: 8 NVLink4, 400 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA H800 data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="H20",
            generation="Hopper",
            slot=_slot("gen5"),
            fabric=_nvlink(18, _NVLINK4, multicast=HOPPER_MULTICAST),
            sources={
                "fabric": f"NVIDIA H20 data sheet: 18 NVLink4, 900 GB/s both ways; {_NCCL}",
                "slot": "NVIDIA H20 data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="GH200",
            generation="Hopper",
            slot=_slot("gen5"),
            c2c_gb_per_s=450.0,
            sources={
                "slot": "NVIDIA GH200 data sheet: PCIe gen5 x16 from Grace",
                "c2c_gb_per_s": "NVIDIA GH200 data sheet: NVLink-C2C 900 GB/s both ways",
            },
        ),
        GpuKind(
            name="B200",
            generation="Blackwell",
            slot=_slot("gen5"),
            fabric=_nvlink(18, _NVLINK5, multicast=BLACKWELL_MULTICAST),
            sources={
                "fabric": f"NVIDIA HGX B200 data sheet: 18 NVLink5, 1.8 TB/s both ways; {_NCCL}",
                "slot": "NVIDIA HGX B200 data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="B300",
            generation="Blackwell",
            slot=_slot("gen6"),
            fabric=_nvlink(18, _NVLINK5, multicast=BLACKWELL_MULTICAST),
            sources={
                "fabric": f"NVIDIA HGX B300 data sheet: 18 NVLink5, 1.8 TB/s both ways; {_NCCL}",
                "slot": "NVIDIA HGX B300 data sheet: PCIe gen6 x16",
            },
        ),
        GpuKind(
            name="GB200",
            generation="Blackwell",
            slot=_slot("gen5"),
            fabric=_nvlink(18, _NVLINK5, multicast=BLACKWELL_MULTICAST, domain=_RACK_GPUS),
            c2c_gb_per_s=450.0,
            sources={
                "fabric": f"NVIDIA GB200 NVL72 data sheet: 18 NVLink5 to each of 72; {_NCCL}",
                "slot": "NVIDIA GB200 NVL72 data sheet: PCIe gen5 x16 from Grace",
                "c2c_gb_per_s": "NVIDIA GB200 data sheet: NVLink-C2C 900 GB/s both ways",
            },
        ),
        GpuKind(
            name="GB300",
            generation="Blackwell",
            slot=_slot("gen6"),
            fabric=_nvlink(18, _NVLINK5, multicast=BLACKWELL_MULTICAST, domain=_RACK_GPUS),
            c2c_gb_per_s=450.0,
            sources={
                "fabric": f"NVIDIA GB300 NVL72 data sheet: 18 NVLink5 to each of 72; {_NCCL}",
                "slot": "NVIDIA GB300 NVL72 data sheet: PCIe gen6 x16",
                "c2c_gb_per_s": "NVIDIA GB300 data sheet: NVLink-C2C 900 GB/s both ways",
            },
        ),
        GpuKind(
            name="L40S",
            generation="Ampere",
            slot=_slot("gen4"),
            sources={"slot": "NVIDIA L40S data sheet: PCIe gen4 x16, no NVLink"},
        ),
        GpuKind(
            name="MI250X",
            generation="CDNA2",
            slot=_slot("gen4"),
            fabric=_mesh("xGMI", 7, MI200_LINK, _MI250X_RINGS, _MI250X_PAIRS),
            sources={
                "fabric": f"AMD MI250X data sheet: 50 GB/s a link and way, 8 dies; {_RCCL}",
                "slot": "AMD MI250X data sheet: PCIe gen4 x16",
            },
        ),
        GpuKind(
            name="MI300X",
            generation="CDNA3",
            slot=_slot("gen5"),
            fabric=_mesh("xGMI", 7, MI300_LINK, _FULL_MESH_OF_8),
            sources={
                "fabric": f"AMD MI300X platform data sheet: 7 links of 64 GB/s a way; {_XGMI}",
                "slot": "AMD MI300X data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="MI325X",
            generation="CDNA3",
            slot=_slot("gen5"),
            fabric=_mesh("xGMI", 7, MI300_LINK, _FULL_MESH_OF_8),
            sources={
                "fabric": f"AMD MI325X data sheet: 7 links of 64 GB/s a way; {_XGMI}",
                "slot": "AMD MI325X data sheet: PCIe gen5 x16",
            },
        ),
        GpuKind(
            name="MI355X",
            generation="CDNA4",
            slot=_slot("gen5"),
            fabric=_mesh("xGMI", 7, MI350_LINK, _FULL_MESH_OF_8),
            sources={
                "fabric": f"AMD MI355X data sheet: 7 links of 76.8 GB/s a way; {_XGMI}",
                "slot": "AMD MI355X data sheet: PCIe gen5 x16",
            },
        ),
    )
}
