"""A dump cut anywhere: no part is accused, and half a line is never taken for a healthy whole."""

import re

import pytest

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import NotATopologyError, TopologySeverity, TruncatedTopologyError
from ncdiag.read.topology.read_topology import read_topology
from ncdiag.read.topology.text import open_line

NVIDIA_SMI = """\
\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV6\tPIX\tSYS\t0-7,16-23\t0\t\tN/A
GPU1\tNV6\t X \tSYS\tPIX\t8-15,24-31\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tPIX\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  PIX  = Connection by a single PCIe bridge
  NV#  = Connection by # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
ROCM_SMI = """\
=================== ROCm System Management Interface ===================
======================== Hops between two GPUs =========================
       GPU0         GPU1
GPU0   0            1
GPU1   1            0
====================== Link Type between two GPUs ======================
       GPU0         GPU1
GPU0   0            XGMI
GPU1   XGMI         0
============================== Numa Nodes ==============================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[1]\t\t: (Topology) Numa Node: 1
========================= End of ROCm SMI Log ==========================
"""
AMD_SMI = """\
ACCESS TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 ENABLED      ENABLED
0000:22:00.0 ENABLED      ENABLED

LINK TYPE TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 SELF         XGMI
0000:22:00.0 XGMI         SELF

NUMA BW TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 N/A          50000-50000
0000:22:00.0 50000-50000  N/A
"""
IBNETDISCOVER = """\
#
# Topology file: generated on Mon Nov 30 06:00:00 2026
#

vendid=0x2c9
devid=0xd2f0
switchguid=0x1b01(1b01)
Switch\t40 "S-0000000000001b01"\t\t# "MF0;leaf1:X/U1" enhanced port 0 lid 21 lmc 0
[1]\t"H-0000000000000a01"[1](a01) \t\t# "n1 mlx5_0" lid 11 4xHDR
[12]\t"H-0000000000000a02"[1](a02) \t\t# "n2 mlx5_0" lid 12 4xHDR

vendid=0x2c9
devid=0x101b
caguid=0xa01
Ca\t1 "H-0000000000000a01"\t\t# "n1 mlx5_0"
[1](a01) \t"S-0000000000001b01"[1]\t\t# lid 11 lmc 0 "MF0;leaf1:X/U1" lid 21 4xHDR

vendid=0x2c9
devid=0x101b
caguid=0xa02
Ca\t1 "H-0000000000000a02"\t\t# "n2 mlx5_0"
[1](a02) \t"S-0000000000001b01"[12]\t\t# lid 12 lmc 0 "MF0;leaf1:X/U1" lid 21 4xHDR
"""
IBSIM = """\
Switch\t8 "leaf1"
[1]\t"Hca1"[1]
[3]\t"leaf2"[3]
[12]\t"leaf2"[15]

Switch\t8 "leaf2"
[1]\t"Hca2"[1]
[3]\t"leaf1"[3]
[15]\t"leaf1"[12]

Hca\t2 "Hca1"
[1]\t"leaf1"[1]

Hca\t2 "Hca2"
[1]\t"leaf2"[1]
"""
PORTS = """\
CA    11  1 0x0000000000000a01 4x HDR - SW    21  1 0x0000000000001b01 ( 'n1 mlx5_0' - 'leaf1' )
CA    12  1 0x0000000000000a02 4x HDR - SW    21  2 0x0000000000001b01 ( 'n2 mlx5_0' - 'leaf1' )
SW    21  1 0x0000000000001b01 4x HDR - CA    11  1 0x0000000000000a01 ( 'leaf1' - 'n1 mlx5_0' )
SW    21  2 0x0000000000001b01 4x HDR - CA    12  1 0x0000000000000a02 ( 'leaf1' - 'n2 mlx5_0' )
SW    21  3 0x0000000000001b01 4x ???                                    'leaf1'
"""
_UP = "==( 4X          53.125 Gbps Active/  LinkUp)==>"
IBLINKINFO = f"""\
CA: n1 mlx5_0:
      0x0000000000000a01     11    1[  ] {_UP}      21    1[  ] "MF0;leaf1:X/U1" ( )
CA: n2 mlx5_0:
      0x0000000000000a02     12    1[  ] {_UP}      21    2[  ] "MF0;leaf1:X/U1" ( )
Switch: 0x0000000000001b01 MF0;leaf1:X/U1:
          21    1[  ] {_UP}      11    1[  ] "n1 mlx5_0" ( )
          21    2[  ] {_UP}      12    1[  ] "n2 mlx5_0" ( )
          21    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""
IBSTAT = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.1002
\tNode GUID: 0x0000000000000a01
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 11
\t\tSM lid: 1
\t\tPort GUID: 0x0000000000000a01
\t\tLink layer: InfiniBand
"""
IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tbase lid:\t 0xb
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand

Infiniband device 'mlx5_1' port 1 status:
\tbase lid:\t 0xc
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 400 Gb/sec (4X NDR)
\tlink_layer:\t InfiniBand
"""
TREE = """\
SwitchName=leaf1 Nodes=gpu[001-004]
SwitchName=leaf2 Nodes=gpu[005-008],gpu011
SwitchName=spine Switches=leaf[1-2]
"""
SHOWN = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[001-004]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=gpu[005-008]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=gpu[001-008] Switches=leaf1,leaf2
"""
TOP_DOWN = """\
SwitchName=spine Switches=leaf[1-2]
SwitchName=leaf1 Nodes=gpu[001-004]
SwitchName=leaf2 Nodes=gpu[005-008]
"""
BLOCKS = "BlockName=b1 Nodes=gpu[001-018]\nBlockName=b2 Nodes=gpu[019-036]\nBlockSizes=18,36\n"
YAML = """\
- topology: one
  tree:
    switches:
      - switch: spine
        children: leaf[1-2]
      - switch: leaf1
        nodes: gpu[001-004]
      - switch: leaf2
        nodes: gpu[005-008]
- topology: two
  block:
    block_sizes:
      - 4
    blocks:
      - block: b1
        nodes: gpu[001-004]
      - block: b2
        nodes: gpu[005-008]
- topology: three
  flat: true
"""
DUMPS = {
    "nvidia-smi": NVIDIA_SMI,
    "rocm-smi": ROCM_SMI,
    "amd-smi": AMD_SMI,
    "ibnetdiscover": IBNETDISCOVER,
    "ibsim": IBSIM,
    "ibnetdiscover --ports": PORTS,
    "iblinkinfo": IBLINKINFO,
    "ibstat": IBSTAT,
    "ibstatus": IBSTATUS,
    "topology.conf": TREE,
    "scontrol": SHOWN,
    "top-down": TOP_DOWN,
    "blocks": BLOCKS,
    "topology.yaml": YAML,
}

# Half lines that are whole ones of a shorter dump; nothing in the text tells of more.
WHOLE_SHORTER = {
    # Only the line's own frame goes on.
    "rocm-smi": r"=+ End of ROCm SMI Log ?=*",
    # The first node's name has none to be compared with; a list may end at each of its commas.
    "topology.conf": r"SwitchName=leaf1 Nodes=g?p?u?|SwitchName=leaf2 Nodes=gpu\[005-008\]",
    "scontrol": r"SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=g?p?u?",
    "blocks": r"BlockName=b1 Nodes=g?p?u?|BlockSizes=18?",
    "topology.yaml": r"nodes: g?p?u?",
}
# A spine's list of leaves, and lines for the first of them: as if the others had been left out.
LINES_LEFT_OUT = {
    "top-down": {"slurm_undefined_switch"},
    "topology.yaml": {"slurm_undefined_switch"},
}


def verdict(text: str) -> set[str] | None:
    """The findings that accuse; ``None`` for a text that is refused."""
    try:
        read = read_topology(text.encode())
    except (NotATopologyError, TruncatedTopologyError):
        return None
    return {one.name for one in check(read) if one.severity is not TopologySeverity.INFO}


@pytest.mark.parametrize("name", DUMPS)
def test_whole_it_is_healthy_with_and_without_its_last_line_feed(name: str) -> None:
    text = DUMPS[name]

    assert verdict(text) == set()
    assert verdict(text.rstrip("\n")) == set()
    assert verdict(text.rstrip("\n") + "\n        ") == set()
    if name != "topology.yaml":
        assert verdict(text + "root@node7:~# ") == set()


@pytest.mark.parametrize("name", DUMPS)
def test_cut_anywhere_nothing_is_accused_and_half_a_line_is_not_healthy(name: str) -> None:
    text = DUMPS[name]
    for offset in range(len(text)):
        cut, left = text[:offset], text[offset:].partition("\n")[0]
        accused = verdict(cut)
        if cut.endswith("\n"):
            assert (accused or set()) <= LINES_LEFT_OUT.get(name, set()), cut
            continue
        assert not accused, cut
        line = open_line(cut)
        if line and left.strip() and not re.fullmatch(WHOLE_SHORTER.get(name, ""), line):
            assert accused is None, cut


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (IBNETDISCOVER.replace('[1]\t"H-0000000000000a01"', '[9]\t"H-0000000000000a03"'), "leaf1"),
        (IBSIM.replace('[1]\t"leaf2"[1]\n', "\n"), "Hca2"),
    ],
)
def test_what_cannot_have_followed_is_still_told(text: str, where: str) -> None:
    found = check(read_topology(text.encode()))

    assert any(where in one.where for one in found if one.severity is TopologySeverity.DEGRADED)


def test_leaves_beside_a_switch_whose_record_was_cut_off_are_not_accused() -> None:
    hosts = "".join(
        f'Switch 8 "S-{leaf:016x}" # "leaf{leaf}" base port 0 lid {leaf} lmc 0\n'
        f'[1] "H-{leaf + 64:016x}"[1] # "n{leaf} HCA-1" lid {leaf + 64} 4xHDR\n'
        + (f'[2] "S-{99:016x}"[{leaf}] # "spine" lid 99 4xHDR\n' if leaf < 5 else "")
        for leaf in range(1, 6)
    )

    assert verdict(hosts) == set()
