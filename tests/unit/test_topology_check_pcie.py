"""PCIe width, speed and uplinks: what is below its like, and what only looks so."""

import pytest
from servers import (
    BRIDGE,
    CARD,
    GPU,
    classes,
    faults,
    server,
    with_all_devices,
    with_device,
    with_gpu,
    with_port,
)

from ncdiag.diagnose.topology.check import check

GENERATIONS = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0]


def test_a_card_at_half_the_width_of_the_others_is_named_with_its_bus_id() -> None:
    made = with_device(server(), server().adapters[3].pci, lanes=8)
    found = check(made)
    assert [(f.name, f.severity, f.where) for f in found if f.name != "pcie_uplink_narrow"] == [
        ("pcie_downgraded_width", "degraded", "mlx5_3")
    ]
    assert made.pci[made.adapters[3].pci or 0].busid in found[0].explanation
    assert "x8" in found[0].explanation
    assert "7 of the 8" in found[0].explanation


def test_a_gpu_at_half_width_is_named_by_its_bus_id() -> None:
    made = with_device(server(), server().gpus[6].pci, lanes=8)
    assert ("pcie_downgraded_width", made.busid(made.gpus[6])) in faults(made)


@pytest.mark.parametrize("owner", ["gpus", "adapters"])
def test_a_device_of_an_older_generation_than_its_like(owner: str) -> None:
    made = server()
    at = getattr(made, owner)[2].pci
    made = with_device(made, at, gigatransfers_per_s=8.0)
    assert [name for name, _ in faults(made)] == ["pcie_downgraded_speed"]


def test_an_idle_gpu_asks_for_a_second_look_only() -> None:
    made = with_device(server(), server().gpus[2].pci, gigatransfers_per_s=2.5)
    assert classes(made) == {"pcie_downgraded_speed": "info"}


def test_a_card_at_the_first_generation_is_no_idle_gpu() -> None:
    made = with_device(server(), server().adapters[2].pci, gigatransfers_per_s=2.5)
    assert classes(made)["pcie_downgraded_speed"] == "degraded"


@pytest.mark.parametrize("speed", GENERATIONS)
def test_any_generation_of_all_devices_is_a_design(speed: float) -> None:
    made = server()
    for pci_class in (GPU, CARD, BRIDGE):
        made = with_all_devices(made, pci_class, gigatransfers_per_s=speed)
    assert faults(made) == []


@pytest.mark.parametrize("speed", GENERATIONS)
def test_any_generation_of_all_gpus_is_a_design(speed: float) -> None:
    assert faults(with_all_devices(server(), GPU, gigatransfers_per_s=speed)) == []


def test_bridges_slower_than_all_gpus_are_told_as_info() -> None:
    made = with_all_devices(server(), BRIDGE, gigatransfers_per_s=5.0)
    assert classes(made) == {"pcie_uplink_narrow": "info"}


def test_one_bridge_slower_than_the_others_is_named() -> None:
    made = server()
    bridge = made.pci[made.gpus[4].pci].parent
    made = with_device(made, bridge, lanes=4)
    assert faults(made) == [("pcie_uplink_narrow", made.pci[bridge or 0].busid)]


def test_a_bridge_slower_than_others_that_still_suffices_is_none() -> None:
    made = with_all_devices(server(gbit_per_s=100.0), GPU, gigatransfers_per_s=16.0)
    bridge = made.pci[made.gpus[4].pci].parent
    assert check(with_device(made, bridge, gigatransfers_per_s=16.0)) == ()


def test_a_slow_bridge_above_a_management_port_is_none() -> None:
    made = with_port(server(), name="eno1", port=0, speed_gbit_per_s=1.0, gdr=False)
    bridge = made.pci[made.gpus[0].pci].parent
    made = with_device(made, made.adapters[-1].pci, parent=bridge, gigatransfers_per_s=2.5, lanes=1)
    assert check(made) == ()


def test_a_card_of_another_model_is_no_peer() -> None:
    made = with_port(server(), device={"device": "0x1521", "lanes": 4, "gigatransfers_per_s": 5.0})
    assert faults(made) == []


def test_without_models_the_ports_speed_tells_who_is_alike() -> None:
    made = server()
    for at in range(len(made.pci)):
        made = with_device(made, at, vendor=None, device=None)
    slow = with_port(
        made,
        speed_gbit_per_s=1.0,
        device={"vendor": None, "device": None, "lanes": 4, "pci_class": 0x020000},
    )
    assert faults(slow) == []
    narrow = with_device(made, made.adapters[0].pci, lanes=8)
    assert ("pcie_downgraded_width", "mlx5_0") in faults(narrow)


def test_a_card_of_the_same_model_for_another_use_is_told_as_info() -> None:
    made = with_port(server(), speed_gbit_per_s=100.0, device={"lanes": 8})
    assert faults(made) == []
    assert classes(made)["pcie_downgraded_width"] == "info"


def test_two_cards_that_differ_are_told_without_blame() -> None:
    made = with_device(server(sockets=1, switches=2), 2, lanes=8)
    assert made.pci[2].pci_class == CARD
    assert classes(made)["pcie_downgraded_width"] == "info"


def test_half_of_the_cards_at_half_width_are_told_without_blame() -> None:
    made = server()
    for adapter in made.adapters[:4]:
        made = with_device(made, adapter.pci, lanes=8)
    assert faults(made) == []
    assert classes(made)["pcie_downgraded_width"] == "info"


@pytest.mark.parametrize("lanes", [None, 0])
def test_a_width_that_is_not_stated_is_unknown(lanes: int | None) -> None:
    made = with_device(server(), server().gpus[0].pci, lanes=lanes)
    assert classes(made) == {"pcie_unknown": "info"}


def test_an_empty_speed_is_unknown() -> None:
    made = with_all_devices(server(), GPU, link_speed="", gigatransfers_per_s=None)
    assert classes(made) == {"pcie_unknown": "info"}


def test_a_known_link_is_not_unknown() -> None:
    assert "pcie_unknown" not in classes(server())


def test_narrow_links_of_parts_with_c2c_are_told_as_info() -> None:
    made = server()
    for at in range(8):
        made = with_gpu(made, at, c2c_gb_per_s=450.0)
    made = with_device(made, made.gpus[1].pci, lanes=2)
    assert faults(made) == []
