"""Results as launchers, newer versions and accidents leave them."""

import json

import pytest

from ncdiag.read import perftest
from ncdiag.read.results import rccl, superbench
from ncdiag.read.results.formats import FORMATS, read_results

GRAPH = (
    "START mpiGraph v1.5\nMsgSize\t1048576\nTimes\t5\nWindow\t8\nProcs\t2\n\n"
    "Recv\tyew1:0\tyew2:1\t\nyew1:0 from\t0.000\t2000.000\t\nyew2:1 from\t1000.000\t0.000\t\n"
    "END mpiGraph\n"
)
OSU = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n\n1  2.00\n4194304  25000.00\n"
PERFTEST = (
    f"{'-' * 87}\n                    RDMA_Write BW Test\n{'-' * 87}\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    f" 65536      5000             200.10             200.00             0.381\n{'-' * 87}\n"
)
NODES = ["oak1", "oak2", "oak3"]


def record(size: int, in_place: int, busbw: float = 90.0) -> str:
    return (
        f'{{"numCycle":0, "name":"AllReduce", "nodes":1, "ranks":8, "ranksPerNode":8, '
        f'"gpusPerRank":1, "size":{size}, "type":"float", "redop":"sum", "inPlace":{in_place}, '
        f'"time":12.500000, "algBw":{busbw / 1.75:f}, "busBw":{busbw:f}, "wrong":"0"}}'
    )


def summary(metrics: dict[str, dict[str, object]]) -> bytes:
    return "".join(
        json.dumps({"node": node, **one}) + "\n" for node, one in metrics.items()
    ).encode()


@pytest.mark.parametrize(
    "prefix", ["[1,0]<stdout>:", "[prterun-yew1-4411@1,0]<stdout>: ", "0: ", " 12: ", "[0] "]
)
@pytest.mark.parametrize(
    ("text", "gbit_per_s"), [(GRAPH, 2000 * 2**20 * 8e-9), (OSU, 200.0), (PERFTEST, 200.0)]
)
def test_what_launchers_put_before_each_line_is_taken_off(
    text: str, gbit_per_s: float, prefix: str
) -> None:
    told = "".join(f"{prefix}{line}".rstrip(" ") + "\n" for line in text.splitlines())
    plain, found = (read_results(one.encode(), "r") for one in (text, told))
    assert found.pairs == plain.pairs
    assert max(pair.gbit_per_s or 0.0 for pair in found.pairs) == pytest.approx(gbit_per_s)
    assert found.cut == plain.cut


def test_a_number_before_some_of_the_lines_is_left_alone() -> None:
    assert read_results(f"7: a line of a script\n{GRAPH}".encode(), "r").format == "mpigraph"


def test_colours_do_not_hide_a_row_of_perftest() -> None:
    text = PERFTEST.replace(" 65536", "\x1b[0m 65536")
    assert perftest.read(text.encode(), "r").pairs[0].gbit_per_s == 200.0


def test_a_title_may_stand_deep_in_a_file_that_was_named() -> None:
    chatter = "[17000.1] [yew1:77] ucp_context.c:100 UCX  WARN  a transport is missing\n" * 3000
    assert read_results((chatter + GRAPH).encode(), "r").format == "mpigraph"


@pytest.mark.parametrize("join", ["\n", ",\n"])
def test_rccl_of_several_cycles_is_read(join: str) -> None:
    body = join.join(record(size, place) for size in (1 << 20, 1 << 21) for place in (0, 1))
    text = f"[\n{body}\n]\n" if "," in join else body
    found = read_results(text.encode(), "r.json")
    assert [row.in_place_busbw for row in found.benchmarks[0].rows] == [90.0, 90.0]
    assert not found.cut


def test_a_list_of_rccl_without_its_end_is_cut() -> None:
    assert rccl.read(f"[\n{record(1 << 20, 0)},\n".encode(), "r.json").cut


def test_csv_of_rccl_of_several_cycles_is_read() -> None:
    head = "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,"
    rows = "0,AllReduce,8,8,1,1048576,float,sum,0,20.0,52.4,91.7,0\n"
    plain = read_results(f"{head}busbw,#wrong\n{rows}".encode(), "r.csv")
    with_nodes = rows.replace("Reduce,8", "Reduce,1,8")
    told = read_results(f"{head}busbw,#wrong\n{with_nodes}".encode(), "r.csv")
    for found in (plain, told):
        assert [row.out_of_place_busbw for row in found.benchmarks[0].rows] == [91.7]
        assert len(found.benchmarks[0].ranks) == 8


def test_an_endless_word_in_csv_is_a_damaged_line() -> None:
    text = "collective, ranks, rankspernode, gpusperrank, size, type, redop, inplace, time, algbw, "
    text += "busbw, #wrong\nAllReduce, 8, 8, 1, 1024, float, sum, 0, 20.0, 0.1, 0.2, 0\n"
    found = rccl.read(f"{text}{'x' * 200_000}\n".encode(), "r.csv")
    assert (len(found.benchmarks[0].rows), found.cut) == (1, True)


def test_a_node_on_which_superbench_failed_is_never_healthy() -> None:
    good: dict[str, object] = {"nccl-bw/allreduce_1048576_busbw:0": 80.0, "nccl-bw/return_code": 0}
    metrics = dict.fromkeys(NODES, good) | {"oak2": {"nccl-bw/return_code": 32}}
    found = superbench.read(summary(metrics), "r")
    assert (found.failed, found.cut) == (True, False)
    assert found.notes == ["oak2: nccl-bw failed with code 32: not healthy"]
    assert not superbench.read(summary(dict.fromkeys(NODES, good)), "r").failed


def test_a_figure_that_is_none_does_not_cost_a_node() -> None:
    metrics: dict[str, object] = {
        "kernel-launch/event_time:0": float("nan"),
        "mem-bw/peak": [float("inf"), 2.0],
        "nccl-bw/allreduce_1048576_busbw:0": 80.0,
    }
    found = superbench.read(summary(dict.fromkeys(NODES, metrics)), "r")
    assert len(found.benchmarks) == len(NODES)
    assert not found.cut


def test_pairs_of_older_superbench_are_read() -> None:
    metrics: dict[str, object] = {
        "ib-traffic/ib_write_bw_0_0_oak1_oak2_bw:0": 24.0,
        "ib-traffic/ib_write_lat_0_0_oak1_oak2_lat:0": 2.0,
    }
    found = superbench.read(summary({"oak1": metrics, "oak2": {}}), "r")
    (pair,) = found.pairs
    assert (pair.source, pair.target) == ("oak2", "oak1")  # the client sends to the server
    assert pair.gbit_per_s == pytest.approx(192.0)


@pytest.mark.parametrize("filler", [b"x", b"a1", b"Raw", b"\n", b" ", b"\t{", b'"', b"0: "])
def test_whatever_a_file_is_full_of_is_told_apart_in_a_time_that_ends(filler: bytes) -> None:
    """With a search that begins anew at each letter this would take hours."""
    text = filler * ((2 << 20) // len(filler))
    for one in FORMATS:
        one.recognises(text)


def test_a_block_of_json_that_never_ends_is_read_in_a_time_that_ends() -> None:
    text = "{\ntest_info: {\ntest: RDMA_Write_BW_Test,\nresults: {\nMsgSize: 65536,\n" + "a:" * (
        16 << 20
    )
    assert perftest.read(text.encode(), "r").cut
