"""Fleets of like hosts: the odd ones are named, with what is odd, and nobody else is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import (
    HIDDEN_SWITCH,
    NVSWITCH,
    flat,
    matrix,
    meshed,
    renumbered,
    server,
    shuffled,
    with_adapter,
    with_device,
    with_gpu,
    without_card,
    without_gpu,
)

from ncdiag.diagnose.topology.classes import BY_NAME
from ncdiag.diagnose.topology.fleet import FleetDiff, MixedKindsError, compare
from ncdiag.model.topology import (
    Adapter,
    GpuLink,
    GpuLinkKind,
    GraphChannel,
    IbFabric,
    IbLocalPort,
    IbNode,
    IbNodeKind,
    IbPort,
    IbPorts,
    NcclGraph,
    NcclGraphs,
    NcclTopology,
    SlurmSwitch,
    SlurmTopology,
    Topology,
)

Change = Callable[[NcclTopology], NcclTopology]


def _fleet(dumps: Sequence[Topology]) -> list[tuple[str, Topology]]:
    return [(f"gpu{number:03}", dump) for number, dump in enumerate(dumps, 1)]


def _own(made: NcclTopology, number: int) -> NcclTopology:
    """The dump of another healthy host: its own ids and ranks, its rows in another order."""
    random = Random(number)
    counts = [5, 5, 4, 4]
    for at, gpu in enumerate(made.gpus):
        random.shuffle(counts)
        links = tuple(
            GpuLink(GpuLinkKind.NVLINK, f"0000:0{place}:00.0", count, NVSWITCH)
            for place, count in enumerate(counts)
        )
        made = with_gpu(made, at, links=links, rank=(gpu.rank or 0) + 8 * number)
    for at in range(len(made.adapters)):
        made = with_adapter(made, at, guid=f"0x{random.getrandbits(64):016x}")
    cpus = tuple(replace(cpu, host_hash=f"0x{number:016x}") for cpu in made.cpus)
    return shuffled(replace(made, cpus=cpus), random)


def _healthy(count: int) -> list[NcclTopology]:
    return [_own(server(), number) for number in range(count)]


def _accused(diff: FleetDiff) -> list[tuple[str, str]]:
    return [(f.where, f.name) for f in diff.findings if f.severity != "info"]


def _fewer_links(made: NcclTopology) -> NcclTopology:
    return with_gpu(made, 3, links=made.gpus[3].links[1:])


def _narrow(made: NcclTopology) -> NcclTopology:
    return with_device(made, made.adapters[3].pci, lanes=8)


def _old_generation(made: NcclTopology) -> NcclTopology:
    return with_device(made, made.adapters[3].pci, gigatransfers_per_s=8.0)


def _elsewhere(made: NcclTopology) -> NcclTopology:
    made = with_device(made, made.adapters[3].pci, parent=None, cpu=1 - made.adapters[3].cpu)
    return with_adapter(made, 3, cpu=1 - made.adapters[3].cpu)


def _slow_bridge(made: NcclTopology) -> NcclTopology:
    return with_device(made, made.pci[made.gpus[0].pci].parent, lanes=4)


FAULTS: dict[str, tuple[Change, str]] = {
    "links": (_fewer_links, "nvlink_missing"),
    "gpu": (lambda made: without_gpu(made, 3), "gpu_missing"),
    "card": (lambda made: without_card(made, 3), "nic_missing"),
    "port speed": (lambda made: with_adapter(made, 3, speed_gbit_per_s=200.0), "nic_speed_mixed"),
    "width": (_narrow, "pcie_downgraded_width"),
    "generation": (_old_generation, "pcie_downgraded_speed"),
    "socket": (_elsewhere, "fleet_differs"),
    "bridge": (_slow_bridge, "pcie_uplink_narrow"),
    "gpudirect": (lambda made: with_gpu(made, 3, gdr=False), "gdr_unavailable"),
}


def test_what_differs_between_healthy_hosts_is_set_aside() -> None:
    diff = compare(_fleet(_healthy(12)))
    assert diff.hosts == 12
    assert [(group.count, group.differs) for group in diff.groups] == [(12, ())]
    assert diff.findings == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_the_odd_host_is_named_with_its_class(fault: str) -> None:
    change, name = FAULTS[fault]
    dumps = _healthy(12)
    dumps[7] = change(dumps[7])
    diff = compare(_fleet(dumps))
    assert _accused(diff) == [("gpu008", name)]
    assert [group.count for group in diff.groups] == [11, 1]
    assert diff.groups[1].hosts == ("gpu008",)
    assert diff.groups[1].differs


def test_a_missing_card_is_told_by_name_and_bus_id() -> None:
    dumps = _healthy(12)
    gone = dumps[2].adapters[5]
    dumps[2] = without_card(dumps[2], 5)
    (finding,) = compare(_fleet(dumps)).findings
    busid = server().pci[server().adapters[gone.index or 0].pci or 0].busid
    assert f"one adapter fewer ({gone.name} at {busid} missing)" in finding.explanation
    assert "11 of 12 hosts" in finding.explanation


def test_links_to_a_missing_gpu_are_not_told_again() -> None:
    def mesh(made: NcclTopology) -> NcclTopology:
        return meshed(made, lambda _a, _b: 4)

    dumps = [mesh(flat()) for _ in range(8)]
    dumps[1] = mesh(without_gpu(flat(), 2))
    assert _accused(compare(_fleet(dumps))) == [("gpu002", "gpu_missing")]


def test_a_thin_link_between_two_gpus() -> None:
    dumps = [meshed(flat(), lambda _a, _b: 4) for _ in range(8)]
    dumps[1] = meshed(flat(), lambda a, b: 2 if {a, b} == {0, 3} else 4)
    diff = compare(_fleet(dumps))
    assert set(_accused(diff)) == {("gpu002", "nvlink_missing")}
    assert "2 links, elsewhere 4 links" in diff.findings[0].explanation


def test_many_hosts_each_with_a_fault_of_its_own() -> None:
    dumps = _healthy(24)
    for at, (change, _) in enumerate(FAULTS.values()):
        dumps[2 * at] = change(dumps[2 * at])
    accused = compare(_fleet(dumps))
    assert _accused(accused) == [
        (f"gpu{2 * at + 1:03}", name) for at, (_, name) in enumerate(FAULTS.values())
    ]


def test_two_hosts_that_differ_are_both_named_and_none_accused() -> None:
    diff = compare(_fleet([server(), without_card(server(), 0)]))
    assert _accused(diff) == []
    (finding,) = diff.findings
    assert finding.name == "fleet_differs"
    assert "gpu001" in finding.explanation
    assert "gpu002" in finding.explanation
    assert any("missing" in line for line in diff.groups[1].differs)


def test_of_half_and_half_none_is_accused() -> None:
    dumps = [server(cards=1 + number % 2) for number in range(8)]
    diff = compare(_fleet(dumps))
    assert _accused(diff) == []
    assert diff.findings


def test_a_second_design_of_four_in_ten_is_not_accused() -> None:
    dumps = [server(gbit_per_s=400.0 if number < 6 else 200.0) for number in range(10)]
    assert _accused(compare(_fleet(dumps))) == []


def test_one_host_and_no_host() -> None:
    assert compare(_fleet([server()])).findings == ()
    assert compare([]) == FleetDiff(0, (), ())


def test_another_model_of_server_is_told_once() -> None:
    dumps = _healthy(9) + [_own(renumbered(server(), Random(5)), number) for number in range(9, 12)]
    diff = compare(_fleet(dumps))
    assert _accused(diff) == []
    (finding,) = diff.findings
    assert finding.where == "gpu[010-012]"
    assert "bus numbers" in finding.explanation
    assert [group.differs for group in diff.groups] == [(), ("other bus numbers",)]


def test_an_odd_host_of_the_other_model_is_named() -> None:
    other = renumbered(server(), Random(5))
    dumps: list[NcclTopology] = [*_healthy(9), *[_own(other, number) for number in range(9, 15)]]
    dumps[11] = without_card(dumps[11], 2)
    assert _accused(compare(_fleet(dumps))) == [("gpu012", "nic_missing")]


def test_a_host_whose_numbers_moved_when_its_card_went_is_named() -> None:
    dumps = [*_healthy(9), renumbered(without_card(server(), 2), Random(5))]
    assert ("gpu010", "nic_missing") in _accused(compare(_fleet(dumps)))


def test_a_host_of_other_hardware_is_no_fault() -> None:
    other = renumbered(server(sm="100", nvlinks=18, sockets=1), Random(5))
    assert _accused(compare(_fleet([*_healthy(9), other]))) == []


def test_other_names_of_the_same_cards_are_told_as_info() -> None:
    dumps = [server() for _ in range(8)]
    dumps[3] = with_adapter(dumps[3], 2, name="rocep1s0")
    diff = compare(_fleet(dumps))
    assert _accused(diff) == []
    assert [(f.where, f.severity) for f in diff.findings] == [("gpu004", "info")]


def test_an_idle_gpu_is_told_as_info() -> None:
    dumps = [server() for _ in range(8)]
    dumps[3] = with_device(dumps[3], dumps[3].gpus[0].pci, gigatransfers_per_s=2.5)
    diff = compare(_fleet(dumps))
    assert _accused(diff) == []
    assert [finding.where for finding in diff.findings] == ["gpu004"]


def test_interfaces_of_containers_come_and_go() -> None:
    dumps = []
    for number in range(8):
        veth = Adapter(f"veth{number:07x}", 0, port=0, speed_gbit_per_s=10.0)
        dumps.append(replace(server(), adapters=(*server().adapters, veth)))
    assert compare(_fleet(dumps)).findings == ()


def test_hidden_switches_are_compared_by_their_sum() -> None:
    assert server().gpus[0].links[0].target == HIDDEN_SWITCH
    dumps = [server() for _ in range(5)] + [server(nvlinks=16)]
    assert _accused(compare(_fleet(dumps))) == [("gpu006", "nvlink_missing")]


# --- other kinds


def _ports(*states: str, rate: float = 400.0) -> IbPorts:
    return IbPorts(
        tuple(
            IbLocalPort(f"mlx5_{at}", 1, state, "LinkUp", rate, "InfiniBand", f"0x{at}{rate}")
            for at, state in enumerate(states)
        )
    )


def _graphs(channels: int) -> NcclGraphs:
    listed = (GraphChannel((), ("0", "1")),) * channels
    return NcclGraphs((NcclGraph(0, "ring", channels, 20.0, 20.0, "NVL", "PIX", channels=listed),))


def _cells(*, thin: bool) -> Topology:
    paths = [["X" if a == b else "NV18" for b in range(8)] for a in range(8)]
    if thin:
        paths[2][3] = paths[3][2] = "NV16"
    return matrix(paths, [["PIX"] * 8])


def _fabric(lanes: int) -> IbFabric:
    port = IbPort(1, "b", 1, "leaf", width=lanes, speed="NDR")
    return IbFabric((IbNode(IbNodeKind.CA, "a", "gpu001 mlx5_0", (port,)),))


def _slurm(nodes: tuple[str, ...]) -> SlurmTopology:
    return SlurmTopology("tree", (SlurmSwitch("leaf1", (), nodes),))


@pytest.mark.parametrize(
    ("usual", "odd", "name"),
    [
        (_ports("Active", "Active"), _ports("Active", "Down"), "ib_port_down"),
        (_ports("Active", "Active"), _ports("Active"), "nic_missing"),
        (_ports("Active"), _ports("Active", rate=200.0), "nic_speed_mixed"),
        (_graphs(12), _graphs(6), "fleet_differs"),
        (_cells(thin=False), _cells(thin=True), "nvlink_missing"),
        (matrix([["X"]], [["PIX"], ["SYS"]]), matrix([["X"]], [["PIX"]]), "nic_missing"),
        (_fabric(4), _fabric(1), "ib_link_width_mismatch"),
        (_slurm(("a", "b")), _slurm(("a",)), "fleet_differs"),
    ],
)
def test_other_kinds(usual: Topology, odd: Topology, name: str) -> None:
    diff = compare(_fleet([usual, usual, odd, usual]))
    assert set(_accused(diff)) == {("gpu003", name)}
    assert compare(_fleet([usual] * 4)).findings == ()


def test_dumps_of_different_kinds_are_refused() -> None:
    with pytest.raises(MixedKindsError, match=r"gpu002.*nccl-graph"):
        compare(_fleet([server(), _graphs(1)]))


def test_names_from_dumps_are_made_safe_to_print() -> None:
    dumps = [server() for _ in range(5)]
    dumps[0] = with_adapter(dumps[0], 0, name="\x1b[31m")
    diff = compare(_fleet(dumps))
    assert diff.findings
    assert all("\x1b" not in finding.explanation for finding in diff.findings)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(6, 20),
    st.dictionaries(st.integers(0, 19), st.sampled_from(sorted(FAULTS)), max_size=5),
    st.integers(0, 2**32),
)
def test_the_odd_hosts_exactly_and_in_any_order(
    hosts: int, planted: dict[int, str], seed: int
) -> None:
    odd = dict([(at, fault) for at, fault in planted.items() if at < hosts][: hosts // 3])
    dumps = _healthy(hosts)
    for at, fault in odd.items():
        dumps[at] = FAULTS[fault][0](dumps[at])
    fleet = _fleet(dumps)
    Random(seed).shuffle(fleet)
    diff = compare(fleet)
    assert all(f.severity in BY_NAME[f.name].severities for f in diff.findings)
    assert {where for where, _ in _accused(diff)} == {f"gpu{at + 1:03}" for at in odd}


def _two_models(each: int) -> list[NcclTopology]:
    """As many hosts of a model as of another, whose further cards stand under their own bridges."""
    first = server()
    second = server(sockets=2, switches=6)
    return [_own(one, number) for number, one in enumerate([first] * each + [second] * each)]


def test_half_and_half_are_two_models_and_nobody_is_accused() -> None:
    diff = compare(_fleet(_two_models(6)))
    assert _accused(diff) == []
    assert diff.models == (6, 6)
    assert sum(group.differs == () for group in diff.groups) == 1


def test_an_odd_host_is_told_against_its_own_model() -> None:
    dumps = _two_models(6)
    dumps[2] = without_card(dumps[2], 1)
    dumps[8] = without_card(dumps[8], 1)
    diff = compare(_fleet(dumps))
    assert {where for where, _ in _accused(diff)} == {"gpu003", "gpu009"}
    odd = next(group for group in diff.groups if group.hosts == ("gpu009",))
    assert all("missing" in line or "of the model of" in line for line in odd.differs)


def test_the_same_part_missing_on_some_hosts_is_no_model_of_its_own() -> None:
    dumps = _healthy(9)
    for at in (1, 4, 7):
        dumps[at] = without_gpu(dumps[at], 0)
    diff = compare(_fleet(dumps))
    assert diff.models == (9,)
    assert {where for where, _ in _accused(diff)} == {"gpu002", "gpu005", "gpu008"}
