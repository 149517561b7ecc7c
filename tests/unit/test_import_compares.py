"""What of imported figures compares: no healthy host is blamed for a smaller or another test."""

import json
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from ncdiag.cli import main
from ncdiag.measure.imported_alike import comparable
from ncdiag.model.imported import PairFigure

HOSTS = ("elm1", "elm2", "elm3", "elm4")
ODD = "elm2"
RULE = "-" * 87


@pytest.fixture(autouse=True)
def pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncdiag.report.heatmap.render", lambda _: b"")


def perftest(
    gbit: float, *, size: int = 65536, test: str = "RDMA_Write", qps: int = 1, lids: str = ""
) -> str:
    first, second = lids.split(",") if lids else ("0000", "0000")
    return "\n".join(
        [
            RULE,
            f"                    {test} BW Test",
            f" Number of qps   : {qps}\t\tTransport type : IB",
            RULE,
            f" local address: LID {first} QPN 0x0041 PSN 0x10aa22",
            f" remote address: LID {second} QPN 0x0042 PSN 0x10aa23",
            RULE,
            " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
            f" {size}      5000             {gbit:.2f}             {gbit:.2f}       0.5",
            RULE,
            "",
        ]
    )


def osu(mb: float, *, sizes: int = 23, title: str = "MPI Bandwidth", fails: bool = False) -> str:
    lines = [f"# OSU {title} Test v7.4", "# Datatype: MPI_CHAR."]
    lines.append("# Size      Bandwidth (MB/s)        Validation")
    for power in range(sizes):
        size = 2**power
        verdict = "Fail" if fails and power == sizes - 1 else "Pass"
        lines.append(f"{size:<10d}{mb * size / (size + 3e4):>18.2f}{verdict:>18}")
    return "\n".join(lines) + "\n"


def imported(tmp_path: Path, files: dict[tuple[str, str], str]) -> tuple[int, dict[str, Any]]:
    given = []
    for (source, target), text in files.items():
        path = tmp_path / f"{source}_{target}.txt"
        path.write_text(text)
        given.append(f"{source},{target}={path}")
    code = main.run(["import", *given, "--output", str(tmp_path / "out"), "--quiet"])
    report: dict[str, Any] = json.loads((tmp_path / "out/report.json").read_bytes())
    return code, report


def blamed(report: dict[str, Any]) -> list[str]:
    return [*(one["name"] for one in report["culprits"]), *report["isolate"]]


def every(make: Callable[[bool], str]) -> dict[tuple[str, str], str]:
    return {pair: make(ODD in pair) for pair in permutations(HOSTS, 2)}


def unlike() -> Iterator[tuple[str, dict[tuple[str, str], str]]]:
    """One healthy host measured with less than the others, in every way that tools have."""
    yield (
        "small messages",
        every(lambda odd: perftest(2.0, size=64) if odd else perftest(391.0)),
    )
    yield (
        "another verb",
        every(lambda odd: perftest(200.0, test="RDMA_Read") if odd else perftest(391.0)),
    )
    yield (
        "one queue pair",
        every(lambda odd: perftest(190.0) if odd else perftest(391.0, qps=8)),
    )
    yield "ended early", every(lambda odd: osu(49000.0, sizes=12) if odd else osu(49000.0))
    yield (
        "GPU buffers",
        every(lambda odd: osu(20000.0, title="MPI-CUDA Bandwidth") if odd else osu(49000.0)),
    )


@pytest.mark.parametrize(("what", "files"), list(unlike()))
def test_a_host_measured_with_less_is_undecided_and_never_blamed(
    what: str, files: dict[tuple[str, str], str], tmp_path: Path
) -> None:
    code, report = imported(tmp_path, files)
    assert (code, blamed(report)) == (3, []), what
    assert ODD not in report["good"]
    why = {link["error"] for link in report["links"] if ODD in (link["source"], link["target"])}
    assert all(one and one.endswith("does not compare") for one in why)


def test_a_host_that_is_slow_at_every_size_is_still_named(tmp_path: Path) -> None:
    code, report = imported(tmp_path, every(lambda odd: osu(12000.0 if odd else 49000.0)))
    assert (code, report["isolate"]) == (1, [ODD])
    todo = report["culprits"][0]["next"]
    assert todo.startswith(f"on {ODD}: check cable and optics; then ncdiag sweep --nodes {ODD},")


def test_small_messages_that_are_fast_enough_prove_a_link_healthy(tmp_path: Path) -> None:
    files = every(lambda odd: perftest(388.0) if odd else perftest(391.0, size=8 << 20))
    code, report = imported(tmp_path, files)
    assert (code, report["good"]) == (0, list(HOSTS))


def test_what_is_slow_by_the_size_that_others_are_fast_with_stays() -> None:
    fast = PairFigure(source="a", target="b", gbit_per_s=390.0, largest_bytes=65536)
    slow = PairFigure(source="a", target="c", gbit_per_s=90.0, largest_bytes=65536)
    more = PairFigure(source="b", target="c", gbit_per_s=392.0, largest_bytes=8 << 20)
    assert comparable([fast, slow, more], 0.8) == [fast, slow, more]
    assert comparable([slow, more], 0.8)[0].gbit_per_s is None


def test_nccl_tests_of_small_sizes_blame_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for first, second in combinations(HOSTS, 2):
        powers = range(10, 14) if ODD in (first, second) else range(10, 33)
        (folder / f"{first}-{second}.txt").write_text(nccl_pair(first, second, powers))
    out = tmp_path / "out"
    assert main.run(["import", str(folder), "--output", str(out), "--quiet"]) == 3
    assert blamed(json.loads((out / "report.json").read_bytes())) == []


def nccl_pair(first: str, second: str, powers: range) -> str:
    lines = [
        "# Collective test starting: sendrecv_perf",
        f"# nThread 1 nGpus 1 minBytes {2 ** powers[0]} maxBytes {2 ** powers[-1]} step: 2(factor)",
        "#",
        "# Using devices",
    ]
    for rank, host in enumerate((first, second)):
        lines.append(
            f"#  Rank {rank:2d} Group  0 Pid   91{rank} on {host:>10s} device  0 [0000:1b:00]"
        )
    lines += ["#", "#       size         count      type   redop    root     time   algbw   busbw"]
    for power in powers:
        size = 2**power
        rate = 48.0 * size / (size + 3e7)
        half = f"  {size / 1e3 / rate:7.0f}  {rate:6.2f}  {rate:6.2f}"
        row = f"{size:12d}  {size // 4:12d}  {'float':>8}  {'none':>6}  {'-1':>6}"
        lines.append(f"{row}{half}       0{half}     N/A")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 21.1 ", "#"]
    return "\n".join([*lines, "# Collective test concluded: sendrecv_perf", ""])


def test_wrong_data_of_osu_is_no_figure(tmp_path: Path) -> None:
    files = every(lambda odd: osu(49000.0, fails=odd))
    code, report = imported(tmp_path, files)
    wrong = [link for link in report["links"] if ODD in (link["source"], link["target"])]
    assert code == 1
    assert {(link["measured_gbit_per_s"], link["error"]) for link in wrong} == {
        (None, "wrong data arrived")
    }
    assert {link["status"] for link in wrong} == {"faulty"}
    assert report["isolate"] == [ODD]
    assert any("worse than slow" in note for note in report["notes"])


def test_names_go_before_what_perftest_calls_by_lid(tmp_path: Path) -> None:
    text = perftest(391.0, lids="0x21,0x22")
    code, report = imported(tmp_path, {("elm1", "elm2"): text, ("elm2", "elm1"): text})
    assert (code, report["good"]) == (0, ["elm1", "elm2"])


def test_names_in_a_files_name_are_taken_for_lids(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("elm1\nelm2\n")
    path = tmp_path / "ib_write_bw_elm1_elm2.log"
    path.write_text(perftest(391.0, lids="0x21,0x22"))
    out = tmp_path / "out"
    main.run(["import", str(path), "--hosts", str(tmp_path / "hosts"), "--output", str(out)])
    report = json.loads((out / "report.json").read_bytes())
    assert [(one["source"], one["target"]) for one in report["links"]] == [("elm1", "elm2")]


def nvbandwidth(count: int, rate: Callable[[int, int], float]) -> str:
    name = "device_to_device_memcpy_write_ce"
    lines = ["nvbandwidth Version: v0.8", "", f"Running {name}."]
    lines.append("memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)")
    lines.append("  " + "".join(f"{one:10d}" for one in range(count)))
    for row in range(count):
        cells = ("N/A" if row == one else f"{rate(row, one):.2f}" for one in range(count))
        lines.append(f"{row:2d}" + "".join(f"{cell:>10}" for cell in cells))
    return "\n".join([*lines, "", f"SUM {name} 1.00", "", "NOTE: that was all.", ""])


def inside(tmp_path: Path, text: str) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "nvbandwidth.txt"
    path.write_text(text)
    out = tmp_path / "out"
    code = main.run(["import", f"box1={path}", "--output", str(out), "--quiet"])
    report: dict[str, Any] = json.loads((out / "report.json").read_bytes())
    return code, report


@pytest.mark.parametrize(
    ("count", "across", "within"), [(8, 15.0, 24.0), (4, 15.0, 24.0), (4, 21.0, 260.0)]
)
def test_two_sockets_or_bridges_are_no_fault_of_any_link(
    count: int, across: float, within: float, tmp_path: Path
) -> None:
    half = count // 2
    text = nvbandwidth(count, lambda a, b: within if a // half == b // half else across)
    code, report = inside(tmp_path, text)
    assert (code, report["culprits"]) == (3, [])
    assert {link["status"] for link in report["links"]} == {"healthy", "inconclusive"}
    assert any("nvidia-smi topo -m" in note for note in report["notes"])


def test_one_bad_link_among_gpus_is_still_named(tmp_path: Path) -> None:
    code, report = inside(
        tmp_path, nvbandwidth(8, lambda a, b: 90.0 if {a, b} == {2, 5} else 390.0)
    )
    assert code == 1
    assert {one["name"] for one in report["culprits"]} == {
        "box1:gpu2->box1:gpu5",
        "box1:gpu5->box1:gpu2",
    }


def test_a_bad_gpu_of_two_sockets_is_named_alone(tmp_path: Path) -> None:
    def rate(a: int, b: int) -> float:
        return 4.0 if 3 in {a, b} else 24.0 if a // 4 == b // 4 else 15.0

    code, report = inside(tmp_path, nvbandwidth(8, rate))
    assert (code, [one["name"] for one in report["culprits"]]) == (1, ["box1:gpu3"])


def superbench(nodes: dict[str, dict[int, float]]) -> str:
    return "".join(
        json.dumps(
            {"node": node, **{f"nccl-bw/allreduce_{s}_busbw:0": r for s, r in sizes.items()}}
        )
        + "\n"
        for node, sizes in nodes.items()
    )


def rising(largest: int, share: float = 1.0) -> dict[int, float]:
    """Level at 300 GB/s up to 64 MiB and at 480 GB/s above, as where a protocol changes."""
    sizes = {2**power: 300.0 if power <= 26 else 480.0 for power in range(18, largest)}
    return {size: rate * share for size, rate in sizes.items()}


def benched(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr("ncdiag.report.bench.picture.render", lambda _: b"")
    (tmp_path / "results-summary.jsonl").write_text(text)
    out = tmp_path / "out"
    code = main.run(
        ["import", str(tmp_path / "results-summary.jsonl"), "--output", str(out), "--quiet"]
    )
    report: dict[str, Any] = json.loads((out / "bench.json").read_bytes())
    return code, report


def test_a_node_that_sent_smaller_messages_is_not_odd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {host: rising(27 if host == ODD else 34) for host in HOSTS}
    code, report = benched(tmp_path, superbench(nodes), monkeypatch)
    assert code != 1
    assert not [one for one in report["findings"] if one["severity"] == "fault"]


def test_a_node_that_is_slow_at_the_sizes_it_sent_is_odd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {host: rising(27, 0.5) if host == ODD else rising(34) for host in HOSTS}
    code, report = benched(tmp_path, superbench(nodes), monkeypatch)
    assert code == 1
    assert report["findings"][0]["text"].startswith(f"{ODD} by itself reaches 150 GB/s, 50 %")


def test_of_two_nodes_that_differ_neither_is_healthy_or_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {"elm1": rising(34), "elm2": rising(34, 0.4)}
    code, report = benched(tmp_path, superbench(nodes), monkeypatch)
    assert code == 3
    assert "of two nobody can tell which is odd" in report["findings"][0]["text"]
