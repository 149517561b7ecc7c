"""Graphs and matrices: what is wrong with them, and what only looks so."""

from dataclasses import replace

import pytest
from servers import classes, faults, matrix

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import GpuMatrix, GraphChannel, MatrixCell, NcclGraph, NcclGraphs


def _graph(number: int | None, channels: int, *, stated: int | None = None) -> NcclGraph:
    return NcclGraph(
        id=number,
        pattern="ring" if not number else "tree",
        nchannels=channels if stated is None else stated,
        intra_gb_per_s=20.0,
        inter_gb_per_s=20.0,
        intra_path="NVL",
        inter_path="PIX",
        channels=tuple(GraphChannel((), ("0", "0x1")) for _ in range(channels)),
    )


def _all_to_all(path: str, gpus: int = 8) -> list[list[str]]:
    return [["X" if a == b else path for b in range(gpus)] for a in range(gpus)]


def _changed(paths: list[list[str]], path: str, *pairs: tuple[int, int]) -> list[list[str]]:
    for a, b in pairs:
        paths[a][b] = path
    return paths


def _row(gpu: int, gpus: int = 8) -> list[tuple[int, int]]:
    return [pair for b in range(gpus) if b != gpu for pair in ((gpu, b), (b, gpu))]


# --- graphs


def test_healthy_graphs_in_any_order_with_empty_ones_of_nvls_and_collnet() -> None:
    graphs = (_graph(0, 12), _graph(1, 12), _graph(4, 0), _graph(2, 0), _graph(3, 0))
    assert check(NcclGraphs(graphs)) == ()


@pytest.mark.parametrize("number", [0, 1])
def test_a_ring_or_a_tree_without_a_channel(number: int) -> None:
    assert faults(NcclGraphs((_graph(number, 0), _graph(3, 2)))) == [
        ("graph_empty", f"graph {number}")
    ]


@pytest.mark.parametrize("number", [2, 3, 4])
def test_other_graphs_may_be_empty(number: int) -> None:
    assert check(NcclGraphs((_graph(number, 0),))) == ()


@pytest.mark.parametrize("stated", [0, 11, 13])
def test_another_number_of_channels_than_stated(stated: int) -> None:
    assert faults(NcclGraphs((_graph(2, 12, stated=stated),))) == [
        ("graph_channels_mismatch", "graph 2")
    ]


def test_a_number_that_is_not_stated_is_no_mismatch() -> None:
    assert check(NcclGraphs((replace(_graph(0, 4), nchannels=None),))) == ()


def test_an_empty_ring_without_an_id_is_known_by_its_pattern() -> None:
    assert classes(NcclGraphs((_graph(None, 0),))) == {"graph_empty": "degraded"}


# --- matrices


@pytest.mark.parametrize("path", ["NV4", "NV8", "NV12", "NV18", "SYS", "NODE", "PHB", "XGMI"])
def test_the_same_path_between_all_is_a_design(path: str) -> None:
    assert check(matrix(_all_to_all(path))) == ()


def test_one_gpu_with_fewer_links_to_all_others() -> None:
    made = matrix(_changed(_all_to_all("NV12"), "NV6", *_row(5)))
    (finding,) = check(made)
    assert (finding.name, finding.severity, finding.where) == ("nvlink_missing", "degraded", "GPU5")
    assert "7 x NV6" in finding.explanation
    assert "7 of the 8" in finding.explanation


def test_one_gpu_without_a_link_is_fatal() -> None:
    made = matrix(_changed(_all_to_all("NV12"), "SYS", *_row(2)))
    (finding,) = check(made)
    assert (finding.name, finding.severity, finding.where) == ("nvlink_missing", "fatal", "GPU2")


def test_a_hybrid_mesh_is_healthy() -> None:
    paths = [
        ["X", "NV1", "NV2", "SYS"],
        ["NV1", "X", "SYS", "NV2"],
        ["NV2", "SYS", "X", "NV1"],
        ["SYS", "NV2", "NV1", "X"],
    ]
    assert check(matrix(paths)) == ()


def test_bridges_between_pairs_are_healthy() -> None:
    pairs = [(a, a ^ 1) for a in range(8)]
    assert check(matrix(_changed(_all_to_all("SYS"), "NV12", *pairs))) == ()


def test_a_bridge_that_is_not_fitted_is_told_as_info() -> None:
    pairs = [(a, a ^ 1) for a in range(6)]
    made = matrix(_changed(_all_to_all("SYS"), "NV12", *pairs))
    assert classes(made) == {"nvlink_missing": "info"}


def test_one_thin_pair_of_a_mesh() -> None:
    made = matrix(_changed(_all_to_all("NV4", 4), "NV2", (1, 2), (2, 1)))
    assert faults(made) == [("nvlink_missing", "GPU1")]


def test_a_cell_that_differs_from_the_other_direction() -> None:
    made = matrix(_changed(_all_to_all("NV12"), "NV6", (3, 4)))
    assert faults(made) == [("nvlink_asymmetric", "GPU3")]


def test_a_path_to_a_nic_that_differs_by_direction_is_damage() -> None:
    made = matrix(_all_to_all("NV12"), [["PIX", *["SYS"] * 7]])
    cells = tuple(
        replace(cell, path="NODE") if (cell.a, cell.b) == ("GPU0", "NIC0") else cell
        for cell in made.cells
    )
    assert classes(replace(made, cells=cells)) == {"matrix_damaged": "info"}


def test_a_gpu_without_a_row() -> None:
    made = matrix(_all_to_all("NV12"))
    cells = tuple(cell for cell in made.cells if "GPU3" not in {cell.a, cell.b})
    gpus = tuple(gpu for gpu in made.gpus if gpu != "GPU3")
    assert faults(replace(made, gpus=gpus, cells=cells)) == [("gpu_missing", "GPU3")]


def test_the_only_gpu_without_a_near_nic() -> None:
    rails = [["PXB" if a == b else "SYS" for a in range(8)] for b in range(8)]
    assert check(matrix(_all_to_all("NV18"), rails)) == ()
    rails[6][6] = "NODE"
    assert faults(matrix(_all_to_all("NV18"), rails)) == [("gpu_nic_far", "GPU6")]


@pytest.mark.parametrize("near", [1, 2, 4])
def test_nics_near_half_of_the_gpus_at_most_are_a_design(near: int) -> None:
    nics = [["PIX" if a < near else "NODE" for a in range(8)]] * 4
    assert check(matrix(_all_to_all("NV8"), nics)) == ()


def test_all_through_the_sockets_is_a_design() -> None:
    assert check(matrix(_all_to_all("NV18", 4), [["SYS"] * 4] * 4)) == ()


def test_fewer_nics_than_pairs_of_gpus_leave_some_far() -> None:
    nics = [["PIX" if a // 2 == b else "SYS" for a in range(8)] for b in range(3)]
    assert check(matrix(_all_to_all("NV8"), nics)) == ()


def test_an_unknown_cell() -> None:
    made = matrix(_changed(_all_to_all("PHB"), "XXXX", (0, 1), (1, 0)))
    assert classes(made) == {"matrix_cell_unknown": "info"}


@pytest.mark.parametrize("word", ["N/A", "Unknown", "WARP9"])
def test_unknown_words(word: str) -> None:
    made = matrix(_all_to_all("SYS"), [[word] * 8])
    assert classes(made) == {"matrix_cell_unknown": "info"}


def test_unknown_cells_are_made_safe_to_print() -> None:
    made = matrix(_changed(_all_to_all("SYS"), "\x1b[2J", (0, 1)))
    assert all("\x1b" not in finding.explanation for finding in check(made))


def test_damage_beside_the_gpus_is_info_and_among_them_degraded() -> None:
    made = matrix(_all_to_all("NV12"), damage=("row NIC0 has no column",))
    assert classes(made) == {"matrix_damaged": "info"}
    cut = tuple(cell for cell in made.cells if {cell.a, cell.b} != {"GPU0", "GPU7"})
    assert classes(replace(made, cells=cut))["matrix_damaged"] == "degraded"


def test_a_damaged_row_is_not_compared() -> None:
    made = matrix(_all_to_all("NV12"))
    cut = tuple(cell for cell in made.cells if {cell.a, cell.b} != {"GPU0", "GPU7"})
    assert "nvlink_missing" not in classes(replace(made, cells=cut))


def test_numa_nodes_that_are_not_known_and_tables_without_the_column() -> None:
    paths = _all_to_all("NV12")
    unknown = matrix(paths, numa={f"GPU{at}": None for at in range(8)})
    assert classes(unknown) == {"numa_unknown": "info"}
    backwards = matrix(paths, numa={f"GPU{at}": 7 - at for at in range(8)})
    assert check(backwards) == ()
    assert check(matrix(paths)) == ()


def test_more_links_than_any_gpu_has() -> None:
    assert "nvlink_count_impossible" in classes(matrix(_all_to_all("NV72")))
    assert "nvlink_count_impossible" not in classes(matrix(_all_to_all("NV36")))


def test_a_table_of_one_gpu() -> None:
    assert check(GpuMatrix(("GPU0",), (), (MatrixCell("GPU0", "GPU0", "X"),))) == ()
