"""What is found in fabrics: each class where it is planted, and nothing in its look-alikes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import IbLocalPort, IbPorts
from ncdiag.read.topology.read_topology import read_topology


@dataclass
class Fabric:
    """Writes ibnetdiscover: hosts by leaf, so many uplinks from each leaf to one spine."""

    hosts: int = 4
    leaves: int = 4
    uplinks: int = 2
    adapters: int = 1
    rate: str = "4xNDR"
    trunk: str = "4xNDR"
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        records: dict[str, list[str]] = {}
        for leaf in range(self.leaves):
            records[
                f'Switch 64 "S-00000000000000{leaf:02x}" # "leaf{leaf}" base port 0 lid 1 lmc 0'
            ] = []
        records['Switch 64 "S-00000000000000ff" # "spine" base port 0 lid 1 lmc 0'] = []
        switches = list(records)
        for leaf in range(self.leaves):
            for host in range(self.hosts):
                for adapter in range(self.adapters):
                    port = host * self.adapters + adapter + 1
                    guid = f"{leaf + 1:02x}{host:02x}{adapter:012x}"
                    name = f"n{leaf}{host} mlx5_{adapter}"
                    records[switches[leaf]].append(
                        f'[{port}] "H-{guid}"[1]({guid}) # "{name}" lid 9 {self.rate}'
                    )
                    records[f'Ca 1 "H-{guid}" # "{name}"'] = [
                        (
                            f'[1]({guid}) "S-00000000000000{leaf:02x}"[{port}] '
                            f'# lid 9 lmc 0 "leaf{leaf}" lid 1 {self.rate}'
                        )
                    ]
            for uplink in range(self.uplinks):
                up, down = 40 + uplink, leaf * self.uplinks + uplink + 1
                records[switches[leaf]].append(
                    f'[{up}] "S-00000000000000ff"[{down}] # "spine" lid 1 {self.trunk}'
                )
                records[switches[-1]].append(
                    f'[{down}] "S-00000000000000{leaf:02x}"[{up}] # "leaf{leaf}" lid 1 {self.trunk}'
                )
        self.lines = []
        for header, ports in records.items():
            self.lines += ["", "vendid=0x2c9", "devid=0x1021", header, *ports]

    def where(self, *words: str) -> list[int]:
        """Numbers of the port lines that hold all the words, their own record's name among them."""
        record, found = "", []
        for number, line in enumerate(self.lines):
            record = record if line.startswith("[") else line
            if line.startswith("[") and all(word in record + line for word in words):
                found.append(number)
        assert found, words
        return found

    def change(self, old: str, new: str, *words: str) -> None:
        for number in self.where(*words):
            assert old in self.lines[number]
            self.lines[number] = self.lines[number].replace(old, new)

    def remove(self, *words: str) -> None:
        for number in reversed(self.where(*words)):
            del self.lines[number]

    def found(self) -> list[tuple[str, str, str]]:
        return findings("\n".join(self.lines) + "\n")


def findings(text: str) -> list[tuple[str, str, str]]:
    found = check(read_topology(text.encode()))
    return [(one.severity.value, one.name, one.where) for one in found]


def bad(found: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    return [(name, where) for severity, name, where in found if severity != "info"]


HOST = "H-0201000000000000"  # n11


def test_a_healthy_fabric_has_no_findings() -> None:
    assert Fabric().found() == []
    assert Fabric(leaves=1, uplinks=0).found() == []
    assert Fabric(adapters=8, hosts=2).found() == []


@pytest.mark.parametrize("record", [HOST, f'Ca 1 "{HOST}'], ids=["both-ends", "one-end"])
def test_a_link_of_one_lane_is_narrow(record: str) -> None:
    fabric = Fabric()
    fabric.change("4xNDR", "1xNDR", record)

    assert fabric.found() == [("degraded", "ib_link_width_mismatch", "n11 mlx5_0")]


def test_split_cables_are_no_fault() -> None:
    fabric = Fabric()
    fabric.change("4xNDR", "2xNDR", HOST)
    assert fabric.found() == []
    assert Fabric(rate="1xSDR", trunk="4xSDR").found() == []


def test_an_adapter_slower_than_all_of_its_part_is_found() -> None:
    fabric = Fabric()
    fabric.change("4xNDR", "4xHDR", HOST)
    assert fabric.found() == [("degraded", "ib_link_speed_mismatch", "n11 mlx5_0")]

    number = next(n for n, line in enumerate(fabric.lines) if line.startswith(f'Ca 1 "{HOST}'))
    fabric.lines[number - 1] = "devid=0x1017"
    assert fabric.found() == [("info", "ib_link_speed_mismatch", "n11 mlx5_0")]


def test_ends_that_state_different_speeds_contradict_each_other() -> None:
    fabric = Fabric(hosts=1, leaves=2)
    fabric.change("4xNDR", "4xHDR", 'Ca 1 "H-0200')

    assert fabric.found() == [("degraded", "ib_link_speed_mismatch", "n10 mlx5_0")]


def test_a_slow_cable_between_switches_that_do_better_is_found() -> None:
    fabric = Fabric()
    fabric.change("4xNDR", "4xEDR", '"leaf2"', "[40]", '"S-00000000000000ff"')

    assert fabric.found() == [("degraded", "ib_link_speed_mismatch", "leaf2")]


def test_slow_hosts_below_fast_switches_are_no_fault() -> None:
    assert Fabric(rate="4xQDR", trunk="4xFDR10").found() == []


def test_a_link_that_one_record_does_not_list_is_one_sided() -> None:
    fabric = Fabric()
    fabric.remove('"leaf1" base', HOST)

    assert ("ib_link_one_sided", "leaf1") in bad(fabric.found())


def test_peers_without_a_record_are_no_fault() -> None:
    text = "\n".join(Fabric().lines)
    switch = text[: text.index("vendid", 20)]

    assert findings(f"{switch}\n".replace("devid=0x1021\n", "", 1)) == []


def test_a_cable_to_the_same_switch_is_a_loop() -> None:
    fabric = Fabric()
    header = next(n for n, line in enumerate(fabric.lines) if '"leaf3" base' in line)
    one, other = (
        f'[{a}] "S-0000000000000003"[{b}] # "leaf3" lid 1 4xNDR' for a, b in ((20, 21), (21, 20))
    )
    fabric.lines[header + 1 : header + 1] = [one, other]

    assert fabric.found() == [("degraded", "ib_self_loop", "leaf3")]


def test_an_adapter_without_a_port_is_told_once() -> None:
    fabric = Fabric()
    fabric.remove(f'Ca 1 "{HOST}')

    assert fabric.found() == [("degraded", "ca_without_links", "n11 mlx5_0")]


def test_a_leaf_that_lost_an_uplink_is_found() -> None:
    fabric = Fabric(leaves=5, uplinks=3)
    fabric.remove('"leaf4" base', '"S-00000000000000ff"[13]')
    fabric.remove('"spine" base', '[13] "S-0000000000000004"')

    assert fabric.found() == [("degraded", "ib_uplinks_uneven", "leaf4")]


def test_of_two_leaves_nobody_knows_which_is_wrong() -> None:
    fabric = Fabric(leaves=2, uplinks=3)
    fabric.remove('"leaf1" base', '"S-00000000000000ff"[4]')
    fabric.remove('"spine" base', '[4] "S-0000000000000001"')

    assert bad(fabric.found()) == []


def test_a_leaf_with_few_hosts_needs_few_uplinks() -> None:
    fabric = Fabric(leaves=5, uplinks=2)
    for host in ("n41", "n42", "n43"):
        fabric.remove('"leaf4" base', f'"{host} ')
        start = next(
            n for n, one in enumerate(fabric.lines) if one.startswith("Ca") and host in one
        )
        del fabric.lines[start - 3 : start + 2]
    fabric.remove('"leaf4" base', '"S-00000000000000ff"[9]')
    fabric.remove('"spine" base', '[9] "S-0000000000000004"')

    assert fabric.found() == [("info", "ib_uplinks_uneven", "leaf4")]


def without_adapter(fabric: Fabric, name: str) -> None:
    fabric.remove("Switch", f'"{name}"')
    start = next(n for n, one in enumerate(fabric.lines) if one.startswith("Ca") and name in one)
    del fabric.lines[start - 3 : start + 2]


def test_a_host_that_lost_an_adapter_is_found() -> None:
    fabric = Fabric(adapters=2)
    without_adapter(fabric, "n12 mlx5_1")

    assert ("degraded", "ib_host_hca_missing", "n12") in fabric.found()


def test_another_kind_of_host_may_have_fewer_adapters() -> None:
    fabric = Fabric(adapters=2)
    without_adapter(fabric, "n12 mlx5_1")
    renamed = "\n".join(fabric.lines).replace('"n12 mlx5_0"', '"storage-a mlx5_0"')

    assert bad(findings(f"{renamed}\n")) == []


STATES = """\
CA: {name} mlx5_0:
      0x00000000000001{number}      0    1[  ] ==( 4X 106.25 Gbps {state}/{physical})==>  {peer}
"""


def states(*of_ports: tuple[str, str]) -> str:
    return "".join(
        STATES.format(
            name=f"n{number}",
            number=f"{number:02x}",
            state=state,
            physical=physical,
            peer=f'1 {number}[ ] "leaf" ( )' if physical == "LinkUp" else '[ ] "" ( )',
        )
        for number, (state, physical) in enumerate(of_ports)
    )


def test_a_connected_port_that_is_not_active_is_down() -> None:
    up, waiting = ("Active", "LinkUp"), ("Initialize", "LinkUp")

    assert findings(states(up, up, waiting)) == [("degraded", "ib_port_down", "n2 mlx5_0")]
    assert findings(states(waiting, waiting)) == [("info", "ib_port_down", "fabric")]
    assert findings(states(up, up)) == []


UP = IbLocalPort("mlx5_0", 1, "Active", "LinkUp", 400.0, "InfiniBand")
DOWN = replace(UP, ca="mlx5_1", state="Down", physical="Polling")


def on_host(*of_host: IbLocalPort) -> list[tuple[str, str, str]]:
    return [(one.severity.value, one.name, one.where) for one in check(IbPorts(of_host))]


def test_ports_of_a_host_that_are_down() -> None:
    assert on_host(UP) == []
    assert on_host(UP, DOWN) == [("degraded", "ib_port_down", "mlx5_1:1")]
    off = replace(DOWN, physical="Disabled", link_layer="Ethernet")
    assert on_host(UP, off) == [("info", "ib_port_down", "mlx5_1:1")]
    second = replace(DOWN, ca="mlx5_0", port=2)
    assert on_host(UP, second) == [("info", "ib_port_down", "mlx5_0:2")]
    assert on_host(replace(UP, state=None)) == []


def test_one_slow_port_among_many_asks_for_a_second_look() -> None:
    many = [replace(UP, ca=f"mlx5_{number}") for number in range(4)]
    slow = replace(UP, ca="mlx5_9", rate_gbit_per_s=200.0)

    assert on_host(*many, slow) == [("info", "ib_link_speed_mismatch", "mlx5_9:1")]
    assert on_host(*many, slow, replace(slow, ca="mlx5_8")) == []


def test_a_port_slower_than_the_others_of_its_part_is_wrong() -> None:
    many = [replace(UP, ca=f"mlx5_{number}", part="MT4129") for number in range(7)]
    slow = replace(UP, ca="mlx5_9", part="MT4129", rate_gbit_per_s=100.0)
    storage = [replace(slow, ca=name, rate_gbit_per_s=200.0) for name in ("mlx5_7", "mlx5_8")]

    assert on_host(*many, slow) == [("degraded", "ib_link_speed_mismatch", "mlx5_9:1")]
    other_part = replace(slow, part="MT4123")
    assert on_host(*many, other_part) == [("info", "ib_link_speed_mismatch", "mlx5_9:1")]
    assert [severity for severity, *_ in on_host(*many, *storage)] == ["info", "info"]
    ethernet = [replace(one, link_layer="Ethernet") for one in (*many, slow)]
    assert [severity for severity, *_ in on_host(*ethernet)] == ["info"]


IBSTATUS = """\
Infiniband device 'mlx5_{number}' port 1 status:
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t {rate}
\tlink_layer:\t {layer}

"""


def ibstatus(*rates: str, layer: str = "InfiniBand") -> str:
    return "".join(
        IBSTATUS.format(number=number, rate=rate, layer=layer) for number, rate in enumerate(rates)
    )


def test_a_port_with_a_lane_of_four_is_narrow() -> None:
    rates = ["400 Gb/sec (4X NDR)"] * 7
    lame = [*rates, "100 Gb/sec (1X NDR)"]

    assert findings(ibstatus(*lame)) == [("degraded", "ib_link_width_mismatch", "mlx5_7:1")]
    assert findings(ibstatus(*rates)) == []
    assert findings(ibstatus(*["100 Gb/sec (1X NDR)"] * 8)) == []
    assert bad(findings(ibstatus(*lame, layer="Ethernet"))) == []


LINKINFO = """\
Switch: 0x00000000000000aa leaf:
{rows}
"""


def linkinfo(*rows: tuple[str, str]) -> str:
    lines = (
        f'      1   {port}[  ] ==( {link} Active/  LinkUp)==>  {port + 9}  1[  ] "n{port} mlx5_0" '
        f"( {remark})"
        for port, (link, remark) in enumerate(rows, start=1)
    )
    return LINKINFO.format(rows="\n".join(lines))


def test_what_iblinkinfo_says_a_link_could_be_is_believed() -> None:
    full = ("4X        25.78125 Gbps", "")
    slow = ("4X         14.0625 Gbps", "Could be 25.78125 Gbps")
    narrow = ("2X        25.78125 Gbps", "Could be 4X")

    most = (full, full, full)
    assert findings(linkinfo(*most, slow)) == [
        ("degraded", "ib_link_speed_mismatch", "n4 mlx5_0"),
    ]
    assert findings(linkinfo(*most, narrow)) == [
        ("degraded", "ib_link_width_mismatch", "n4 mlx5_0"),
    ]
    both = (narrow[0], "Could be 4X Could be 53.125 Gbps")
    assert {name for _, name, _ in findings(linkinfo(*most, both))} == {
        "ib_link_width_mismatch",
        "ib_link_speed_mismatch",
    }
    assert findings(linkinfo(full, full)) == []


def test_a_fabric_whose_links_all_could_be_faster_is_set_up_so() -> None:
    slow = ("4X         14.0625 Gbps", "Could be 25.78125 Gbps")

    assert findings(linkinfo(slow, slow, slow)) == [("info", "ib_link_speed_mismatch", "fabric")]
