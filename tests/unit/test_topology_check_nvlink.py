"""NVLink and xGMI: what is missing, lopsided or impossible, and what only looks so."""

from dataclasses import replace

import pytest
from servers import (
    GPU,
    HIDDEN_SWITCH,
    NVSWITCH,
    classes,
    faults,
    flat,
    meshed,
    server,
    with_device,
    with_gpu,
    without_gpu,
)

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import Cpu, GpuLink, GpuLinkKind, NcclTopology

# By four switches: which of them have five links differs from GPU to GPU.
SPREADS = [(5, 5, 4, 4), (4, 5, 5, 4), (4, 4, 5, 5), (5, 4, 4, 5)]


def _switched(spreads: list[tuple[int, ...]]) -> NcclTopology:
    made = server()
    for at in range(8):
        spread = spreads[at % len(spreads)]
        links = tuple(
            GpuLink(GpuLinkKind.NVLINK, f"0000:0{place}:00.0", count, NVSWITCH)
            for place, count in enumerate(spread)
        )
        made = with_gpu(made, at, links=links)
    return made


def test_a_healthy_server_has_no_findings() -> None:
    assert check(server()) == ()


def test_a_gpu_with_fewer_nvlinks_than_the_seven_others_is_named() -> None:
    links = (GpuLink(GpuLinkKind.NVLINK, HIDDEN_SWITCH, 12, NVSWITCH),)
    made = with_gpu(server(), 5, links=links)
    (finding,) = check(made)
    assert (finding.name, finding.severity) == ("nvlink_missing", "degraded")
    assert finding.where == made.busid(made.gpus[5])
    assert "GPU 5" in finding.explanation
    assert "12 NVLinks" in finding.explanation
    assert "7 of the 8" in finding.explanation


def test_which_switch_takes_the_fifth_link_does_not_matter() -> None:
    assert check(_switched(SPREADS)) == ()


def test_a_switch_less_matters() -> None:
    made = _switched(SPREADS)
    made = with_gpu(made, 3, links=made.gpus[3].links[:3])
    assert [name for name, _ in faults(made)] == ["nvlink_missing"]


def test_no_link_at_all_among_gpus_with_links_is_fatal() -> None:
    made = with_gpu(server(), 2, links=())
    (finding,) = check(made)
    assert (finding.name, finding.severity) == ("nvlink_missing", "fatal")


def test_only_c2c_left_is_fatal_and_said() -> None:
    made = with_gpu(server(), 2, links=(), c2c_gb_per_s=450.0)
    (finding,) = check(made)
    assert (finding.name, finding.severity) == ("nvlink_missing", "fatal")
    assert "C2C" in finding.explanation


def test_no_rows_on_any_gpu_say_nothing() -> None:
    assert check(server(nvlinks=0)) == ()


@pytest.mark.parametrize("nvlinks", [8, 12, 18])
def test_fewer_links_on_all_are_a_design(nvlinks: int) -> None:
    assert check(server(nvlinks=nvlinks)) == ()


def test_of_half_and_half_nobody_is_accused() -> None:
    made = server()
    for at in range(4):
        made = with_gpu(made, at, links=server(nvlinks=12).gpus[at].links)
    (finding,) = check(made)
    assert (finding.name, finding.severity) == ("nvlink_missing", "info")
    assert "GPU 0" in finding.explanation
    assert "GPU 7" in finding.explanation


def test_two_gpus_that_differ_are_told_without_blame() -> None:
    made = server(sockets=2, switches=1)
    made = with_gpu(made, 0, links=server(nvlinks=12).gpus[0].links)
    assert classes(made)["nvlink_missing"] == "info"


def test_gpus_of_another_model_are_no_peers() -> None:
    made = server()
    for at in range(2):
        made = with_gpu(made, at, sm="80", links=server(nvlinks=12).gpus[at].links)
    assert faults(made) == []


def test_four_links_to_each_of_three_peers_are_healthy() -> None:
    assert faults(meshed(flat(), lambda _a, _b: 4)) == []


def test_one_thin_pair_of_a_mesh_is_found_though_two_of_four_gpus_differ() -> None:
    made = meshed(flat(), lambda a, b: 2 if {a, b} == {1, 2} else 4)
    (fault,) = faults(made)
    assert fault == ("nvlink_missing", made.busid(made.gpus[1]))


def test_bridges_between_pairs_are_healthy() -> None:
    made = meshed(flat(), lambda a, b: 12 if a // 2 == b // 2 else 0)
    assert faults(made) == []


def test_a_bridge_that_is_not_fitted_is_told_as_info() -> None:
    made = meshed(flat(8, 8), lambda a, b: 12 if a // 2 == b // 2 and a < 6 else 0)
    assert faults(made) == []
    assert classes(made)["nvlink_missing"] == "info"


def test_a_hybrid_mesh_with_one_and_two_links_is_healthy() -> None:
    # Each GPU: two links to one neighbour and to its opposite, one to two others.
    def links(a: int, b: int) -> int:
        if {a, b} in ({0, 1}, {2, 3}, {4, 5}, {6, 7}) or abs(a - b) == 4:
            return 2
        return int(a // 4 == b // 4)

    assert faults(meshed(server(sm="70"), links)) == []


def _board(a: int, b: int) -> int:
    """Eight halves of four packages: seven links on each first half, six on each second."""
    if a // 2 == b // 2:
        return 4
    if a % 2 != b % 2 or abs(a - b) % 8 not in {2, 6}:
        return 0
    return 2 if a % 2 == 0 and a // 4 == b // 4 else 1


def test_unlike_sums_of_xgmi_links_are_healthy() -> None:
    made = meshed(server(), _board, GpuLinkKind.XGMI)
    sums = [sum(link.count or 0 for link in gpu.links) for gpu in made.gpus]
    assert sums == [7, 6, 7, 6, 7, 6, 7, 6]
    assert check(made) == ()


def test_a_sum_below_all_usual_ones_is_missing_links() -> None:
    made = meshed(server(), lambda a, b: 2 if {a, b} == {0, 1} else _board(a, b), GpuLinkKind.XGMI)
    assert faults(made) == [
        ("nvlink_missing", made.busid(made.gpus[0])),
        ("nvlink_missing", made.busid(made.gpus[1])),
    ]


@pytest.mark.parametrize("kind", list(GpuLinkKind))
def test_another_count_in_one_direction_is_asymmetric(kind: GpuLinkKind) -> None:
    made = meshed(flat(2, 2), lambda a, _b: 12 if a else 1, kind)
    found = [finding for finding in check(made) if finding.name == "nvlink_asymmetric"]
    assert [finding.where for finding in found] == [made.busid(made.gpus[0])]
    assert [finding.severity for finding in found] == ["degraded"]
    assert "nvlink_missing" not in classes(made)


def test_a_link_that_one_end_lists_is_asymmetric() -> None:
    made = meshed(flat(), lambda _a, _b: 4)
    gone = made.busid(made.gpus[3])
    made = with_gpu(made, 0, links=tuple(x for x in made.gpus[0].links if x.target != gone))
    assert "nvlink_asymmetric" in classes(made)


def test_the_same_count_both_ways_is_symmetric() -> None:
    assert "nvlink_asymmetric" not in classes(meshed(flat(), lambda a, b: 1 + (a + b) % 2))


def test_rows_without_a_count_are_told_and_are_no_missing_links() -> None:
    made = meshed(flat(), lambda _a, _b: 4)
    links = tuple(replace(link, count=None) for link in made.gpus[0].links)
    assert faults(with_gpu(made, 0, links=links)) == [
        ("nvlink_count_unknown", made.busid(made.gpus[0]))
    ]


def test_a_row_without_a_count_hides_no_row_that_is_gone() -> None:
    made = _switched(SPREADS)
    first, second, *_ = made.gpus[3].links
    unreadable = with_gpu(made, 3, links=(replace(first, count=None), second))
    assert {name for name, _ in faults(unreadable)} == {"nvlink_missing", "nvlink_count_unknown"}
    assert "at most" in next(
        one.explanation for one in check(unreadable) if one.name == "nvlink_missing"
    )


def test_a_row_without_a_count_on_every_gpu_is_no_fault() -> None:
    made = _switched(SPREADS)
    for at, gpu in enumerate(made.gpus):
        made = with_gpu(made, at, links=tuple(replace(one, count=None) for one in gpu.links))
    assert classes(made) == {"nvlink_count_unknown": "info"}


def test_one_row_that_its_other_end_contradicts_is_one_finding() -> None:
    made = meshed(flat(), lambda _a, _b: 4)
    first, *others = made.gpus[1].links
    one_less = with_gpu(made, 1, links=(replace(first, count=3), *others))
    assert [name for name, _ in faults(one_less)] == ["nvlink_asymmetric"]
    gone = with_gpu(made, 1, links=tuple(others))
    assert [name for name, _ in faults(gone)] == ["nvlink_asymmetric"]
    none = with_gpu(made, 1, links=())
    assert ("nvlink_missing", made.busid(made.gpus[1])) in faults(none)


def test_more_links_than_the_generation_has_on_one_gpu() -> None:
    made = with_gpu(server(), 0, links=server(nvlinks=126).gpus[0].links)
    assert ("nvlink_count_impossible", made.busid(made.gpus[0])) in faults(made)


def test_more_links_than_the_generation_has_on_all_are_told_as_info() -> None:
    assert classes(server(nvlinks=126)) == {"nvlink_count_impossible": "info"}


def test_a_part_of_two_halves_may_have_twice_as_many() -> None:
    made = server(nvlinks=36)
    halves = tuple(replace(gpu, mlopart=0) for gpu in made.gpus)
    assert check(replace(made, gpus=halves)) == ()


def test_amds_count_of_units_is_no_compute_capability() -> None:
    made = server(nvlinks=0, sm="90")
    made = meshed(
        replace(made, gpus=tuple(replace(gpu, gcn="gfx90a") for gpu in made.gpus)),
        lambda _a, _b: 4,
        GpuLinkKind.XGMI,
    )
    assert "nvlink_count_impossible" not in classes(made)


def test_a_gpu_called_a_switch_by_one_gpu() -> None:
    made = meshed(server(), lambda _a, _b: 1)
    links = tuple(replace(link, target_class=NVSWITCH) for link in made.gpus[1].links)
    made = with_gpu(made, 1, links=links)
    assert ("nvlink_target_contradiction", made.busid(made.gpus[1])) in faults(made)


def test_gpus_called_switches_by_all_are_a_habit_of_the_writer() -> None:
    made = meshed(server(), lambda _a, _b: 1)
    for at, gpu in enumerate(made.gpus):
        links = tuple(replace(link, target_class=NVSWITCH) for link in gpu.links)
        made = with_gpu(made, at, links=links)
    assert classes(made) == {"nvlink_target_contradiction": "info"}


def test_a_gpu_that_is_nowhere_is_told_and_a_switch_is_not() -> None:
    made = meshed(flat(4, 0), lambda _a, _b: 4)
    made = without_gpu(made, 3)
    assert classes(made).get("nvlink_target_contradiction") == "info"
    assert "nvlink_target_contradiction" not in classes(_switched(SPREADS))


def test_one_bus_id_on_two_hosts_is_no_link_between_them() -> None:
    two = server(sockets=2, switches=4)
    cpus = (
        Cpu(numa=0, host_hash="0x1"),
        Cpu(numa=0, host_hash="0x2"),
    )
    half = len(two.pci) // 2
    for at in range(half):
        two = with_device(two, half + at, busid=two.pci[at].busid)
    gpus = tuple(replace(gpu, index=at % 4) for at, gpu in enumerate(two.gpus))
    assert faults(replace(two, cpus=cpus, gpus=gpus)) == []


def test_gpus_without_an_element_are_not_judged() -> None:
    made = server(nvlinks=0)
    gpus = tuple(replace(gpu, has_element=False, gdr=None) for gpu in made.gpus)
    assert made.pci[gpus[0].pci].pci_class == GPU
    assert check(replace(made, gpus=gpus)) == ()
