"""Adapters: far, missing, slow or without GPUDirect, and what only looks so."""

from dataclasses import replace

import pytest
from servers import (
    classes,
    faults,
    flat,
    server,
    with_adapter,
    with_device,
    with_gpu,
    with_port,
    without_card,
)

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import Adapter, NcclTopology


def _busid(made: NcclTopology, at: int | None) -> str | None:
    return made.pci[at or 0].busid


def test_a_card_on_the_wrong_socket_leaves_its_gpu_far() -> None:
    made = server()
    made = with_device(made, made.adapters[2].pci, parent=None, cpu=1)
    made = with_adapter(made, 2, cpu=1)
    assert ("gpu_nic_far", made.busid(made.gpus[2])) in faults(made)


def test_one_adapter_for_the_whole_server_is_a_design() -> None:
    made = server(cards=0)
    for parent in (None, 0):
        one = with_port(made)
        one = with_device(one, one.adapters[-1].pci, parent=parent)
        assert faults(one) == []


def test_fewer_adapters_than_pairs_of_gpus_leave_some_far_by_design() -> None:
    made = server(sockets=2, switches=1, gpus=6, cards=2)
    made = without_card(made, 3)
    assert "gpu_nic_far" not in classes(made)


def test_everything_through_the_sockets_is_a_design() -> None:
    assert faults(flat()) == []


def test_half_of_the_gpus_near_an_adapter_is_a_design() -> None:
    made = server()
    for at in (6, 4, 2, 0):
        made = without_card(made, at)
    assert "gpu_nic_far" not in classes(made)


def test_a_gpu_whose_data_goes_through_c2c_is_not_far() -> None:
    made = server()
    made = with_gpu(made, 2, c2c_gb_per_s=450.0)
    made = with_device(made, made.adapters[2].pci, parent=None)
    assert "gpu_nic_far" not in classes(made)


def test_the_only_switch_with_an_adapter_fewer_is_named_with_its_gpu() -> None:
    made = without_card(server(sockets=1, switches=8, cards=4), 9)
    (finding,) = [finding for finding in check(made) if finding.name == "nic_missing"]
    bridge = made.pci[made.gpus[2].pci].parent
    assert finding.where == _busid(made, bridge)
    assert str(made.busid(made.gpus[2])) in finding.explanation
    assert "3 adapters" in finding.explanation
    assert "other 7" in finding.explanation


def test_a_missing_adapter_is_found_beside_one_that_hangs_on_the_socket() -> None:
    made = with_port(server(sockets=2, switches=2, gpus=2))
    made = without_card(made, 0)
    assert "nic_missing" in classes(made)


def test_of_two_sockets_nobody_knows_how_many_are_right() -> None:
    made = without_card(server(sockets=2, switches=1, gpus=4, cards=3), 0)
    assert "nic_missing" not in classes(made)


def test_switches_without_a_majority_are_not_judged() -> None:
    made = without_card(without_card(server(switches=2, cards=2), 7), 0)
    assert "nic_missing" not in classes(made)


def test_a_socket_without_its_adapter() -> None:
    assert ("nic_missing", "NUMA node 1") in faults(without_card(flat(), 1))


def test_one_port_at_half_speed_is_named() -> None:
    made = with_adapter(server(), 5, speed_gbit_per_s=200.0)
    (finding,) = check(made)
    assert (finding.name, finding.severity, finding.where) == (
        "nic_speed_mixed", "degraded", "mlx5_5",
    )  # fmt: skip
    assert "7 of the 8" in finding.explanation


@pytest.mark.parametrize("speed", [100.0, 180.0, 200.0, 400.0, 800.0])
def test_any_speed_of_all_ports_is_a_design(speed: float) -> None:
    assert check(server(gbit_per_s=speed, cards=2)) == ()


def test_a_storage_pair_near_no_gpu_explains_a_slower_speed() -> None:
    made = with_port(with_port(server(), speed_gbit_per_s=200.0), speed_gbit_per_s=200.0)
    assert classes(made) == {"nic_speed_mixed": "info"}


def test_another_model_explains_a_slower_speed() -> None:
    made = with_port(flat(8, 8), speed_gbit_per_s=100.0, device={"device": "0xa2d6"})
    assert faults(made) == []


def test_an_extra_card_beside_full_rails_explains_a_slower_speed() -> None:
    made = server(cards=2)
    for at in range(1, 16, 2):
        made = with_adapter(made, at, speed_gbit_per_s=100.0)
    made = with_adapter(made, 1, speed_gbit_per_s=100.0)
    assert faults(made) == []


def test_sockets_beside_fast_ports_are_no_mixed_speed() -> None:
    made = with_port(server(), name="eno1", port=0, speed_gbit_per_s=10.0, gdr=False)
    assert check(made) == ()


def test_a_bond_beside_the_rails_is_told_as_info() -> None:
    made = with_port(server(), name="mlx5_bond_0", speed_gbit_per_s=200.0)
    assert faults(made) == []


def test_merged_ports_count_by_the_port() -> None:
    made = with_adapter(server(ports=1), 0, name="mlx5_0+mlx5_9", speed_gbit_per_s=800.0)
    assert check(made) == ()


def test_ports_of_two_speeds_without_a_majority_are_told_without_blame() -> None:
    made = with_adapter(flat(2, 2), 0, speed_gbit_per_s=100.0)
    assert faults(made) == []
    assert classes(made)["nic_speed_mixed"] == "info"


@pytest.mark.parametrize("speed", [0.0, -1.0, 200_000.0])
def test_a_speed_no_port_has(speed: float) -> None:
    made = with_adapter(server(), 1, speed_gbit_per_s=speed)
    assert ("nic_speed_implausible", "mlx5_1") in faults(made)


def test_a_wrong_unit_throughout_is_told_as_info() -> None:
    made = server(gbit_per_s=200_000.0)
    assert classes(made) == {"nic_speed_implausible": "info"}


def test_a_socket_without_a_speed_is_not_judged() -> None:
    made = with_port(server(), name="eth0", port=0, speed_gbit_per_s=-1.0, gdr=False)
    assert check(made) == ()


def test_gpudirect_off_on_one_gpu_and_on_all() -> None:
    one = with_gpu(server(), 3, gdr=False)
    assert faults(one) == [("gdr_unavailable", one.busid(one.gpus[3]))]
    none = server()
    for at in range(8):
        none = with_gpu(none, at, gdr=False)
    assert classes(none) == {"gdr_unavailable": "info"}


def test_gpudirect_off_on_one_card_and_on_all() -> None:
    assert faults(with_adapter(server(), 3, gdr=False)) == [("gdr_unavailable", "mlx5_3")]
    none = server()
    for at in range(8):
        none = with_adapter(none, at, gdr=False)
    assert classes(none) == {"gdr_unavailable": "info"}


def test_gpudirect_off_on_another_model_is_told_as_info() -> None:
    made = with_port(server(), gdr=False, device={"device": "0xa2d6"})
    assert faults(made) == []


def test_gpudirect_that_is_not_stated_is_unknown() -> None:
    made = with_adapter(with_gpu(server(), 3, gdr=None), 3, gdr=None)
    assert check(made) == ()


@pytest.mark.parametrize("stem", ["veth", "cali", "docker", "br-", "virbr", "tunl", "flannel."])
def test_many_virtual_interfaces(stem: str) -> None:
    made = server()
    few = tuple(Adapter(f"{stem}{at}a", 0, port=0, speed_gbit_per_s=10.0) for at in range(8))
    assert check(replace(made, adapters=made.adapters + few)) == ()
    more = (*few, Adapter(f"{stem}9", 0, port=0))
    found = classes(replace(made, adapters=made.adapters + more))
    assert found == {"virtual_nics_many": "info"}


def test_only_sockets() -> None:
    made = server(cards=0)
    same = (Adapter("eth0", 0, port=0), Adapter("eth0", 1, port=0))
    assert classes(replace(made, adapters=same)) == {"no_rdma_nic": "info"}


def test_no_adapter_at_all_says_nothing_of_them() -> None:
    assert check(server(cards=0)) == ()


def test_adapters_known_by_class_only_may_be_rdma() -> None:
    made = server()
    bare = tuple(Adapter(None, a.cpu, a.pci, has_element=False) for a in made.adapters)
    assert check(replace(made, adapters=bare)) == ()


def test_two_ports_of_one_card_are_no_finding() -> None:
    assert check(server(ports=2, gbit_per_s=200.0)) == ()


def test_a_port_that_came_up_slow_is_slow_and_not_missing() -> None:
    made = with_adapter(server(), 5, speed_gbit_per_s=10.0)
    assert faults(made) == [("nic_speed_mixed", "mlx5_5")]


def test_a_slow_port_of_another_model_is_for_management() -> None:
    made = with_port(server(), speed_gbit_per_s=25.0, device={"device": "0x101f"})
    assert check(made) == ()


def test_a_far_gpu_is_told_with_the_card_that_is_elsewhere() -> None:
    made = server()
    made = with_device(made, made.adapters[2].pci, parent=None, cpu=1)
    far = [finding for finding in check(made) if finding.name == "gpu_nic_far"]
    assert ["mlx5_2" in finding.explanation for finding in far] == [True]


def test_one_port_whose_speed_is_no_number_is_told() -> None:
    made = server()
    unread = with_adapter(made, 4, speed_gbit_per_s=None)
    assert faults(unread) == [("nic_speed_implausible", unread.adapters[4].name)]
    for at in range(len(made.adapters)):
        made = with_adapter(made, at, speed_gbit_per_s=None)
    assert faults(made) == []
