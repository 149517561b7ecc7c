"""Fabrics and ports as the InfiniBand tools print them, each layout, whole and cut short."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.diagnose.topology.check import check
from ncdiag.model.cables import cables
from ncdiag.model.topology import (
    IbFabric,
    IbNodeKind,
    IbPorts,
    NotATopologyError,
    TopologyKind,
    TruncatedTopologyError,
)
from ncdiag.read.topology.ib_descriptions import host_adapter, switch_name
from ncdiag.read.topology.ib_rates import data_gbit_per_s, generation_of
from ncdiag.read.topology.read_topology import read_topology

DISCOVERED = """\
tool.c:17; timed out
#
# Topology file: generated on Mon Jan  5 10:00:00 2026
#
# Initiated from node 00aa000000000011 port 00aa000000000011

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xaa0000000000f1
switchguid=0xaa0000000000f1(aa0000000000f1)
Switch\t65 "S-00aa0000000000f1"\t\t# "MF0;rack7:MQM9700/U1" enhanced port 0 lid 4 lmc 0
[1]\t"H-00aa000000000011"[1](aa000000000011) \t\t# "gpu01 mlx5_0" lid 7 4xNDR
[2]\t"H-00aa000000000012"[1](aa000000000012) \t\t# "gpu02 mlx5_0" lid 8 2xHDR
[33]\t"S-00aa0000000000f2"[5]\t\t# "spine "A" north" lid 5 4xNDR s=4 w=2 v=4 e=16
[65]\t"H-00aa0000000000f9"[1](aa0000000000f9) \t\t# "Mellanox Technologies Aggregation Node" lid 9 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xaa000000000011
caguid=0xaa000000000011
Ca\t1 "H-00aa000000000011"\t\t# "gpu01 mlx5_0"
[1](aa000000000011) \t"S-00aa0000000000f1"[1]\t\t# lid 7 lmc 0 "MF0;rack7:MQM9700/U1" lid 4 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xaa000000000012
caguid=0xaa000000000012
Ca\t1 "H-00aa000000000012"\t\t# "gpu02 mlx5_0"
[1](aa000000000012) \t"S-00aa0000000000f1"[2]\t\t# lid 8 lmc 0 "MF0;rack7:MQM9700/U1" lid 4 2xHDR
"""  # noqa: E501

PORTS = """\
CA     7  1 0x00aa000000000011 4x NDR - SW     4  1 0x00aa0000000000f1 ( 'gpu01 mlx5_0' - 'rack7' )
CA     8  1 0x00aa000000000031 4x FDR10 - SW   4  2 0x00aa0000000000f1 ( 'gpu02 HCA-1' - 'rack7' )
CA     9  2 0x00aa000000000032 4x FDR10 - SW   4  3 0x00aa0000000000f1 ( 'gpu02 HCA-1' - 'rack7' )
SW     4  1 0x00aa0000000000f1 4x NDR - CA     7  1 0x00aa000000000011 ( 'rack7' - 'gpu01 mlx5_0' )
SW     4  2 0x00aa0000000000f1 4x FDR10 - CA   8  1 0x00aa000000000031 ( 'rack7' - 'gpu02 HCA-1' )
SW     4  3 0x00aa0000000000f1 4x FDR10 - CA   9  2 0x00aa000000000032 ( 'rack7' - 'gpu02 HCA-1' )
SW     4  4 0x00aa0000000000f1 4x ???                                    'rack7'
SW     4  5 0x00aa0000000000f1 4x SDR                                    rack7
"""

BLOCKS = """\
CA: gpu01 mlx5_0:
      0x00aa000000000011      7    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       4    1[  ] "MF0;rack7:MQM9700/U1" ( )
CA: gpu02 mlx5_0:
      0x00aa000000000012      8    1[  ] ==( 1X        106.25 Gbps Active/  LinkUp)==>       4    2[  ] "MF0;rack7:MQM9700/U1" (Could be 4X)
Switch: 0x00aa0000000000f1 MF0;rack7:MQM9700/U1:
           4    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       7    1[  ] "gpu01 mlx5_0" ( )
           4    2[  ] ==( 1X        106.25 Gbps Active/  LinkUp)==>       8    1[  ] "gpu02 mlx5_0" ( Could be 4X)
           4    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""  # noqa: E501

LINES = """\
0x00aa000000000011 "          gpu01 mlx5_0"      7    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>  0x00aa0000000000f1      4    1[  ] "rack7" ( )
0x00aa0000000000f1 "                 rack7"      4    1[ 1] ==( 4X        53.125 Gbps Active/  LinkUp) (HOQ:0 VL_Stall:7)==>  0x00aa000000000011      7    1[  ] "gpu01 mlx5_0" ( )
0x00aa0000000000f1 "                 rack7"      4    2[ 2] ==(                Down/Disabled)==>             [  ] "" ( )
"""  # noqa: E501

NET = """\
# A fabric for ibsim.
Switch 8 "one"
[1] "left"[1]
[2] "right" [2]

Hca 2 "left"
[1] "one"[1] w=2 s=4

Hca\t2 "right"
[2] "one"[2] w=1
"""

NODES = """\
Ca\t: 0x00aa000000000011 ports 1 "gpu01 mlx5_0"
Switch\t: 0x00aa0000000000f1 ports 65 "MF0;rack7:MQM9700/U1" enhanced port 0 lid 4 lmc 0
"""

IBSTAT = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.1002
\tNode GUID: 0x00aa000000000011
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 7
\t\tPort GUID: 0x00aa000000000011
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tCA type: MT4119
\tNumber of ports: 2
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 40 (FDR10)
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 10
\t\tLink layer: Ethernet
"""

IBSTATUS = """\
Infiniband device 'rocep1s0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:0001
\tbase lid:\t 0x0
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t Ethernet

"""

FABRICS = {
    "ibnetdiscover": DISCOVERED,
    "ports": PORTS,
    "blocks": BLOCKS,
    "lines": LINES,
    "net": NET,
}
ALL = FABRICS | {"nodes": NODES, "ibstat": IBSTAT, "ibstatus": IBSTATUS}


def fabric(text: str) -> IbFabric:
    read = read_topology(text.encode())
    assert isinstance(read, IbFabric)
    return read


def ports(text: str) -> IbPorts:
    read = read_topology(text.encode())
    assert isinstance(read, IbPorts)
    return read


def test_records_and_peers_without_one_are_told_apart() -> None:
    nodes = {node.description: node for node in fabric(DISCOVERED).nodes}

    assert {name for name, node in nodes.items() if node.has_record} == {
        "MF0;rack7:MQM9700/U1",
        "gpu01 mlx5_0",
        "gpu02 mlx5_0",
    }
    assert nodes['spine "A" north'].kind is IbNodeKind.SWITCH
    assert nodes["gpu01 mlx5_0"].device_id == "0x1021"
    assert nodes["gpu01 mlx5_0"].lid == 7
    assert nodes["MF0;rack7:MQM9700/U1"].guid == "00aa0000000000f1"


def test_each_cable_counts_once_with_what_both_ends_say() -> None:
    links = cables(fabric(DISCOVERED))

    assert [(cable.widths, cable.speeds) for cable in links] == [
        ((4, 4), ("NDR", "NDR")),
        ((2, 2), ("HDR", "HDR")),
        ((4,), ("NDR",)),
        ((4,), ("NDR",)),
    ]
    assert [cable.joins_switches for cable in links] == [False, False, True, False]


def test_two_ports_that_count_on_from_one_guid_are_one_adapter() -> None:
    read = fabric(PORTS)

    adapters = [node for node in read.nodes if node.kind is IbNodeKind.CA]
    assert [(node.description, len(node.ports)) for node in adapters] == [
        ("gpu01 mlx5_0", 1),
        ("gpu02 HCA-1", 2),
    ]
    assert [cable.speeds[0] for cable in cables(read)] == ["NDR", "FDR10", "FDR10"]
    assert {cable.second.port is None for cable in cables(read)} == {False}


@pytest.mark.parametrize(("text", "speed"), [(BLOCKS, "NDR"), (LINES, "HDR")])
def test_iblinkinfo_names_each_peer_whatever_its_layout(text: str, speed: str) -> None:
    read = fabric(text)

    switch = next(node for node in read.nodes if node.kind is IbNodeKind.SWITCH)
    assert switch.guid == "00aa0000000000f1"
    assert switch.ports[0].peer_guid == "00aa000000000011"
    assert (switch.ports[0].state, switch.ports[0].physical) == ("Active", "LinkUp")
    assert switch.ports[-1].peer_guid is None
    assert switch.ports[-1].state == "Down"
    assert {cable.speeds for cable in cables(read)} == {(speed, speed)}


def test_peers_of_a_listing_of_switches_have_no_record() -> None:
    switches = BLOCKS[BLOCKS.index("Switch:") :]

    read = fabric(switches)

    assert [(node.kind, node.has_record) for node in read.nodes] == [
        (IbNodeKind.SWITCH, True),
        (IbNodeKind.CA, False),
        (IbNodeKind.CA, False),
    ]
    assert [cable.widths for cable in cables(read)] == [(4,), (1,)]


def test_net_files_of_ibsim_are_fabrics() -> None:
    read = fabric(NET)

    assert [(node.guid, node.kind.value) for node in read.nodes] == [
        ("one", "switch"),
        ("left", "ca"),
        ("right", "ca"),
    ]
    assert [(cable.widths, cable.speeds) for cable in cables(read)] == [
        ((4,), ("QDR",)),
        ((1,), ()),
    ]


def test_a_list_of_nodes_has_no_links() -> None:
    read = fabric(NODES)

    assert [node.description for node in read.nodes] == ["gpu01 mlx5_0", "MF0;rack7:MQM9700/U1"]
    assert cables(read) == ()


def test_ports_of_a_host() -> None:
    first, second, third = ports(IBSTAT).ports
    assert (first.ca, first.port, first.state, first.rate_gbit_per_s) == (
        "mlx5_0",
        1,
        "Active",
        400,
    )
    assert first.guid == "00aa000000000011"
    assert second.rate_gbit_per_s == 40
    assert (third.ca, third.port, third.physical) == ("mlx5_1", 2, "Disabled")
    only = ports(IBSTATUS).ports[0]
    assert (only.ca, only.state, only.physical) == ("rocep1s0", "ACTIVE", "LinkUp")
    assert (only.rate_gbit_per_s, only.link_layer) == (100, "Ethernet")


@pytest.mark.parametrize("name", ALL)
def test_colours_and_line_ends_change_nothing(name: str) -> None:
    text = ALL[name]
    plain = read_topology(text.encode())

    assert read_topology(text.replace("\n", "\r\n").encode()) == plain
    coloured = "\n".join(f"\x1b[1;32m{line}\x1b[0m" for line in text.split("\n"))
    assert read_topology(coloured.encode()) == plain


@pytest.mark.parametrize("name", ALL)
def test_cut_anywhere_it_is_read_or_refused(name: str) -> None:
    text = ALL[name]
    outcomes = set()
    for end in range(len(text)):
        try:
            outcomes.add(type(read_topology(text[:end].encode())))
        except (NotATopologyError, TruncatedTopologyError) as error:
            outcomes.add(type(error))
    assert outcomes <= {
        type(read_topology(text.encode())),
        NotATopologyError,
        TruncatedTopologyError,
    }


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("ibnetdiscover", DISCOVERED.index(' lid 8 lmc 0 "MF0')),
        ("ibnetdiscover", DISCOVERED.index("sysimgguid=0xaa000000000012")),
        ("ibnetdiscover", DISCOVERED.rindex("xHDR") + 3),
        ("ibnetdiscover", DISCOVERED.rindex("Ca\t1") + 12),
        ("ports", PORTS.index("( 'gpu02") + 6),
        ("ports", PORTS.rindex("SW") + 9),
        ("blocks", BLOCKS.index("==>") + 2),
        ("blocks", BLOCKS.index("      0x00aa000000000012")),
        ("lines", LINES.index("Gbps") + 1),
        ("net", NET.rindex('"one"') + 3),
        ("ibstat", IBSTAT.rindex("\tPort 2")),
        ("ibstat", IBSTAT.rindex("Rate") + 3),
        ("ibstat", IBSTAT.rindex("Ethernet") + 3),
        ("ibstatus", IBSTATUS.index("rate:")),
    ],
)
def test_an_end_within_a_record_is_told(name: str, end: int) -> None:
    with pytest.raises(TruncatedTopologyError):
        read_topology(ALL[name][:end].encode())


def test_without_its_beginning_a_dump_is_cut_short() -> None:
    with pytest.raises(TruncatedTopologyError):
        read_topology(DISCOVERED[DISCOVERED.index("[2]") :].encode())


PIECES = sorted({line for text in ALL.values() for line in text.split("\n")})


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=60), max_size=12))
def test_any_lines_in_any_order_are_read_or_refused(lines: list[str]) -> None:
    outcome: object
    try:
        read = read_topology("\n".join(lines).encode("utf-8", "surrogatepass"))
        check(read)
        outcome = read.kind
    except (NotATopologyError, TruncatedTopologyError) as error:
        outcome = str(error)
    assert isinstance(outcome, TopologyKind) or "\n" not in str(outcome)


@pytest.mark.parametrize(
    ("figure", "lanes", "name"),
    [
        (2.5, 1, "SDR"),
        (10.0, 4, "QDR"),
        (10.3125, 4, "FDR10"),
        (14.0625, 4, "FDR"),
        (25.78125, 4, "EDR"),
        (53.125, 2, "HDR"),
        (106.25, 4, "NDR"),
        (212.5, 4, "XDR"),
        (56, 4, "FDR"),
        (100, 4, "EDR"),
        (100, 2, "HDR"),
        (400, 4, "NDR"),
        (37, 4, None),
    ],
)
def test_figures_mean_a_lane_or_all_of_them(figure: float, lanes: int, name: str | None) -> None:
    assert generation_of(figure, lanes) == name


def test_what_links_carry() -> None:
    assert data_gbit_per_s(4, "NDR") == 400
    assert data_gbit_per_s(4, "QDR") == 32
    assert data_gbit_per_s(2, "HDR") == 100
    assert data_gbit_per_s(4, "FDR") == pytest.approx(54.5, rel=0.01)
    assert data_gbit_per_s(4, "LDR") is None


def test_descriptions_name_hosts_and_switches() -> None:
    for text, host in (
        ("gpu01 mlx5_0", "gpu01"),
        ("gpu01.example.org HCA-2", "gpu01.example.org"),
        ("gpu01", "gpu01"),
        ("MT4129 ConnectX7   Mellanox Technologies", None),
        ("Mellanox Technologies Aggregation Node", None),
        ("localhost mlx5_0", None),
        ("", None),
    ):
        named = host_adapter(text)
        assert (named and named.host) == host, text
    assert switch_name("MF0;rack7:MQM9700/U1") == "rack7"
    assert switch_name("MF0;core:MCS8500/L01/U1") == "core/L01"
    assert switch_name("Quantum") == "Quantum"
