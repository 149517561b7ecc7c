"""``ncdiag import``: results of other tools end in the same reports, with the same blame."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from nccl_tests_programs import install
from nccl_tests_runs import PLANTED, play

from ncdiag.cli import main
from ncdiag.measure.journal import read_journal
from ncdiag.measure.record import SweepRecord

DATA = Path(__file__).parents[1] / "data/results"
SWEEP_FILES = {
    "report.json", "links.csv", "summary.txt", "report.html", "heatmap.png", "hosts.good.txt",
    "hosts.isolate.txt", "journal.jsonl", "metrics.prom",
}  # fmt: skip
REALLY_DRAWN = {
    "test_what_ran_beside_others_names_suspects_and_accuses_nobody[mpigraph.txt]",
    "test_rccl_ends_in_a_benchmark[rccl.json]",
}
BENCH_FILES = {
    "summary.txt",
    "bench.json",
    "bench.csv",
    "bench.html",
    "bench.png",
    "metrics.prom",
}


@pytest.fixture(autouse=True)
def pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take most of the time; those of one matrix and one benchmark are really drawn."""
    if request.node.name not in REALLY_DRAWN:
        monkeypatch.setattr("ncdiag.report.heatmap.render", lambda _: b"")
        monkeypatch.setattr("ncdiag.report.bench.picture.render", lambda _: b"")


def run(*arguments: str | Path) -> int:
    return main.run(["import", *map(str, arguments)])


def sweep_of(output: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((output / "report.json").read_bytes())
    return found


def bench_of(output: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((output / "bench.json").read_bytes())
    return found


@pytest.mark.parametrize(
    "name", ["mpigraph.txt", "clusterkit_bandwidth.txt", "clusterkit_bandwidth.json"]
)
def test_what_ran_beside_others_names_suspects_and_accuses_nobody(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DATA / name, "--output", tmp_path) == 3
    assert {file.name for file in tmp_path.iterdir()} == SWEEP_FILES
    report = sweep_of(tmp_path)
    assert report["verdict"] == "inconclusive"
    assert report["culprits"] == report["isolate"] == []
    assert report["plan"] == {
        "mode": "imported",
        "hosts": 5,
        "rounds": 1,
        "pairs": 10,
        "engine": name.partition("_")[0].removesuffix(".txt"),
        "launcher": "import",
        "endpoint": "host",
    }
    notes = "\n".join(report["notes"])  # type: ignore[arg-type]
    assert "may be contention" in notes
    assert "suspect, not proven: host fir3" in notes
    assert "ncdiag sweep --nodes fir3," in notes
    assert (tmp_path / "hosts.isolate.txt").read_text() == ""
    assert "quiet" not in (tmp_path / "report.json").read_text()
    assert "INCONCLUSIVE" in capsys.readouterr().out


def test_pairs_measured_one_by_one_name_the_culprit(tmp_path: Path) -> None:
    files = sorted(DATA.glob("osu_bw_*.txt"))
    assert run(*files, "--hosts", "fir[1-3]", "--output", tmp_path) == 1
    report = sweep_of(tmp_path)
    (culprit,) = report["culprits"]  # type: ignore[misc]
    assert (culprit["kind"], culprit["name"], culprit["direction"]) == ("host", "fir3", "receive")  # type: ignore[index]
    assert "each measured in a run of its own" in culprit["reason"]  # type: ignore[index]
    assert report["isolate"] == ["fir3"]
    assert "contention could not be excluded" in "".join(report["notes"])  # type: ignore[arg-type]
    assert "quiet" not in (tmp_path / "report.json").read_text()


def test_one_partner_alone_is_too_little_to_isolate(tmp_path: Path) -> None:
    files = [DATA / f"osu_bw_{pair}.txt" for pair in ("fir1_fir2", "fir2_fir1", "fir1_fir3")]
    run(*files, "--hosts", "fir[1-3]", "--output", tmp_path)
    assert sweep_of(tmp_path)["isolate"] == []


def test_names_may_stand_before_the_path(tmp_path: Path) -> None:
    osu = [f"{a},{b}={DATA}/osu_bw_fir1_fir2.txt" for a, b in ("xy", "yx", "xz", "zx", "yz", "zy")]
    assert run(*osu, "--output", tmp_path) == 0
    assert sweep_of(tmp_path)["good"] == ["x", "y", "z"]


def test_report_renders_an_import_again(tmp_path: Path) -> None:
    run(DATA / "mpigraph.txt", "--output", tmp_path)
    before = (tmp_path / "report.json").read_bytes()
    (tmp_path / "report.json").unlink()
    assert main.run(["report", str(tmp_path)]) == 3
    assert (tmp_path / "report.json").read_bytes() == before
    record = SweepRecord.of(read_journal(tmp_path))
    assert record.plan.mode == "imported"


def test_an_import_cannot_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(DATA / "mpigraph.txt", "--output", tmp_path)
    capsys.readouterr()
    assert main.run(["sweep", "--resume", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_hosts_file_gives_names_rates_and_leaves(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text(
        "".join(f"node{n} address=fir{n} rate=100gbit leaf=l{n % 2}\n" for n in range(1, 6))
    )
    assert run(DATA / "mpigraph.txt", "--hosts", hosts, "--output", tmp_path / "out") == 3
    report = sweep_of(tmp_path / "out")
    assert [host["name"] for host in report["hosts"]] == [f"node{n}" for n in range(1, 6)]  # type: ignore[attr-defined]
    assert report["links"][0]["expected_gbit_per_s"] == pytest.approx(95, rel=0.02)  # type: ignore[index]


def test_a_rate_below_what_was_measured_is_no_yardstick(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("".join(f"fir{n} rate=25gbit\n" for n in range(1, 6)))
    run(DATA / "mpigraph.txt", "--hosts", hosts, "--output", tmp_path / "out")
    report = sweep_of(tmp_path / "out")
    assert "rate= was not used" in "".join(report["notes"])  # type: ignore[arg-type]
    assert report["links"][0]["expected_gbit_per_s"] is None  # type: ignore[index]


@pytest.mark.parametrize("name", ["nvbandwidth.txt", "nvbandwidth.json"])
def test_devices_inside_a_host_are_named_and_never_isolated(name: str, tmp_path: Path) -> None:
    assert run(f"gpu17={DATA / name}", "--output", tmp_path) == 1
    report = sweep_of(tmp_path)
    (culprit,) = report["culprits"]  # type: ignore[misc]
    assert culprit["name"] == "gpu17:gpu2"  # type: ignore[index]
    assert "on gpu17: look at GPU 2 with nvidia-smi nvlink" in culprit["next"]  # type: ignore[index]
    assert report["plan"]["endpoint"] == "GPU"  # type: ignore[index]
    summary = (tmp_path / "summary.txt").read_text()
    assert summary.startswith("ncdiag sweep: FAULTY - 1 culprit\n")
    assert "; 4 GPUs, 6 pairs" in summary
    assert "culprit:     gpu17:gpu2 (both directions) at 50 %" in summary
    page = (tmp_path / "report.html").read_text()
    assert "ncdiag sweep of 4 GPUs" in page
    assert "good hosts" not in page
    assert report["isolate"] == report["good"] == []
    assert (tmp_path / "hosts.isolate.txt").read_text() == ""
    assert (tmp_path / "hosts.good.txt").read_text() == ""
    assert "inside one host" in "".join(report["notes"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["rccl.json", "rccl.csv"])
def test_rccl_ends_in_a_benchmark(name: str, tmp_path: Path) -> None:
    assert run(DATA / name, "--output", tmp_path) == 0
    assert {file.name for file in tmp_path.iterdir()} == BENCH_FILES
    report = bench_of(tmp_path)
    assert (report["collective"], report["engine"], report["launcher"]) == (
        "all_reduce",
        "rccl-tests",
        "import",
    )
    assert report["curves"][0]["plateau_busbw_gb_per_s"] == pytest.approx(296, rel=0.01)  # type: ignore[index]
    assert "does not name its hosts" in "".join(report["notes"])  # type: ignore[arg-type]


def test_text_from_a_file_does_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((DATA / "nvbandwidth.json").read_bytes())
    document["nvbandwidth"]["hostname"] = "<script>alert(1)</script>\x1b[2J" + "x" * 900
    path = tmp_path / "n.json"
    path.write_text(json.dumps(document))
    assert run(path, "--output", tmp_path / "out") == 1
    assert "\x1b" not in capsys.readouterr().out
    assert "<script>alert" not in (tmp_path / "out/report.html").read_text()
    assert main.run(["report", str(tmp_path / "out")]) == 1


def test_rccl_with_names(tmp_path: Path) -> None:
    assert run(f"ash1,ash2={DATA / 'rccl.json'}", "--output", tmp_path) == 0
    assert bench_of(tmp_path)["curves"][0]["hosts"] == ["ash1", "ash2"]  # type: ignore[index]


def test_superbench_names_the_node_that_falls_behind(tmp_path: Path) -> None:
    assert run(DATA / "superbench.jsonl", "--output", tmp_path) == 1
    finding = bench_of(tmp_path)["findings"][0]  # type: ignore[index]
    assert finding["host"] == "sb-03"
    assert "61 % of" in finding["text"]
    summary = (tmp_path / "summary.txt").read_text()
    assert "all_reduce over 8 ranks on each of 4 hosts" in summary
    assert "yardstick:   each other: 4 hosts that were measured alike" in summary


def test_what_failed_is_undecided_and_not_called_cut_short(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (DATA / "superbench.jsonl").read_text().splitlines()]
    kept = [one for one in lines if one["node"] != "sb-03"]
    kept[0]["nccl-bw/return_code"] = 32
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, kept)) + "\n")
    store = tmp_path / "store"
    arguments = ("--output", tmp_path / "out", "--record", "--store", store)
    assert run(tmp_path / "in.jsonl", *arguments) == 3
    notes = "\n".join(bench_of(tmp_path / "out")["notes"])  # type: ignore[arg-type]
    assert "failed with code 32" in notes
    assert "cut short" not in notes


def test_the_list_of_runs_says_what_was_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ("--record", "--store", tmp_path / "store")
    assert run(DATA / "mpigraph.txt", "--output", tmp_path / "a", *kept) == 3
    assert run(DATA / "rccl.json", "--output", tmp_path / "b", *kept) == 0
    capsys.readouterr()
    assert main.run(["history", "--store", str(tmp_path / "store")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "links, by mpigraph" in shown
    assert "all_reduce, by rccl-tests" in shown


def test_curves_of_single_hosts_tell_whose_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (DATA / "superbench.jsonl").read_text().replace("sb-01", "$a$_{")
    (tmp_path / "in.jsonl").write_text(data)
    assert run(tmp_path / "in.jsonl", "--output", tmp_path / "out") == 1
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in words if line[1:3] == ["8", "224"] or line[1:3] == ["8", "134"]]
    assert [row[0] for row in rows] == ["$a$_{", "sb-02", "sb-03", "sb-04"]
    assert any(line[:2] == ["plateau", "sb-04:"] for line in words)
    page = (tmp_path / "out/bench.html").read_text()
    assert '<td class="number">sb-02</td>' in page
    assert "fewer hosts" not in page


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("nccl-tests"))


SIZES = ("-b", "8", "-e", "1G", "-f", "8", "-g", "1", "-n", "3")


def pair_runs(programs: Path, folder: Path, pairs: Sequence[str], **more: str) -> list[Path]:
    paths = []
    for pair in pairs:
        hosts = ",".join(f"elm{n}" for n in pair)
        slow = "0.3" if "3" in pair else "1"
        printed = play(
            programs, "sendrecv_perf", *SIZES, HOSTS=hosts, LOG="1",
            CLIFF=f"8+:{slow}", **more,
        )  # fmt: skip
        path = folder / f"run-{pair}.log"
        path.write_bytes(printed)
        paths.append(path)
    return paths


def test_nccl_tests_between_two_hosts_become_links(programs: Path, tmp_path: Path) -> None:
    paths = pair_runs(programs, tmp_path, ["12", "13", "14", "23", "24", "34"])
    assert run(*paths, "--output", tmp_path / "out") == 1
    report = sweep_of(tmp_path / "out")
    assert report["isolate"] == ["elm3"]
    assert report["plan"]["pairs"] == 6  # type: ignore[index]
    assert report["plan"]["engine"] == "nccl-tests"  # type: ignore[index]


def test_wrong_data_between_two_hosts_is_no_figure(programs: Path, tmp_path: Path) -> None:
    paths = pair_runs(programs, tmp_path, ["12", "14", "24"])
    wrong = pair_runs(programs, tmp_path, ["13"], WRONG="8:5")
    assert run(*paths, *wrong, "--output", tmp_path / "out") == 1
    report = sweep_of(tmp_path / "out")
    assert report["isolate"] == []
    (culprit,) = report["culprits"]  # type: ignore[misc]
    assert (culprit["name"], culprit["direction"], culprit["damaged"]) == (
        "elm1->elm3",
        "both",
        True,
    )
    assert "wrong data arrived" in culprit["reason"]


def test_a_collective_ends_in_a_benchmark(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(play(programs, "all_gather_perf", *SIZES, CLIFF="16M:0.3"))
    assert run(path, "--output", tmp_path / "out") == 1
    report = bench_of(tmp_path / "out")
    assert report["collective"] == "all_gather"
    assert report["curves"][0]["hosts"] == ["oak1", "oak2"]  # type: ignore[index]
    assert report["findings"][0]["kind"] == "cliff"  # type: ignore[index]


def test_several_collectives_get_a_report_each(
    programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("all_gather_perf", "all_reduce_perf"):
        (tmp_path / f"{name}.txt").write_bytes(play(programs, name, *SIZES))
    (tmp_path / "notes.md").write_text("nothing")
    assert run(tmp_path, "--output", tmp_path / "out") == 0
    assert {folder.name for folder in (tmp_path / "out").iterdir()} == {"all_gather", "all_reduce"}
    assert "passed over, no results: 1 file" in capsys.readouterr().err


def test_nothing_of_the_environment_is_kept(
    programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "r.json"
    play(programs, "all_reduce_perf", *SIZES, "-J", str(data))
    assert PLANTED.encode() in data.read_bytes()
    store = tmp_path / "store.sqlite"
    arguments = ("--output", tmp_path / "out", "--record", "--store", store, "--format", "json")
    assert run(data, *arguments) == 0
    told = capsys.readouterr()
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(written) == len(BENCH_FILES)
    for path in [*written, *tmp_path.glob("store.sqlite*")]:
        assert PLANTED.encode() not in path.read_bytes(), path
        assert b"DATABASE_PASSWORD" not in path.read_bytes(), path
    assert PLANTED not in told.out + told.err
    assert json.loads(told.out)["schema"] == "ncdiag/bench/1"
    assert store.exists()


def test_a_run_that_died_is_used_and_never_healthy(programs: Path, tmp_path: Path) -> None:
    data = tmp_path / "r.json"
    play(programs, "all_reduce_perf", *SIZES, "-J", str(data))
    whole = data.read_bytes()
    data.write_bytes(whole[: whole.rindex(b'"size"')])
    assert run(data, "--output", tmp_path / "out") == 3
    report = bench_of(tmp_path / "out")
    assert report["verdict"] == "inconclusive"
    assert "cut short" in "".join(report["notes"])  # type: ignore[arg-type]
    assert report["curves"][0]["points"]  # type: ignore[index]


def test_a_matrix_that_was_cut_is_never_healthy(tmp_path: Path) -> None:
    whole = (DATA / "mpigraph.txt").read_bytes()
    path = tmp_path / "m.txt"
    path.write_bytes(whole.replace(b"fir3", b"fir9")[: whole.index(b"END")])
    assert run(path, "--output", tmp_path / "out") == 3
    assert "cut short" in "".join(sweep_of(tmp_path / "out")["notes"])  # type: ignore[arg-type]


def test_healthy_pairs_of_a_file_that_was_cut_are_undecided(tmp_path: Path) -> None:
    text = "START mpiGraph v1.5\nRecv\ta:0\tb:1\tc:2\t\n" + "".join(
        f"{host} from\t" + "".join(f"{0 if n == row else 9000 + n}.000\t" for n in range(3)) + "\n"
        for row, host in enumerate(("a:0", "b:1", "c:2"))
    )
    path = tmp_path / "m.txt"
    path.write_text(text)
    assert run(path, "--output", tmp_path / "cut") == 3
    path.write_text(text + "END mpiGraph\n")
    assert run(path, "--output", tmp_path / "whole") == 0


def test_a_directory_of_a_tool_may_hold_what_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "20260203_101112"
    folder.mkdir()
    for kind in ("txt", "json"):
        shutil.copy(DATA / f"clusterkit_bandwidth.{kind}", folder / f"bandwidth.{kind}")
    (folder / "latency.txt").write_text(
        "Latency (usec)\n    Rank:  0  1\n  0 (fir1):  0.0 1.7\n  1 (fir2):  1.7 0.0\n"
    )
    assert run(folder, "--output", tmp_path / "out") == 3
    assert "passed over: " in capsys.readouterr().err
    report = sweep_of(tmp_path / "out")
    # Text and JSON are one measurement.
    assert {link["tests"] for link in report["links"]} == {1}  # type: ignore[attr-defined]


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that a wrong call ends with."""
    capsys.readouterr()
    assert run(*arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_what_cannot_be_imported_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("hello\n")
    Path("empty").mkdir()
    Path("dir").mkdir()
    shutil.copy("notes.txt", "dir/notes.txt")
    os.mkfifo("pipe")
    osu, graph = DATA / "osu_bw_fir1_fir2.txt", DATA / "mpigraph.txt"
    assert "known are nvbandwidth" in complaint(capsys, "notes.txt")
    assert "empty: no results in it; known are" in complaint(capsys, "empty")
    assert "dir: no results in it" in complaint(capsys, "dir")
    assert "nowhere.txt: cannot be read: No such file" in complaint(capsys, "nowhere.txt")
    assert "no file" in complaint(capsys, "pipe")
    assert "does not name its hosts; write HOST,HOST=" in complaint(capsys, osu)
    assert "several tools, which do not compare: mpigraph, osu" in complaint(
        capsys, graph, f"a,b={osu}"
    )
    assert "names its hosts itself" in complaint(capsys, f"a,b={graph}")
    assert "3 hosts are named, it takes 2" in complaint(capsys, f"a,b,c={osu}")
    assert "named twice" in complaint(capsys, f"a,a={osu}")
    assert "none of its hosts is in the results" in complaint(capsys, graph, "--hosts", "x,y")
    assert "with a file, not with a directory" in complaint(capsys, "a,b=dir")
    assert not (tmp_path / "reports").exists()


def test_names_that_no_host_can_have_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.txt"
    path.write_bytes((DATA / "mpigraph.txt").read_bytes().replace(b"fir3", b"--all"))
    assert "--all" in complaint(capsys, path)


def test_a_table_of_nothing_known_needs_its_collective(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(
        f"{1 << n:12d}  {1 << n >> 2:12d}     float     sum      -1"
        f"  {20 + (1 << n) / 9e4:7.2f}   40.00   40.00       0"
        * 1
        + f"  {20 + (1 << n) / 9e4:7.2f}   40.00   40.00       0\n"
        for n in range(20, 31)
    )
    path = tmp_path / "t.txt"
    path.write_text(
        "#       size         count      type   redop    root"
        + "     time   algbw   busbw #wrong" * 2
        + f"\n{rows}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 40 \n"
    )
    assert "--collective all_reduce" in complaint(capsys, path, "--output", tmp_path / "no")
    assert run(path, "--collective", "broadcast", "--output", tmp_path / "out") in {0, 3}
    assert bench_of(tmp_path / "out")["collective"] == "broadcast"


def test_a_collective_is_compared_with_what_a_topology_dump_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[2] / "examples"
    results, dump = root / "results/all_reduce.txt", root / "topology/gpu01.xml"
    run(results, "--topology", dump, "--output", tmp_path)
    assert "gpu01.xml" in capsys.readouterr().out
    assert bench_of(tmp_path)["settings"]["machine"] == "gpu01.xml"  # type: ignore[index]
    assert run(results, "--topology", dump, "--machine", "h100-8x400g") == 2
    assert "give --machine or --topology, not both" in capsys.readouterr().err
