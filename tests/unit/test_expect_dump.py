"""Machines out of topology dumps, and pairs of hosts and GPUs."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.expect.collective import CollectiveExpectation, expect_collective
from ncdiag.expect.hardware import find_machine
from ncdiag.expect.machine import HostPath, LinkLayer, Machine
from ncdiag.expect.machine_of_dump import machine_of_dump
from ncdiag.expect.pair import expect_far_gpus, expect_gpus, expect_hosts
from ncdiag.expect.traffic import Algorithm, Collective
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    GpuLink,
    GpuLinkKind,
    GpuMatrix,
    NcclTopology,
    PciDevice,
)

SWITCH, INFINIBAND, ETHERNET, DISPLAY = 0x060400, 0x020700, 0x020000, 0x030200
NVSWITCH = 0x068000
A100 = find_machine("a100-8x200g")


def bus(number: int) -> str:
    return f"0000:{number:02x}:00.0"


def host(
    gpus: int = 8,
    nics: int = 8,
    *,
    sm: str = "90",
    links: tuple[GpuLink, ...] = (
        GpuLink(GpuLinkKind.NVLINK, "0000:c0:00.0", 9, NVSWITCH),
        GpuLink(GpuLinkKind.NVLINK, "0000:c1:00.0", 9, NVSWITCH),
    ),
    nic_class: int = INFINIBAND,
    speed: float | None = 400.0,
    lanes: int = 16,
    rate: float = 32.0,
    elements: bool = True,
    gdr: bool = True,
) -> NcclTopology:
    """Two CPUs; a switch for each GPU, with a NIC beside the first ``nics`` of them."""
    pci: list[PciDevice] = []
    found: list[Gpu] = []
    adapters: list[Adapter] = []
    for number in range(gpus):
        cpu = number * 2 // gpus
        switch = len(pci)
        pci.append(PciDevice(cpu=cpu, busid=bus(0x80 + number), pci_class=SWITCH))
        pci.append(device(cpu, switch, bus(number + 1), DISPLAY, rate=rate, lanes=lanes))
        found.append(
            Gpu(
                pci=switch + 1,
                index=number,
                sm=sm if elements else None,
                gdr=gdr if elements else None,
                links=links,
                has_element=elements,
            )
        )
        if number < nics:
            pci.append(device(cpu, switch, bus(0x40 + number), nic_class, rate=rate, lanes=lanes))
            adapters.append(
                Adapter(
                    name=f"mlx5_{number}",
                    cpu=cpu,
                    pci=switch + 2,
                    speed_gbit_per_s=speed,
                    guid="0x1",
                    gdr=gdr,
                )
            )
    return NcclTopology((Cpu(0), Cpu(1)), tuple(pci), tuple(found), tuple(adapters))


def device(
    cpu: int, parent: int, busid: str, pci_class: int, *, rate: float, lanes: int
) -> PciDevice:
    return PciDevice(
        cpu=cpu,
        parent=parent,
        busid=busid,
        pci_class=pci_class,
        gigatransfers_per_s=rate,
        lanes=lanes,
    )


def all_reduce(machine: Machine, nodes: int = 1, **options: object) -> CollectiveExpectation:
    return expect_collective(machine, Collective.ALL_REDUCE, nodes, **options)  # type: ignore[arg-type]


def test_a_dump_of_a_known_machine_gives_what_the_catalogue_gives() -> None:
    machine = machine_of_dump(host(), "gpu001.xml")
    assert (machine.gpus, len(machine.rails), machine.generation) == (8, 8, "Hopper")
    for nodes in (1, 4):
        expected = all_reduce(find_machine("h100-8x400g"), nodes)
        assert all_reduce(machine, nodes).busbw_gb_per_s == pytest.approx(expected.busbw_gb_per_s)


def test_the_class_of_a_nic_says_what_frames_its_packets() -> None:
    roce = machine_of_dump(host(nic_class=ETHERNET), "x")
    assert {rail.layer for rail in roce.rails} == {LinkLayer.ROCE}
    assert {rail.layer for rail in machine_of_dump(host(), "x").rails} == {LinkLayer.INFINIBAND}


def test_downgraded_pcie_shows_in_what_can_be_expected() -> None:
    machine = machine_of_dump(host(lanes=8, rate=16.0), "x")
    found = all_reduce(machine, 4, algorithm=Algorithm.RING)
    assert found.binding == "PCIe of the NIC"
    assert found.busbw_gb_per_s == pytest.approx(8 * 16 * 8 / 8 * 128 / 130 * 0.87)


def test_an_idle_gpus_link_limits_nothing() -> None:
    idle = host()
    pci = tuple(
        replace(one, gigatransfers_per_s=2.5) if one.pci_class == DISPLAY else one
        for one in idle.pci
    )
    machine = machine_of_dump(replace(idle, pci=pci), "x")
    assert all_reduce(machine, 4).busbw_gb_per_s == pytest.approx(
        all_reduce(machine_of_dump(idle, "x"), 4).busbw_gb_per_s
    )


def test_two_ports_of_one_adapter_share_its_slot() -> None:
    topology = host(nics=1)
    (port,) = topology.adapters
    machine = machine_of_dump(replace(topology, adapters=(port, replace(port, port=2))), "x")
    assert [rail.slot.lanes for rail in machine.rails if rail.slot] == [8, 8]


def test_slow_ports_are_no_rails_and_impossible_speeds_count_for_nothing() -> None:
    topology = host(nics=3)
    speeds = (400.0, 1.0, 90_000.0)
    adapters = tuple(
        replace(one, speed_gbit_per_s=speed)
        for one, speed in zip(topology.adapters, speeds, strict=True)
    )
    machine = machine_of_dump(replace(topology, adapters=adapters), "x")
    assert [rail.name for rail in machine.rails] == ["mlx5_0"]


def test_without_gpu_elements_nobody_says_how_gpus_are_joined() -> None:
    machine = machine_of_dump(host(elements=False, links=()), "template.xml")
    assert not machine.fabric_known
    for attempt in (lambda: all_reduce(machine), lambda: expect_gpus(machine, 0, 1)):
        with pytest.raises(UndecidedError, match=r"template\.xml does not say"):
            attempt()
    assert expect_hosts(machine, machine).gb_per_s > 0


def test_links_straight_to_peers_make_rings_of_as_many_as_there_are() -> None:
    topology = host(gpus=4, sm="80", links=())
    peers = [topology.busid(gpu) for gpu in topology.gpus]
    gpus = tuple(
        replace(
            gpu,
            links=tuple(
                GpuLink(GpuLinkKind.NVLINK, peer, 4)
                for peer in peers
                if peer != topology.busid(gpu)
            ),
        )
        for gpu in topology.gpus
    )
    machine = machine_of_dump(replace(topology, gpus=gpus), "x")
    assert machine.fabric is not None
    assert machine.fabric.ring_links == ((2, 4), (3, 8), (4, 12))
    assert all_reduce(machine).busbw_gb_per_s == pytest.approx(240)
    assert expect_gpus(machine, 0, 3).gb_per_s == pytest.approx(80)


@pytest.mark.parametrize(
    ("gcn", "links", "each"), [("gfx942", 1, 48), ("gfx950", 1, 57.6), ("gfx90a", 2, 36)]
)
def test_links_of_amd_yield_the_same_as_in_the_catalogue(gcn: str, links: int, each: float) -> None:
    topology = host(gpus=4, sm="304")
    gpus = tuple(
        replace(
            gpu,
            gcn=gcn,
            links=tuple(
                GpuLink(GpuLinkKind.XGMI, topology.busid(peer), links, DISPLAY)
                for peer in topology.gpus
                if peer is not gpu
            ),
        )
        for gpu in topology.gpus
    )
    machine = machine_of_dump(replace(topology, gpus=gpus), "x")
    assert all_reduce(machine).busbw_gb_per_s == pytest.approx(3 * links * each)
    found = expect_collective(machine, Collective.SENDRECV, 1)
    assert found.busbw_gb_per_s == pytest.approx(links * each)


def test_gpus_without_a_link_meet_by_the_one_that_is_joined_to_both() -> None:
    found = expect_gpus(find_machine("v100-4x100g"), 0, 7)
    assert found.way == "NVLink through GPU 4, 2 links"
    assert found.gb_per_s == pytest.approx(40)
    assert found.copy_gb_per_s is None


def test_bridges_join_in_twos_and_the_rest_goes_by_pcie() -> None:
    topology = host(gpus=4, sm="80", links=(), rate=16.0)
    gpus = tuple(
        replace(
            gpu,
            links=(GpuLink(GpuLinkKind.NVLINK, topology.busid(topology.gpus[number ^ 1]), 12),),
        )
        for number, gpu in enumerate(topology.gpus)
    )
    machine = machine_of_dump(replace(topology, gpus=gpus), "x")
    assert machine.host_path is HostPath.HOST_BRIDGE
    assert all_reduce(machine, gpus_per_node=2).binding == "NVLink"
    assert all_reduce(machine).binding == "PCIe host bridge"
    assert expect_gpus(machine, 0, 1).gb_per_s == pytest.approx(240)
    assert expect_gpus(machine, 1, 2).gb_per_s < 30


def test_links_listed_again_for_every_peer_stand_for_a_switch() -> None:
    topology = host(sm="100", links=())
    peers = [topology.busid(gpu) for gpu in topology.gpus]
    gpus = tuple(
        replace(
            gpu,
            links=tuple(
                GpuLink(GpuLinkKind.NVLINK, peer, 18)
                for peer in peers
                if peer != topology.busid(gpu)
            ),
        )
        for gpu in topology.gpus
    )
    machine = machine_of_dump(replace(topology, gpus=gpus), "x")
    assert machine.fabric is not None
    assert (machine.fabric.links, machine.fabric.switched) == (18, True)


def test_several_hosts_in_one_dump_are_one_domain() -> None:
    topology = host(gpus=4, sm="100")
    cpus = (Cpu(0, host_hash="0xa"), Cpu(0, host_hash="0xb"))
    machine = machine_of_dump(replace(topology, cpus=cpus), "x")
    assert machine.gpus == 2
    assert machine.fabric is not None
    assert machine.fabric.domain_gpus == 4
    assert all_reduce(machine, 2).algorithm in {Algorithm.NVLS, Algorithm.RING}


def test_what_is_no_nccl_topology_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match=r"m\\x1b\.txt is no NCCL topology"):
        machine_of_dump(GpuMatrix((), (), ()), "m\x1b.txt")
    with pytest.raises(UndecidedError, match="neither a GPU nor a NIC"):
        machine_of_dump(NcclTopology((Cpu(0),), (), (), ()), "x")


numbers = st.one_of(st.none(), st.integers(-2, 4), st.sampled_from([16, 10**9]))
rates = st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 2.5, 32.0, 1e12]))
targets = st.sampled_from([None, bus(1), bus(2), "0000:c0:00.0", "fffffff:ff:ff.0"])
gpu_links = st.builds(
    GpuLink,
    st.sampled_from(GpuLinkKind),
    targets,
    numbers,
    st.sampled_from([None, NVSWITCH, DISPLAY]),
)


@given(st.data(), st.integers(1, 4), st.integers(0, 4))
def test_any_topology_is_a_machine_or_one_of_our_errors(
    data: st.DataObject, gpus: int, nics: int
) -> None:
    topology = host(gpus, min(gpus, nics))
    odd = replace(
        topology,
        gpus=tuple(
            replace(
                gpu,
                sm=data.draw(st.sampled_from([None, "", "x", "70", "86", "90", "100", "gfx942"])),
                gdr=data.draw(st.sampled_from([None, True, False])),
                links=data.draw(st.lists(gpu_links, max_size=3).map(tuple)),
                c2c_gb_per_s=data.draw(rates),
            )
            for gpu in topology.gpus
        ),
        pci=tuple(
            replace(one, gigatransfers_per_s=data.draw(rates), lanes=data.draw(numbers))
            for one in topology.pci
        ),
        adapters=tuple(
            replace(one, speed_gbit_per_s=data.draw(rates), pci=data.draw(st.just(one.pci)))
            for one in topology.adapters
        ),
    )
    with suppress(NcdiagError):
        machine = machine_of_dump(odd, "odd.xml")
        assert machine.gpus == gpus
        for rail in expect_hosts(machine, machine).rails:
            assert rail.gb_per_s > 0
    with suppress(NcdiagError):
        assert all_reduce(machine_of_dump(odd, "odd.xml"), 2).busbw_gb_per_s > 0
    with suppress(NcdiagError):
        assert expect_gpus(machine_of_dump(odd, "odd.xml"), 0, gpus - 1).gb_per_s > 0


def test_a_dump_of_nics_alone_tells_of_hosts() -> None:
    topology = host(nics=2)
    machine = machine_of_dump(replace(topology, gpus=()), "x")
    assert expect_hosts(machine, machine).gb_per_s == pytest.approx(2 * 50 * 4096 / 4122)
    with pytest.raises(UndecidedError, match="shows no GPU"):
        all_reduce(machine, 2)
    with pytest.raises(UndecidedError, match="shows no GPU"):
        expect_gpus(machine, 0, 1)


def test_a_dump_of_absurd_size_is_refused() -> None:
    topology = host(gpus=200, nics=0)
    with pytest.raises(UsageError, match="200 GPUs on one host"):
        machine_of_dump(topology, "x")


def test_a_pair_of_hosts_is_as_good_as_the_worse_of_both() -> None:
    found = expect_hosts(find_machine("h100-8x400g"), A100)
    assert [rail.rail for rail in found.rails] == list(range(8))
    assert found.rails[0].gb_per_s == pytest.approx(25 * 4096 / 4122)
    assert found.gb_per_s == pytest.approx(8 * 25 * 4096 / 4122)
    assert expect_hosts(A100, find_machine("a100-4x200g")).unmatched == 4


def test_pxn_keeps_to_the_receivers_rail_and_without_it_rails_are_crossed() -> None:
    with_it = expect_far_gpus(A100, A100, 0, 3)
    assert with_it.way == "PXN: NVLink to GPU 3, then rail 3"
    without = expect_far_gpus(A100, A100, 0, 3, pxn=False)
    assert "rail 0 to rail 3: crosses rails" in without.way
    assert expect_far_gpus(A100, A100, 3, 3).way == "rail 3"
    pcie = find_machine("l40s-pcie")
    assert "crosses rails" in expect_far_gpus(pcie, pcie, 0, 7).way


def test_copies_get_more_out_of_nvlink_than_kernels() -> None:
    found = expect_gpus(A100, 0, 7)
    assert found.gb_per_s == pytest.approx(240)
    assert found.copy_gb_per_s == pytest.approx(300 * 0.87)


@pytest.mark.parametrize(("first", "second"), [(0, 8), (8, 0), (0, 0)])
def test_gpus_that_are_no_pair_are_one_clear_line(first: int, second: int) -> None:
    with pytest.raises(UsageError, match=r"has no GPU 8|is no pair"):
        expect_gpus(A100, first, second)
