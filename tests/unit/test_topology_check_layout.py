"""GPUs that are missing, devices that are there twice, and what a file leaves open."""

from dataclasses import replace

import pytest
from servers import (
    BRIDGE,
    classes,
    faults,
    flat,
    renumbered,
    server,
    with_all_devices,
    with_device,
    with_gpu,
    without_gpu,
)

from ncdiag.diagnose.topology.check import check
from ncdiag.diagnose.topology.classes import BY_NAME, CLASSES
from ncdiag.model.topology import Cpu, NcclTopology, PciDevice


@pytest.mark.parametrize("gone", range(7))
def test_a_gap_in_indexes_and_ranks_is_a_missing_gpu(gone: int) -> None:
    found = [f for f in check(without_gpu(server(), gone)) if f.name == "gpu_missing"]
    assert [(f.severity, f.where) for f in found] == [("degraded", f"GPU {gone}")]


def test_a_gap_in_indexes_alone_may_be_a_choice() -> None:
    made = without_gpu(server(), 3)
    made = replace(made, gpus=tuple(replace(gpu, rank=rank) for rank, gpu in enumerate(made.gpus)))
    assert "gpu_missing" not in dict(faults(made))
    assert classes(made)["gpu_missing"] == "info"


def test_a_gap_where_no_ranks_are_stated() -> None:
    made = without_gpu(server(), 3)
    made = replace(made, gpus=tuple(replace(gpu, rank=None) for gpu in made.gpus))
    assert ("gpu_missing", "GPU 3") in faults(made)


@pytest.mark.parametrize("kept", [[0], [0, 1, 2, 3], [0, 2, 4, 6], [1, 3], [4, 5, 6, 7]])
def test_a_communicator_of_some_gpus_is_none(kept: list[int]) -> None:
    made = server()
    gpus = tuple(replace(made.gpus[at], rank=rank) for rank, at in enumerate(kept))
    assert "gpu_missing" not in classes(replace(made, gpus=gpus))


def test_ranks_of_a_later_host_are_no_gap() -> None:
    made = server()
    assert (
        check(replace(made, gpus=tuple(replace(g, rank=(g.index or 0) + 8) for g in made.gpus)))
        == ()
    )


def test_ranks_dealt_round_robin_are_no_gap() -> None:
    made = server()
    assert (
        check(replace(made, gpus=tuple(replace(g, rank=(g.index or 0) * 4) for g in made.gpus)))
        == ()
    )


def test_the_only_switch_with_fewer_gpus_is_named() -> None:
    made = without_gpu(server(switches=2, gpus=2, cards=0), 7)
    assert faults(made) == [("gpu_missing", made.pci[made.pci[made.gpus[6].pci].parent or 0].busid)]


def test_switches_with_unlike_numbers_of_gpus_are_a_design() -> None:
    made = server(switches=2, gpus=2, cards=0)
    kept = [*made.gpus[:1], *made.gpus[2:3], *made.gpus[4:]]
    gpus = tuple(replace(gpu, index=at, rank=at) for at, gpu in enumerate(kept))
    assert "gpu_missing" not in classes(replace(made, gpus=gpus))


def test_a_switch_with_the_adapters_of_the_others_and_no_gpu_is_told() -> None:
    found = [f for f in check(without_gpu(server(), 7)) if f.name == "gpu_missing"]
    assert [f.severity for f in found] == ["info"]


def test_a_switch_with_other_adapters_and_no_gpu_is_for_storage() -> None:
    made = without_gpu(server(switches=5), 9)
    at = made.adapters[9].pci
    gpus = tuple(replace(gpu, index=place) for place, gpu in enumerate(made.gpus))
    made = with_device(replace(made, gpus=gpus), at, device="0xa2d6")
    assert "gpu_missing" not in classes(made)


def test_one_bus_id_on_two_devices() -> None:
    made = with_device(flat(), 2, busid=flat().pci[0].busid)
    assert ("duplicate_busid", flat().pci[0].busid) in faults(made)


def test_one_index_on_two_gpus() -> None:
    made = with_gpu(server(), 4, index=3)
    assert ("duplicate_busid", made.busid(made.gpus[4])) in faults(made)


def test_two_halves_of_one_part_share_an_index_and_a_bus_id() -> None:
    made = server()
    halves = tuple(
        replace(gpu, mlopart=half, rank=2 * (gpu.index or 0) + half)
        for gpu in made.gpus
        for half in (0, 1)
    )
    assert check(replace(made, gpus=halves)) == ()


def test_two_halves_may_stand_in_an_element_each() -> None:
    made = server(gpus=2, switches=1)
    for at in (1, 3):
        made = with_device(made, made.gpus[at].pci, busid=made.busid(made.gpus[at - 1]))
    halves = tuple(replace(gpu, mlopart=at % 2, index=at // 2) for at, gpu in enumerate(made.gpus))
    assert check(replace(made, gpus=halves)) == ()


def test_hosts_of_one_rack_share_bus_ids_and_indexes() -> None:
    one, two = server(), server()
    offset = len(one.cpus)
    devices = len(one.pci)
    rack = NcclTopology(
        cpus=tuple(
            replace(cpu, host_hash=f"0x{host}")
            for host, made in enumerate((one, two))
            for cpu in made.cpus
        ),
        pci=one.pci
        + tuple(
            replace(d, cpu=d.cpu + offset, parent=None if d.parent is None else d.parent + devices)
            for d in two.pci
        ),
        gpus=one.gpus
        + tuple(replace(g, pci=g.pci + devices, rank=(g.rank or 0) + 8) for g in two.gpus),
        adapters=one.adapters
        + tuple(replace(a, cpu=a.cpu + offset, pci=(a.pci or 0) + devices) for a in two.adapters),
    )
    assert check(rack) == ()


@pytest.mark.parametrize("numa", [None, -1])
def test_a_numa_node_that_is_not_known(numa: int | None) -> None:
    made = server()
    assert classes(replace(made, cpus=(made.cpus[0], Cpu(numa=numa)))) == {"numa_unknown": "info"}


def test_invented_switches() -> None:
    made = with_all_devices(server(), BRIDGE, busid="ffff:ff:01.0")
    assert classes(made) == {"vm_flattened": "info"}


def test_devices_of_a_bus_id_only() -> None:
    pci = tuple(PciDevice(0, None, f"0000:00:{at:02x}.0") for at in range(4))
    assert classes(NcclTopology((Cpu(0),), pci, (), ())) == {"vm_flattened": "info"}


def test_no_bridge_at_all() -> None:
    assert classes(flat()) == {"vm_flattened": "info"}


def test_real_bridges_in_another_pci_domain_are_not_invented() -> None:
    import random

    assert "vm_flattened" not in classes(renumbered(server(), random.Random(1)))


def test_a_host_without_a_device_says_nothing() -> None:
    assert check(NcclTopology((Cpu(0),), (), (), ())) == ()


def test_every_class_is_described_once_and_severities_are_worst_first() -> None:
    order = ["fatal", "degraded", "info"]
    assert len(BY_NAME) == len(CLASSES)
    for entry in CLASSES:
        places = [order.index(severity) for severity in entry.severities]
        assert places == sorted(set(places)), entry.name
        assert entry.meaning, entry.name
        assert entry.action, entry.name
