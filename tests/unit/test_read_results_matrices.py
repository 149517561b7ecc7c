"""Matrices of bandwidths that other tools print: mpiGraph, ClusterKit, nvbandwidth."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults
from ncdiag.read.results import clusterkit, mpigraph, nvbandwidth

DATA = Path(__file__).parents[1] / "data/results"
HOSTS = ["fir1", "fir2", "fir3", "fir4", "fir5"]
MIB_GBIT = 2**20 * 8 / 1e9


def load(name: str) -> bytes:
    return (DATA / name).read_bytes()


def figures(results: ForeignResults) -> dict[tuple[str, str], float | None]:
    return {(pair.source, pair.target): pair.gbit_per_s for pair in results.pairs}


def test_mpigraph_tells_every_direction_by_the_receiver() -> None:
    results = mpigraph.read(load("mpigraph.txt"), "m.txt")
    assert results.endpoints == HOSTS
    assert results.together
    assert not results.cut
    found = figures(results)
    assert len(found) == 20
    # Row "fir1:0 from", column "fir2:1" is what fir1 receives from fir2.
    row = next(line for line in load("mpigraph.txt").decode().splitlines() if "fir1:0 from" in line)
    assert found["fir2", "fir1"] == pytest.approx(float(row.split("\t")[2]) * MIB_GBIT)
    into_fir3 = [rate for (_, target), rate in found.items() if target == "fir3"]
    others = [rate for (_, target), rate in found.items() if target != "fir3"]
    assert max(filter(None, into_fir3)) < 0.5 * min(filter(None, others))
    assert {pair.size_bytes for pair in results.pairs} == {1 << 20}


def test_mpigraph_with_several_tasks_on_a_host_takes_the_median() -> None:
    text = (
        "START mpiGraph v1.5\nMsgSize\t65536\n\nRecv\ta:0\ta:1\tb:2\t\n"
        "a:0 from\t0.000\t9999.000\t100.000\t\n"
        "a:1 from\t9999.000\t0.000\t200.000\t\n"
        "b:2 from\t300.000\t500.000\t0.000\t\nEND mpiGraph\n"
    )
    results = mpigraph.read(text.encode(), "m")
    assert results.endpoints == ["a", "b"]
    found = {(p.source, p.target): (p.gbit_per_s, p.min_gbit_per_s) for p in results.pairs}
    assert found == {
        ("b", "a"): (pytest.approx(150 * MIB_GBIT), pytest.approx(100 * MIB_GBIT)),
        ("a", "b"): (pytest.approx(400 * MIB_GBIT), pytest.approx(300 * MIB_GBIT)),
    }


def test_mpigraph_that_died_before_its_second_matrix_is_judged_by_the_first() -> None:
    whole = load("mpigraph.txt")
    results = mpigraph.read(whole[: whole.index(b"Recv\t")], "m.txt")
    assert results.cut
    assert all(results.pairs[n].gbit_per_s for n in range(20))
    assert any("what was sent" in note for note in results.notes)


def test_mpigraph_that_died_in_a_matrix_says_which_pairs_are_missing() -> None:
    whole = load("mpigraph.txt")
    results = mpigraph.read(whole[: whole.index(b"fir3:2 to")], "m.txt")
    missing = [pair for pair in results.pairs if pair.error]
    assert {pair.source for pair in missing} == {"fir3", "fir4", "fir5"}
    assert results.cut


def test_a_figure_that_is_cut_in_the_middle_is_none() -> None:
    whole = load("mpigraph.txt")
    row = whole.index(b"fir5:4 to")
    cut = whole[: whole.index(b"\t", row + 12) + 4]
    before, after = mpigraph.read(cut[:-3], "m"), mpigraph.read(cut, "m")
    assert figures(before) == figures(after)


@pytest.mark.parametrize("name", ["clusterkit_bandwidth.txt", "clusterkit_bandwidth.json"])
def test_clusterkit_as_text_and_as_json_tells_the_same(name: str) -> None:
    results = clusterkit.read(load(name), name)
    assert results.endpoints == HOSTS
    assert results.together
    assert results.sums
    assert not results.cut
    text = clusterkit.read(load("clusterkit_bandwidth.txt"), "t")
    assert figures(results) == pytest.approx(figures(text))
    assert figures(results)["fir1", "fir2"] == figures(results)["fir2", "fir1"]
    assert figures(results)["fir1", "fir2"] == pytest.approx(42100 * 8e-3, rel=0.02)


def test_a_matrix_of_which_only_one_half_is_filled() -> None:
    text = (
        "    Rank:        0       1       2\n"
        "       0 (a):  0.0  1000.0  2000.0\n"
        "       1 (b):  0.0     0.0  3000.0\n"
        "       2 (c):  0.0     0.0     0.0\n"
    )
    found = figures(clusterkit.read(text.encode(), "x"))
    assert found["c", "b"] == found["b", "c"] == pytest.approx(24.0)


def test_clusterkit_text_without_its_last_rows() -> None:
    whole = load("clusterkit_bandwidth.txt")
    results = clusterkit.read(whole[: whole.index(b"4 (fir5)")], "t")
    assert results.cut
    assert results.endpoints == HOSTS[:4]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Latency (usec)\n Rank:  0  1\n 0 (a):  0.0 1.7\n 1 (b):  1.7 0.0\n", "latencies"),
        (" Rank:  0  1\n 0 (a):  0.00 0.98\n 1 (b):  0.98 0.00\n", "normalized"),
        (" Rank:  0  1\n", "without a matrix"),
        (" Rank:  0  1\n 0 (a):  0.0 900.0\n 1 (a):  900.0 0.0\n", "same name"),
        ('{"Test": "latency", "Nodes": [{"Name": "a", "Links": [[1, 2.0]]}]}', "latencies"),
        ('{"Nodes": [{"Links": [[1, 2.0]]}]}', "without a matrix"),
    ],
)
def test_matrices_of_clusterkit_that_say_nothing_of_links(text: str, part: str) -> None:
    assert clusterkit.recognises(text.encode())
    with pytest.raises(UsageError, match=part):
        clusterkit.read(text.encode(), "x.txt")


@pytest.mark.parametrize("name", ["nvbandwidth.txt", "nvbandwidth.json"])
def test_nvbandwidth_as_text_and_as_json(name: str) -> None:
    results = nvbandwidth.read(load(name), name)
    assert results.inside == ""
    assert results.endpoints == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert not results.cut
    found = figures(results)
    assert len(found) == 12
    assert found["gpu0", "gpu1"] == pytest.approx(390 * 8, rel=0.01)
    assert found["gpu2", "gpu1"] == pytest.approx(195 * 8, rel=0.02)
    assert any("gpu3 reaches 26.9 GB/s" in note for note in results.notes)


NAMED = (
    "Running device_to_device_memcpy_{}_ce.\n"
    "memcpy CE GPU(row) {} GPU(column) bandwidth (GB/s)\n"
    "           0         1\n 0       N/A    100.00\n 1    200.00       N/A\n"
)


@pytest.mark.parametrize(
    ("kind", "arrow", "sender"), [("read", "<-", "gpu1"), ("write", "->", "gpu0")]
)
def test_the_arrow_of_a_matrix_says_who_sends(kind: str, arrow: str, sender: str) -> None:
    found = figures(nvbandwidth.read(NAMED.format(kind, arrow).encode(), "x"))
    other = {"gpu0": "gpu1", "gpu1": "gpu0"}[sender]
    assert found[sender, other] == pytest.approx(800.0)
    assert found[other, sender] == pytest.approx(1600.0)


def test_nvbandwidth_over_several_hosts_names_them() -> None:
    text = (
        "Process 0 (fir1): device 0: NVIDIA GB200 (00000008:01:00)\n"
        "Process 1 (fir2): device 0: NVIDIA GB200 (00000008:01:00)\n\n"
    ) + NAMED.format("read", "<-")
    assert nvbandwidth.read(text.encode(), "x").endpoints == ["fir1:gpu0", "fir2:gpu0"]


def test_nvbandwidth_that_ended_in_an_error_says_so() -> None:
    document = json.loads(load("nvbandwidth.json"))
    document["nvbandwidth"]["error"] = "CUDA_ERROR_ECC_UNCORRECTABLE"
    results = nvbandwidth.read(json.dumps(document).encode(), "x")
    assert results.failed
    assert any("ECC" in note for note in results.notes)


def test_nvbandwidth_without_copies_between_gpus() -> None:
    whole = load("nvbandwidth.txt")
    with pytest.raises(
        UsageError, match=r"no copies between two GPUs in it .it has host_to_device"
    ):
        nvbandwidth.read(whole[: whole.index(b"Running device_to_device")], "x")


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (mpigraph.read, "mpigraph.txt"),
        (clusterkit.read, "clusterkit_bandwidth.txt"),
        (clusterkit.read, "clusterkit_bandwidth.json"),
        (nvbandwidth.read, "nvbandwidth.txt"),
        (nvbandwidth.read, "nvbandwidth.json"),
    ],
)
def test_what_is_cut_anywhere_is_used_or_refused_in_one_line(
    read: Callable[[bytes, str], ForeignResults], name: str
) -> None:
    whole = load(name)
    known, complaints = figures(read(whole, name)), []
    for end in range(0, len(whole), 7):
        try:
            results = read(whole[:end], name)
        except UsageError as error:
            complaints.append(f"{error}")
            continue
        told = {link: rate for link, rate in figures(results).items() if rate is not None}
        # What was sent stands in for what was received, and is 1 % more in this file.
        assert told == pytest.approx({link: known[link] for link in told}, rel=0.011), end
        assert results.cut or told.keys() == known.keys(), end
    assert complaints
    assert not any("\n" in complaint for complaint in complaints)
