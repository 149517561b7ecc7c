"""The catalogue of known machines, by name: what ``--hardware`` takes."""

import difflib
import re

from ncdiag.expect.gpus import GPUS
from ncdiag.expect.machine import HostPath, LinkLayer, Machine, Rail
from ncdiag.model.errors import UsageError
from ncdiag.model.host import PcieLink
from ncdiag.model.text import visible

_IB, _ROCE, _EFA = LinkLayer.INFINIBAND, LinkLayer.ROCE, LinkLayer.EFA
_GEN3 = PcieLink(gigatransfers_per_s=8.0, lanes=16)
_GEN4 = PcieLink(gigatransfers_per_s=16.0, lanes=16)
_GEN5_X8 = PcieLink(gigatransfers_per_s=32.0, lanes=8)
_GEN5 = PcieLink(gigatransfers_per_s=32.0, lanes=16)
_GEN6 = PcieLink(gigatransfers_per_s=64.0, lanes=16)

_CX5 = "NVIDIA ConnectX-5 manual: 100 Gbit/s, PCIe gen3 x16"
_CX6 = "NVIDIA ConnectX-6 manual: 200 Gbit/s, PCIe gen4 x16"
_CX7 = "NVIDIA ConnectX-7 manual: 400 Gbit/s, PCIe gen5 x16"
_CX8 = "NVIDIA ConnectX-8 manual: 800 Gbit/s, PCIe gen6 x16"
_MAX_NEAR_NAMES = 3
_MAX_NAME_CHARS = 80
_WORD = re.compile(r"[a-z0-9]+")


def _machine(
    name: str,
    gpu: str,
    gpus: int,
    nics: tuple[int, float, LinkLayer, PcieLink | None],
    *,
    board: str,
    nic: str,
    host_path: HostPath = HostPath.SWITCH,
) -> Machine:
    """One row: ``nics`` are how many, Gbit/s, what frames the packets, and the slot if known."""
    kind = GPUS[gpu]
    count, gbit_per_s, layer, slot = nics
    return Machine(
        name=name,
        gpu=kind.name,
        generation=kind.generation,
        gpus=gpus,
        rails=tuple(
            Rail(name=f"rail{number}", gbit_per_s=gbit_per_s, layer=layer, slot=slot)
            for number in range(count)
        ),
        gpu_slot=kind.slot,
        fabric=kind.fabric,
        host_path=host_path,
        c2c_gb_per_s=kind.c2c_gb_per_s,
        sharp=layer is _IB,
        sources={**kind.sources, "gpus": board, "rails": f"{board}; {nic}"},
    )


_ROWS = (
    _machine("v100-4x100g", "V100 SXM2", 8, (4, 100, _IB, _GEN3), board="NVIDIA DGX-1", nic=_CX5),
    _machine("a100-8x200g", "A100 SXM", 8, (8, 200, _IB, _GEN4), board="NVIDIA DGX A100", nic=_CX6),
    _machine("a100-4x200g", "A100 SXM", 8, (4, 200, _IB, _GEN4), board="HGX A100", nic=_CX6),
    _machine("a100-4gpu-4x200g", "A100 SXM", 4, (4, 200, _IB, _GEN4), board="HGX A100 4", nic=_CX6),
    _machine("a800-4x200g", "A800 SXM", 8, (4, 200, _ROCE, _GEN4), board="HGX A800", nic=_CX6),
    _machine("a800-8x200g", "A800 SXM", 8, (8, 200, _ROCE, _GEN4), board="HGX A800", nic=_CX6),
    _machine(
        "a100-pcie",
        "A100 PCIe",
        8,
        (1, 200, _IB, _GEN4),
        board="PCIe servers with A100",
        nic=_CX6,
        host_path=HostPath.HOST_BRIDGE,
    ),
    _machine("h100-8x400g", "H100 SXM", 8, (8, 400, _IB, _GEN5), board="NVIDIA DGX H100", nic=_CX7),
    _machine("h100-8x400g-roce", "H100 SXM", 8, (8, 400, _ROCE, _GEN5), board="HGX H100", nic=_CX7),
    _machine("h100-4x400g", "H100 SXM", 8, (4, 400, _ROCE, _GEN5), board="HGX H100", nic=_CX7),
    _machine(
        "h100-nvl",
        "H100 NVL",
        8,
        (2, 400, _IB, _GEN5),
        board="PCIe servers with H100 NVL",
        nic=_CX7,
        host_path=HostPath.HOST_BRIDGE,
    ),
    _machine("h200-8x400g", "H200 SXM", 8, (8, 400, _IB, _GEN5), board="NVIDIA DGX H200", nic=_CX7),
    _machine("h200-8x400g-roce", "H200 SXM", 8, (8, 400, _ROCE, _GEN5), board="HGX H200", nic=_CX7),
    _machine("h800-8x400g", "H800 SXM", 8, (8, 400, _IB, _GEN5), board="HGX H800", nic=_CX7),
    _machine("h20-8x400g", "H20", 8, (8, 400, _ROCE, _GEN5), board="HGX H20", nic=_CX7),
    _machine("gh200-1x400g", "GH200", 1, (1, 400, _IB, _GEN5), board="NVIDIA GH200", nic=_CX7),
    _machine("b200-8x400g", "B200", 8, (8, 400, _IB, _GEN5), board="NVIDIA DGX B200", nic=_CX7),
    _machine("b200-8x400g-roce", "B200", 8, (8, 400, _ROCE, _GEN5), board="HGX B200", nic=_CX7),
    _machine("b300-8x800g", "B300", 8, (8, 800, _IB, _GEN6), board="NVIDIA DGX B300", nic=_CX8),
    _machine(
        "gb200-nvl72", "GB200", 4, (4, 400, _IB, _GEN5), board="GB200 NVL72, one tray", nic=_CX7
    ),
    _machine(
        "gb300-nvl72", "GB300", 4, (4, 800, _IB, _GEN6), board="GB300 NVL72, one tray", nic=_CX8
    ),
    _machine(
        "l40s-pcie",
        "L40S",
        8,
        (2, 200, _ROCE, _GEN4),
        board="NVIDIA OVX L40S",
        nic=_CX6,
        host_path=HostPath.HOST_BRIDGE,
    ),
    _machine(
        "mi250x-4x200g",
        "MI250X",
        8,
        (4, 200, _ROCE, _GEN4),
        board="HPE Cray EX235a: 4 modules, 8 dies, 4 Slingshot ports",
        nic="HPE Slingshot: 200 Gbit/s on PCIe gen4 x16, framed as Ethernet",
    ),
    _machine(
        "mi300x-8x400g", "MI300X", 8, (8, 400, _ROCE, _GEN5), board="AMD MI300X platform", nic=_CX7
    ),
    _machine(
        "mi325x-8x400g", "MI325X", 8, (8, 400, _ROCE, _GEN5), board="AMD MI325X platform", nic=_CX7
    ),
    _machine(
        "mi355x-8x400g", "MI355X", 8, (8, 400, _ROCE, _GEN5), board="AMD MI355X platform", nic=_CX7
    ),
    _machine(
        "aws-p4d",
        "A100 SXM",
        8,
        (4, 100, _EFA, None),
        board="AWS EC2 p4d.24xlarge: 8 A100, 400 Gbit/s",
        nic="4 EFA of 100 Gbit/s",
    ),
    _machine(
        "aws-p5",
        "H100 SXM",
        8,
        (32, 100, _EFA, None),
        board="AWS EC2 p5.48xlarge: 8 H100, 3200 Gbit/s",
        nic="32 EFA of 100 Gbit/s",
    ),
    _machine(
        "aws-p5en",
        "H200 SXM",
        8,
        (16, 200, _EFA, None),
        board="AWS EC2 p5en.48xlarge: 8 H200, 3200 Gbit/s",
        nic="16 EFA of 200 Gbit/s",
    ),
    _machine(
        "aws-p6-b200",
        "B200",
        8,
        (8, 400, _EFA, None),
        board="AWS EC2 p6-b200.48xlarge: 8 B200, 3200 Gbit/s",
        nic="8 EFA of 400 Gbit/s",
    ),
    _machine(
        "azure-nd-a100-v4",
        "A100 SXM",
        8,
        (8, 200, _IB, _GEN4),
        board="Azure ND A100 v4: 8 A100, 8 HDR InfiniBand",
        nic=_CX6,
    ),
    _machine(
        "azure-nd-h100-v5",
        "H100 SXM",
        8,
        (8, 400, _IB, _GEN5),
        board="Azure ND H100 v5: 8 H100, 8 NDR InfiniBand",
        nic=_CX7,
    ),
    _machine(
        "azure-nd-h200-v5",
        "H200 SXM",
        8,
        (8, 400, _IB, _GEN5),
        board="Azure ND H200 v5: 8 H200, 8 NDR InfiniBand",
        nic=_CX7,
    ),
    _machine(
        "azure-nd-mi300x-v5",
        "MI300X",
        8,
        (8, 400, _IB, _GEN5),
        board="Azure ND MI300X v5: 8 MI300X, 8 NDR InfiniBand",
        nic=_CX7,
    ),
    _machine(
        "gcp-a3-ultra",
        "H200 SXM",
        8,
        (8, 400, _ROCE, _GEN5),
        board="Google a3-ultragpu-8g: 8 H200, 3200 Gbit/s of RoCE",
        nic=_CX7,
    ),
    _machine(
        "oci-h100",
        "H100 SXM",
        8,
        (16, 200, _ROCE, _GEN5_X8),
        board="OCI BM.GPU.H100.8: 8 H100, 8 adapters of 2 ports of 200 Gbit/s",
        nic="a port's half of PCIe gen5 x16",
    ),
)

MACHINES: dict[str, Machine] = {machine.name: machine for machine in _ROWS}


def find_machine(name: str, *, dumps: str = "--topo") -> Machine:
    """The machine of that name; raises :class:`UsageError`, with near names, for any other.

    ``dumps`` is the option by which the command at hand takes a topology dump.
    """
    key = name.strip().lower().replace("_", "-")
    found = MACHINES.get(key)
    if found is not None:
        return found
    near = _near(key[:_MAX_NAME_CHARS])
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise UsageError(
        f"no machine {visible(name[:_MAX_NAME_CHARS])!r} in the catalogue; {hint}"
        f"ncdiag expect hardware lists all, and {dumps} takes a dump of any other"
    )


def _near(key: str) -> list[str]:
    """Names that share a word with it, as of GPU or board, else those of similar spelling."""
    words = {word for word in key.split("-") if len(word) > 1}
    ranks = {name: _likeness(key, words, machine) for name, machine in MACHINES.items()}
    alike = [name for name, (shared, _, _) in ranks.items() if shared]
    if not alike:
        return difflib.get_close_matches(key, MACHINES, _MAX_NEAR_NAMES, cutoff=0.4)
    return sorted(alike, key=ranks.__getitem__, reverse=True)[:_MAX_NEAR_NAMES]


def _likeness(key: str, words: set[str], machine: Machine) -> tuple[int, bool, float]:
    """Words shared, whole ones twice; whether the name begins with one; how alike the rest is."""
    parts = machine.name.split("-")
    own = {*parts, *_WORD.findall(machine.sources["gpus"].lower())}
    shared = sum(2 if word in own else any(one.startswith(word) for one in own) for word in words)
    begins = any(parts[0].startswith(word) for word in words)
    beginning = machine.name[: len(key)]
    return shared, begins, difflib.SequenceMatcher(None, key, beginning).ratio()
