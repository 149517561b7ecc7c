"""What hosts are compared with by what they say of themselves."""

from dataclasses import replace

import pytest

from ncdiag.expect.collective import expect_collective
from ncdiag.expect.machine import LinkLayer
from ncdiag.expect.machine_of_facts import alike, machine_of_facts
from ncdiag.expect.traffic import Collective
from ncdiag.model.host import Gpu, HostFacts, Nic, NicKind, PcieLink

H100 = "NVIDIA H100 80GB HBM3"
GEN5 = PcieLink(gigatransfers_per_s=32.0, lanes=16)
GEN4 = PcieLink(gigatransfers_per_s=16.0, lanes=16)


def ports(
    count: int, gbit_per_s: float | None = 400.0, kind: NicKind = NicKind.INFINIBAND
) -> tuple[Nic, ...]:
    return tuple(
        Nic(name=f"mlx5_{n}", kind=kind, hca=f"mlx5_{n}", speed_gbit_per_s=gbit_per_s, pcie=GEN5)
        for n in range(count)
    )


def facts(gpu: str = H100, gpus: int = 8, nics: tuple[Nic, ...] | None = None) -> HostFacts:
    return HostFacts(
        hostname="h",
        gpus=tuple(Gpu(index=n, name=gpu) for n in range(gpus)),
        nics=ports(8) if nics is None else nics,
    )


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (facts(), "h100-8x400g"),
        (facts(nics=ports(8, kind=NicKind.ETHERNET)), "h100-8x400g-roce"),
        (facts("NVIDIA A100-SXM4-80GB", nics=ports(4, 200)), "a100-4x200g"),
        (facts("NVIDIA H200"), "h200-8x400g"),
        (facts("NVIDIA B200"), "b200-8x400g"),
        (facts(nics=(*ports(8), *ports(1, 100.0, NicKind.ETHERNET))), "h100-8x400g"),
    ],
)
def test_hosts_that_the_catalogue_knows_are_found_in_it(one: HostFacts, name: str) -> None:
    machine = machine_of_facts([one, one])
    assert machine is not None
    assert machine.name == f"{name}, as the hosts say"


def test_others_are_made_of_their_gpus_and_the_rates_of_their_nics() -> None:
    one = facts(nics=ports(2, 200.0, NicKind.ETHERNET))
    machine = machine_of_facts([one, one])
    assert machine is not None
    assert machine.name == "8 H100 SXM, 2 x 200 Gbit/s RoCEv2, as the hosts say"
    assert [rail.layer for rail in machine.rails] == [LinkLayer.ROCE] * 2
    expected = expect_collective(machine, Collective.ALL_REDUCE, 4)
    assert 40 < expected.busbw_gb_per_s < 50


def test_ports_beyond_one_for_each_gpu_are_not_counted_on() -> None:
    machine = machine_of_facts([facts(nics=ports(10))])
    assert machine is not None
    assert len(machine.rails) == 8


def test_a_slot_that_runs_slow_on_one_host_lowers_no_expectation() -> None:
    slow = tuple(replace(nic, pcie=GEN4) for nic in ports(2))
    machine = machine_of_facts([facts(nics=slow), facts(nics=ports(2))])
    assert machine is not None
    assert {rail.slot for rail in machine.rails} == {GEN5}


def test_one_host_needs_no_nic() -> None:
    assert machine_of_facts([facts(nics=())]) is not None
    assert machine_of_facts([facts(nics=()), facts(nics=())]) is None


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [facts(), facts(gpus=7)],
        [facts(), facts("NVIDIA H200")],
        [facts(), facts(nics=ports(7))],
        [facts(), facts(nics=ports(8, 200.0))],
    ],
)
def test_of_hosts_that_differ_nothing_is_expected(hosts: list[HostFacts]) -> None:
    assert machine_of_facts(hosts) is None
    assert alike(hosts) == (not hosts)


@pytest.mark.parametrize(
    "one",
    [
        facts("NVIDIA A100 80GB PCIe"),
        facts("NVIDIA H100 PCIe"),
        facts("NVIDIA H200 NVL"),
        facts("NVIDIA GB200"),
        facts("NVIDIA GeForce RTX 4090"),
        facts(gpus=4),
        facts(gpus=0),
        facts(nics=ports(8, None)),
        facts(nics=(Nic(name="eth0", kind=NicKind.ETHERNET, speed_gbit_per_s=100.0),)),
    ],
)
def test_of_what_is_not_known_for_sure_nothing_is_expected(one: HostFacts) -> None:
    assert machine_of_facts([one, one]) is None
