import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.model.topology import GpuMatrix, NotATopologyError, TruncatedTopologyError
from ncdiag.read.topology import gpu_matrix
from ncdiag.read.topology.read_topology import read_topology

LEGEND = "\nLegend:\n\n  X    = Self\n  NV#  = NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_4\n"
SPACED = """\
        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV6     PIX     0-7,16-23       0               N/A
GPU1    NV6      X      SYS     8-15            1               N/A
NIC0    PIX     SYS      X
"""
ROCM = """
====================== ROCm System Management Interface ======================
========================= Weight between two GPUs ============================
       GPU0         GPU1
GPU0   0            15
GPU1   15           0
========================= Hops between two GPUs ==============================
       GPU0         GPU1
GPU0   0            1
GPU1   1            0
======================= Link Type between two GPUs ===========================
       GPU0         GPU1
GPU0   0            PCIE
GPU1   XGMI         0
============================== Numa Nodes ====================================
GPU[0]\t\t: (Topology) Numa Node: 2
GPU[0]\t\t: (Topology) Numa Affinity: 2
GPU[1]\t\t: (Topology) Numa Node: -1
============================ End of ROCm SMI Log =============================
"""
AMD = """$ amd-smi topology
ACCESS TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 ENABLED      ENABLED
0000:22:00.0 ENABLED      ENABLED

LINK TYPE TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 SELF         XGMI
0000:22:00.0 XGMI         SELF

NUMA BW TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 N/A          50000-50000
0000:22:00.0 50000-50000  N/A
"""


def matrix(text: str) -> GpuMatrix:
    read = read_topology(text.encode())
    assert isinstance(read, GpuMatrix)
    return read


def paths(read: GpuMatrix) -> dict[tuple[str, str], str]:
    return {(cell.a, cell.b): cell.path for cell in read.cells}


@pytest.mark.parametrize(
    "text",
    [
        SPACED + LEGEND,
        SPACED,
        SPACED.replace("    ", "\t"),
        SPACED.replace("    ", "\t\t"),
        SPACED.replace("     ", " "),
        SPACED.replace(" X ", "\tX "),
        "host7$ nvidia-smi topo -m\n" + SPACED + "host7$ \n",
        "Mon Nov 30\n\n" + SPACED.replace("\n", "\n\n"),
        "    " + SPACED.replace("\n", "\n    ") + LEGEND,
        "\x1b[4m" + SPACED.replace("\n", "\x1b[0m\r\n"),
    ],
)
def test_every_layout_of_nvidia_smi_says_the_same(text: str) -> None:
    read = matrix(text)
    assert read.gpus == ("GPU0", "GPU1")
    assert read.nics == ("NIC0",)
    assert paths(read) == {
        ("GPU0", "GPU1"): "NV6",
        ("GPU0", "NIC0"): "PIX",
        ("GPU1", "GPU0"): "NV6",
        ("GPU1", "NIC0"): "SYS",
        ("NIC0", "GPU0"): "PIX",
        ("NIC0", "GPU1"): "SYS",
    }
    assert read.numa == {"GPU0": 0, "GPU1": 1}
    assert read.cpu_affinity == {"GPU0": "0-7,16-23", "GPU1": "8-15"}
    assert read.nic_names == ({"NIC0": "mlx5_4"} if "NIC0: mlx5_4" in text else {})
    assert read.damage == ()


def test_adapters_may_be_columns_by_name_and_affinities_may_be_missing() -> None:
    read = matrix(
        "\tGPU0\tmlx5_0\tmlx5_bond_1\nGPU0\tX\tNODE\tPHB\nmlx5_0\tNODE\tX\tPIX\n"
        "mlx5_bond_1\tPHB\tPIX\tX\n"
    )
    assert (read.gpus, read.nics) == (("GPU0",), ("mlx5_0", "mlx5_bond_1"))
    assert paths(read)["mlx5_0", "mlx5_bond_1"] == "PIX"
    assert (read.numa, read.cpu_affinity) == ({}, {})


@pytest.mark.parametrize(
    ("said", "numa"), [("3", 3), ("0-1", None), ("0,2", None), ("N/A", None), ("", None)]
)
def test_one_numa_node_is_a_number_and_several_are_none(said: str, numa: int | None) -> None:
    read = matrix(
        f"  GPU0  GPU1  CPU Affinity  NUMA Affinity\nGPU0 X SYS 0-3 {said}\nGPU1 SYS X 0-3 0\n"
    )
    assert read.numa.get("GPU0") == numa
    assert read.numa["GPU1"] == 0


def test_rows_without_a_column_are_kept_and_told() -> None:
    read = matrix(
        SPACED.replace("    NIC0    CPU", "    CPU")
        .replace("PIX     0-7", "0-7")
        .replace("SYS     8", "8")
        + LEGEND
    )
    assert read.nics == ("NIC0",)
    assert paths(read)["NIC0", "GPU1"] == "SYS"
    assert read.damage == ("row NIC0 has no column",)


def test_columns_without_a_row_and_short_rows_are_told() -> None:
    lines = SPACED.splitlines()
    read = matrix("\n".join([lines[0], lines[1].replace("PIX     ", ""), lines[2]]) + LEGEND)
    assert read.cpu_affinity["GPU0"] == "0-7,16-23"
    assert ("GPU0", "NIC0") not in paths(read)
    assert read.damage == ("column NIC0 has no row", "row GPU0 has 2 of 3 cells")


def test_lines_that_are_no_rows_and_rows_said_twice_are_told() -> None:
    lines = SPACED.splitlines()
    wrong = "Failed \x1b]0;x\x07to query <b>GPU1</b>"
    read = matrix("\n".join([*lines[:2], wrong, lines[1], *lines[2:]]) + LEGEND)
    assert read.damage == ("no row: Failed to query <b>GPU1</b>", "row GPU0 a second time")
    assert len(read.cells) == 6


def test_unknown_words_are_kept_as_written() -> None:
    read = matrix(SPACED.replace("NV6     PIX", "???     XXXX") + LEGEND)
    assert paths(read)["GPU0", "GPU1"] == "???"
    assert paths(read)["GPU0", "NIC0"] == "XXXX"
    assert paths(read)["GPU1", "GPU0"] == "NV6"


def test_rocm_smi_tells_the_link_types() -> None:
    read = matrix(ROCM)
    assert read.gpus == ("GPU0", "GPU1")
    assert paths(read) == {("GPU0", "GPU1"): "PCIE", ("GPU1", "GPU0"): "XGMI"}
    assert read.numa == {"GPU0": 2, "GPU1": -1}
    assert read.damage == ()


def test_amd_smi_names_gpus_by_bus_id() -> None:
    read = matrix(AMD)
    assert read.gpus == ("0000:0c:00.0", "0000:22:00.0")
    assert set(paths(read).values()) == {"XGMI"}
    assert read.damage == ()
    by_index = matrix(AMD.replace("0000:0c:00.0", "GPU0").replace("0000:22:00.0", "GPU1"))
    assert by_index.gpus == ("GPU0", "GPU1")


def test_without_link_types_the_gpus_are_known_and_no_path_is() -> None:
    read = matrix(AMD.replace("LINK TYPE TABLE", "OTHER TABLE"))
    assert (len(read.gpus), read.cells) == (2, ())
    assert read.damage == ("no table of link types, so no paths are known",)


@pytest.mark.parametrize(
    "text",
    [
        SPACED.splitlines()[0],
        "\n".join(SPACED.splitlines()[:2]),
        SPACED[: SPACED.index("GPU1    NV6") + 12],
        SPACED[: SPACED.index("NIC0    PIX") + 11],
        SPACED[: SPACED.index("GPU1    NV6") + 4],
        AMD[: AMD.index("XGMI         SELF")],
        AMD[: AMD.index("0000:0c:00.0 SELF")],
        "ACCESS TABLE:\n",
    ],
)
def test_a_table_that_ends_within_its_rows_is_cut_short(text: str) -> None:
    with pytest.raises(TruncatedTopologyError, match="cut short"):
        read_topology(text.encode())


@pytest.mark.parametrize("text", [SPACED + LEGEND, ROCM, AMD])
def test_cut_anywhere_there_is_an_answer_or_the_documented_error(text: str) -> None:
    whole = len(matrix(text).gpus)
    for offset in range(len(text)):
        try:
            read = matrix(text[:offset])
        except (NotATopologyError, TruncatedTopologyError):
            continue
        assert len(read.gpus) == whole


@pytest.mark.parametrize(
    "text",
    ["GPU0 and GPU1 are busy\n", "GPU0\n", "rank GPU0 GPU1\n", "GPU0 GPU1\nwords\n", "GPU0 GPU0\n"],
)
def test_words_about_gpus_are_no_table(text: str) -> None:
    with pytest.raises(NotATopologyError):
        read_topology(text.encode())


def test_devices_tables_and_damage_are_bounded() -> None:
    names = [f"GPU{number}" for number in range(1500)]
    wide = f"{' '.join(names)}\n{names[0]} X {' '.join(['SYS'] * 1499)}\n\nLegend:\n"
    read = gpu_matrix.read(wide)
    assert len(read.gpus) == 1024
    assert read.damage[0].startswith("more than 1024 columns")
    noisy = gpu_matrix.read("GPU0 GPU1\nGPU0 X SYS\n" + "noise\n" * 5000 + "GPU1 SYS X\n")
    assert len(noisy.damage) < 100


WORDS = st.sampled_from(
    [
        *("GPU0", "GPU1", "GPU2", "NIC0", "mlx5_0", "X", "NV4", "SYS", "N/A", "0-7", "0"),
        *("CPU Affinity", "NUMA Affinity", "GPU NUMA ID", "Legend:", "\n", "\t"),
    ]
)


@settings(max_examples=300)
@given(st.lists(WORDS, max_size=60))
def test_any_words_in_any_order_are_read_or_refused(words: list[str]) -> None:
    text = "GPU0 GPU1\nGPU0 X SYS\n" + " ".join(words)
    try:
        read = gpu_matrix.read(text)
    except TruncatedTopologyError:
        return
    assert {"GPU0", "GPU1"} <= set(read.gpus)
    for cell in read.cells:
        assert cell.a != cell.b
        assert {cell.a, cell.b} <= set(read.gpus) | set(read.nics)
