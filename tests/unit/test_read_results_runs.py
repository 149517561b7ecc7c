"""Runs that other tools print: OSU, rccl-tests' own JSON and CSV, SuperBench."""

import json
from pathlib import Path

import pytest

from ncdiag.model.benchmark import TableRow
from ncdiag.model.errors import UsageError
from ncdiag.read.results import nccl_tests, osu, rccl, superbench

DATA = Path(__file__).parents[1] / "data/results"


def load(name: str) -> bytes:
    return (DATA / name).read_bytes()


def test_osu_bw_is_one_direction_between_two_unnamed_ends() -> None:
    results = osu.read(load("osu_bw_fir1_fir3.txt"), "logs/osu_bw_fir1_fir3.txt")
    assert results.unnamed == ["osu_bw_fir1_fir3.txt.rank0", "osu_bw_fir1_fir3.txt.rank1"]
    (pair,) = results.pairs
    assert (pair.source, pair.target) == tuple(results.unnamed)
    largest = load("osu_bw_fir1_fir3.txt").split()[-1]
    # OSU's MB are 1e6 bytes.
    assert pair.gbit_per_s == pytest.approx(float(largest) * 8e6 / 1e9)
    assert pair.size_bytes == 4 << 20
    assert not results.together


def test_of_several_pairs_of_processes_osu_tells_the_sum() -> None:
    results = osu.read(load("osu_mbw_mr.txt"), "x")
    assert results.pairs[0].gbit_per_s == pytest.approx(190, rel=0.01)
    assert "the figure is the sum of 4 pairs of processes" in results.notes


def test_of_several_runs_in_a_file_the_median_counts() -> None:
    text = b"".join(
        b"# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1  1.0\n4096  %d.00\n" % rate
        for rate in (1000, 3000, 2000)
    )
    (pair,) = osu.read(text, "x").pairs
    assert (pair.gbit_per_s, pair.min_gbit_per_s) == (pytest.approx(16), pytest.approx(8))


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (load("osu_bibw.txt"), "sum of both directions"),
        (b"# OSU MPI Latency Test v7.5\n# Size       Latency (us)\n1   1.2\n", "no bandwidth"),
        (b"# OSU MPI Allreduce Latency Test v7.5\n# Size   Avg Latency(us)\n4  1.2\n", "no bandw"),
        (b"# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n", "without a single"),
    ],
)
def test_what_osu_measured_otherwise_is_refused(data: bytes, part: str) -> None:
    assert osu.recognises(data)
    with pytest.raises(UsageError, match=part):
        osu.read(data, "x")


def rows(results_rows: list[TableRow]) -> list[TableRow]:
    return [row._replace(place=None) for row in results_rows]


def test_rccl_json_and_csv_tell_the_same() -> None:
    (run,) = rccl.read(load("rccl.json"), "r.json").benchmarks
    (other,) = rccl.read(load("rccl.csv"), "r.csv").benchmarks
    assert rows(run.rows) == rows(other.rows)
    assert run.test == other.test == "all_reduce_perf"
    assert [rank.host for rank in run.ranks] == ["node1"] * 8 + ["node2"] * 8
    first = json.loads(load("rccl.json").splitlines()[0])
    second = json.loads(load("rccl.json").splitlines()[1])
    assert run.rows[0].out_of_place_time_us == first["time"]
    assert run.rows[0].in_place_time_us == second["time"]
    assert run.rows[0].in_place_busbw == second["busBw"]
    assert run.rows[0].out_of_place_wrong == 0
    assert len(run.rows) == 11


def test_rccl_csv_without_mpi() -> None:
    text = (
        "collective, gpus, size, type, redop, inplace, time, algbw, busbw, #wrong\n"
        "AllGather, 8, 1048576, float, none, 0, 20.5, 51.1, 44.7, N/A\n"
        "AllGather, 8, 1048576, float, none, 1, 20.6, 50.9, 44.5, 0\n"
    )
    (run,) = rccl.read(text.encode(), "x").benchmarks
    (row,) = run.rows
    assert (row.out_of_place_busbw, row.in_place_busbw) == (44.7, 44.5)
    assert (row.out_of_place_wrong, row.in_place_wrong) == (None, 0)
    assert len(run.ranks) == 8


def test_rccl_json_with_words_that_are_not_quoted() -> None:
    text = (
        '{"name":AllReduce, "gpus":2, "size":64, "type":float, "redop":sum, "inPlace":0, '
        '"time":3.5, "algBw":0.01, "busBw":0.01, "wrong":N/A}\n'
    )
    assert rccl.recognises(text.encode())
    (run,) = rccl.read(text.encode(), "x").benchmarks
    assert run.rows[0].out_of_place_time_us == 3.5


def test_damaged_lines_of_rccl_are_counted() -> None:
    results = rccl.read(load("rccl.json") + b'{"name":"AllReduce", "nodes":2, "ra', "x")
    assert results.cut
    assert any(note.startswith("1 of its lines") for note in results.notes)
    assert len(results.benchmarks[0].rows) == 11


def test_superbench_tells_what_each_node_reaches() -> None:
    results = superbench.read(load("superbench.jsonl"), "x")
    assert [run.ranks[0].host for run in results.benchmarks] == ["sb-01", "sb-02", "sb-03", "sb-04"]
    assert {len(run.ranks) for run in results.benchmarks} == {8}
    assert {run.test for run in results.benchmarks} == {"all_reduce_perf"}
    first = json.loads(load("superbench.jsonl").splitlines()[0])
    largest = results.benchmarks[0].rows[-1]
    assert largest.size == 1 << 30
    key = "nccl-bw:nvlink/allreduce_1073741824_{}:0"
    assert largest.out_of_place_busbw == first[key.format("busbw")]
    assert largest.out_of_place_time_us == first[key.format("time")]
    assert not results.pairs


def test_superbench_tells_of_pairs_of_nodes() -> None:
    line = {
        "node": "sb_1",
        "ib-traffic:pairs/ib_write_bw_8388608_gpu-to-gpu_0_0:sb_1_sb_2": 24.1,
        "ib-traffic:pairs/ib_write_bw_1024_gpu-to-gpu_0_0:sb_1_sb_2": 1.1,
        "ib-traffic/ib_write_bw_8388608_cpu-to-cpu_1_0:a_b_c": 9.0,
        "ib-traffic/ib_write_lat_8_cpu-to-cpu_1_0:sb_1_sb_2": 3.0,
    }
    text = json.dumps(line) + "\n" + json.dumps({"node": "sb_2", "mem-bw/H2D_Mem_BW:0": 25.6})
    results = superbench.read(text.encode(), "x")
    (pair,) = results.pairs
    assert (pair.source, pair.target) == ("sb_2", "sb_1")
    assert pair.gbit_per_s == pytest.approx(24.1 * 8)
    assert pair.size_bytes == 8 << 20
    assert results.together
    assert any("cannot be told apart" in note for note in results.notes)


def test_superbench_without_a_result_of_the_network() -> None:
    with pytest.raises(UsageError, match="without any of nccl-bw"):
        superbench.read(b'{"node": "a", "gemm-flops/FP64:0": 1.0}\n', "x")


def test_a_last_line_of_superbench_that_is_cut() -> None:
    results = superbench.read(load("superbench.jsonl")[:-300], "x")
    assert len(results.benchmarks) == 3
    assert results.cut


def test_nccl_tests_without_a_result_is_refused() -> None:
    text = b"# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 \n"
    assert nccl_tests.recognises(text)
    with pytest.raises(UsageError, match="without a single result"):
        nccl_tests.read(text, "x")
