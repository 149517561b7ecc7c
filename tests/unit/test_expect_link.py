"""The expectation of a link: the least of what limits it, in one line."""
# ruff: noqa: RUF001 (a derivation is written with the multiplication sign operators read)

from dataclasses import replace

import pytest

from ncdiag.expect.link import Transport, expect_link
from ncdiag.expect.rates import PCIE_GENERATIONS
from ncdiag.model.host import Host, Nic, NicKind, PcieLink
from ncdiag.model.measurement import Expectation

A = Host(name="a", address="10.0.0.1")
B = Host(name="b", address="10.0.0.2")
VETH = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", mtu=1500)
ROCE = Nic(
    name="mlx5_0",
    kind=NicKind.ETHERNET,
    hca="mlx5_0",
    mtu=9000,
    speed_gbit_per_s=400,
    pcie=PcieLink(gigatransfers_per_s=32, lanes=16),
)
IB = replace(ROCE, kind=NicKind.INFINIBAND, mtu=4092, pcie=None)


def _expect(
    a: Host, a_nic: Nic, b: Host, b_nic: Nic, transport: Transport | None = None
) -> Expectation:
    found = expect_link(a, a_nic, b, b_nic, transport=transport)
    assert found is not None
    return found


def test_500_mbit_of_tcp_at_mtu_1500_are_478_of_payload() -> None:
    host = replace(A, rate_gbit_per_s=0.5)
    found = _expect(host, VETH, replace(host, name="b"), VETH)
    assert found.gbit_per_s == pytest.approx(0.478, abs=0.0005)
    assert found.derivation == "rate 500 Mbit/s × 0.956 TCP MTU 1500"


def test_jumbo_frames_leave_more_payload() -> None:
    host = replace(A, rate_gbit_per_s=0.5)
    nic = replace(VETH, mtu=9000)
    assert _expect(host, nic, host, nic).gbit_per_s == pytest.approx(0.5 * 8948 / 9014)


def test_a_nics_own_speed_counts_preamble_and_gap_too() -> None:
    nic = replace(VETH, speed_gbit_per_s=10)
    found = _expect(A, nic, B, nic)
    assert found.gbit_per_s == pytest.approx(10 * 1448 / 1538)
    assert found.derivation == "NIC 10 Gbit/s × 0.941 TCP MTU 1500"


def test_the_derivation_of_roce_names_nic_and_slot_each_with_its_efficiency() -> None:
    found = _expect(A, ROCE, B, ROCE)
    assert found.gbit_per_s == pytest.approx(392, abs=0.5)
    assert found.derivation == (
        "min(NIC 400 Gbit/s × 0.98 RoCEv2 MTU 4096, PCIe gen5 x16 504 Gbit/s × 0.87 TLP)"
    )


def test_a_downgraded_slot_is_the_limit() -> None:
    narrow = replace(ROCE, pcie=PcieLink(gigatransfers_per_s=16, lanes=8))
    found = _expect(A, narrow, B, ROCE)
    assert found.gbit_per_s == pytest.approx(126 * 0.87, abs=0.2)
    assert "PCIe gen4 x8 126 Gbit/s × 0.87 TLP" in found.derivation


def test_either_end_can_be_the_slower_one() -> None:
    slow = replace(ROCE, speed_gbit_per_s=100)
    there, back = _expect(A, slow, B, ROCE), _expect(B, ROCE, A, slow)
    assert there.gbit_per_s == back.gbit_per_s == pytest.approx(98.0, abs=0.1)


def test_roce_without_jumbo_frames_falls_to_path_mtu_1024() -> None:
    nic = replace(ROCE, mtu=1500)
    assert "RoCEv2 MTU 1024" in _expect(A, nic, B, nic).derivation


def test_infiniband_has_its_own_headers() -> None:
    found = _expect(A, IB, B, IB)
    assert found.gbit_per_s == pytest.approx(400 * 4096 / 4122)
    assert found.derivation == "NIC 400 Gbit/s × 0.994 InfiniBand MTU 4096"
    assert "TCP over IPoIB MTU 4092" in _expect(A, IB, B, IB, Transport.TCP).derivation


def test_the_transport_decides_not_what_the_nic_could_do() -> None:
    assert "TCP MTU 9000" in _expect(A, ROCE, B, ROCE, Transport.TCP).derivation


def test_rdma_needs_both_ends() -> None:
    plain = replace(ROCE, hca=None)
    assert "TCP" in _expect(A, ROCE, B, plain).derivation


def test_rate_overrides_nic_and_slot() -> None:
    nic = replace(ROCE, pcie=PcieLink(gigatransfers_per_s=2.5, lanes=1), speed_gbit_per_s=None)
    host = replace(A, rate_gbit_per_s=200)
    found = _expect(host, nic, host, nic)
    assert found.gbit_per_s == pytest.approx(196, abs=0.2)
    assert "PCIe" not in found.derivation


@pytest.mark.parametrize("pcie", [None, PcieLink(gigatransfers_per_s=32, lanes=16)])
def test_a_virtual_nic_without_speed_and_rate_gives_none(pcie: PcieLink | None) -> None:
    nic = replace(VETH, pcie=pcie)
    assert expect_link(A, nic, B, ROCE) is None
    assert expect_link(A, ROCE, B, nic) is None
    assert expect_link(replace(A, rate_gbit_per_s=1), nic, B, nic) is None


@pytest.mark.parametrize("tight", ["a", "b"])
def test_an_uplink_limits_only_what_leaves_the_leaf(tight: str) -> None:
    uplinks = {"a": 10.0, "b": 10.0, tight: 0.5}
    a = replace(A, rate_gbit_per_s=1, leaf="leaf1", uplink_gbit_per_s=uplinks["a"])
    b = replace(B, rate_gbit_per_s=1, leaf="leaf2", uplink_gbit_per_s=uplinks["b"])
    crossing = _expect(a, VETH, b, VETH)
    assert crossing.gbit_per_s == pytest.approx(0.478, abs=0.0005)
    assert "uplink 500 Mbit/s × 0.956 TCP MTU 1500" in crossing.derivation
    inside = _expect(a, VETH, replace(b, leaf="leaf1"), VETH)
    assert inside.gbit_per_s == pytest.approx(0.956, abs=0.001)


@pytest.mark.parametrize("generation", PCIE_GENERATIONS, ids=lambda one: one.name)
def test_every_pcie_generation_is_named_and_grows(generation: object) -> None:
    place = PCIE_GENERATIONS.index(generation)
    nic = replace(
        ROCE,
        speed_gbit_per_s=10_000,
        pcie=PcieLink(gigatransfers_per_s=PCIE_GENERATIONS[place].gigatransfers_per_s, lanes=16),
    )
    found = _expect(A, nic, B, nic)
    assert f"PCIe {PCIE_GENERATIONS[place].name} x16" in found.derivation
    # GB/s of a x16 slot as published, before packets: 4, 8, 15.75, 31.5, 63, 118.
    published = (4, 8, 15.75, 31.5, 63, 118)[place]
    assert found.gbit_per_s == pytest.approx(published * 8 * 0.87, rel=0.01)
