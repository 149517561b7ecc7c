"""What the programs print in every layout and version of JSON is read again as it was meant.

The expected rows come from the output itself by means that have nothing in common with the reader:
its blanks, or plain JSON.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nccl_tests_programs import NAMES, install
from nccl_tests_runs import PLANTED, play

from ncdiag.logs.read_logs import read_logs
from ncdiag.model.benchmark import Benchmark, IterationTimes, TableRow
from ncdiag.read.nccl_tests import read_report, recognises

VERSIONS = (
    "2.0.0", "2.9.0", "2.11.0", "2.13.0", "2.13.4", "2.14.1", "2.16.7", "2.16.8", "2.17.3",
    "2.17.4", "2.17.6", "2.17.7", "2.18.2", "2.19.2", "2.19.6", "rccl-2024-09",
)  # fmt: skip
SIZES = ("-b", "8", "-e", "512M", "-f", "16", "-g", "2", "-n", "3")
FIGURES = ("min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us", "stdev_us")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("nccl-tests"))


def exists(name: str, version: str) -> bool:
    since = {"alltoall": (2, 9), "alltoallv": (2, 19), "gather": (2, 11)} | dict.fromkeys(
        ("scatter", "sendrecv", "hypercube"), (2, 10)
    )
    numbers = (2, 13) if version.startswith("rccl") else tuple(map(int, version.split(".")[:2]))
    return numbers >= since.get(name.removesuffix("_perf"), (2, 0))


def plainly(text: bytes) -> list[TableRow]:
    """The rows by their blanks alone; the title's words name the columns."""
    lines = text.decode().splitlines()
    titles = next(line for line in lines if "algbw" in line).replace("#wrong", "wrong")
    columns = titles.replace("#", " ").split()
    at = columns.index("cputime" if "cputime" in columns else "time")
    half = (len(columns) - at - ("timestamp" in columns)) // 2
    rows = []
    for line in lines:
        words = line.split()
        if line.startswith("#") or len(words) < 8 or not words[0].isdigit():
            continue
        first = dict(zip(columns[:at], words, strict=False))
        halves = [words[at : at + half], words[at + half : at + 2 * half]]
        rows.append(
            TableRow(
                size=int(first["size"]),
                type=first["type"],
                redop=first.get("redop", ""),
                out_of_place_busbw=float(halves[0][2]),
                in_place_busbw=float(halves[1][2]),
                out_of_place_wrong=count(halves[0][3], columns),
                in_place_wrong=count(halves[1][3], columns),
                elements=int(first["count"]),
                root=int(first["root"]) if "root" in first else None,
                out_of_place_time_us=float(halves[0][0]),
                in_place_time_us=float(halves[1][0]),
                out_of_place_algbw=float(halves[0][1]),
                in_place_algbw=float(halves[1][1]),
                out_of_place_iterations=iterations(halves[0][4:]),
                in_place_iterations=iterations(halves[1][4:]),
                finished=" ".join(words[-2:]) if "timestamp" in columns else None,
            )
        )
    return rows


def count(word: str, columns: list[str]) -> float | None:
    return None if word == "N/A" or "error" in columns else float(word)


def iterations(words: list[str]) -> IterationTimes | None:
    if len(words) < 4:
        return None
    least, most, p99, cv = map(float, words[:4])
    return IterationTimes(min_us=least, max_us=most, p99_us=p99, cv_percent=cv)


def one(data: bytes) -> Benchmark:
    (benchmark,) = read_report(data, "x")
    return benchmark


def rows_of(data: bytes) -> list[TableRow]:
    return [row._replace(place=None) for row in one(data).rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_layout_of_every_program(programs: Path, version: str) -> None:
    for name in NAMES:
        if not exists(name, version):
            continue
        printed = play(programs, name, *SIZES, VERSION=version, WRONG="2K:7", PLATEAU="51")
        assert recognises(printed[:4096])
        expected = plainly(printed)
        assert len(expected) == 7, name
        assert rows_of(printed) == expected, name
        run = one(printed)
        assert run.complete
        assert [rank.host for rank in run.ranks] == ["oak1", "oak1", "oak2", "oak2"]
        assert run.avg_busbw == float(re.findall(rb"Avg bus bandwidth +: (\S+)", printed)[0])


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_that_the_library_cut_in_two(programs: Path, version: str) -> None:
    printed = play(programs, "reduce_perf", *SIZES, "-o", "all", VERSION=version, LOG="1")
    assert printed.count(b"NCCL INFO") > 20
    clean = play(programs, "reduce_perf", *SIZES, "-o", "all", VERSION=version)
    assert rows_of(printed) == plainly(clean)


OPTIONS = {
    "cpu time": ("2.13.4", ("-C", "1")),
    "time stamps": ("2.17.6", ("-S", "1")),
    "wider time stamps": ("2.19.6", ("-S", "1")),
    "iterations": ("2.19.2", ("-I", "1")),
    "iterations, some skipped": ("2.19.6", ("-I", "1", "-K", "1")),
    "everything": ("2.19.6", ("-I", "1", "-S", "1", "-C", "1", "-M", "1")),
    "unchecked": ("2.19.6", ("-c", "0")),
    "exponents": ("2.19.6", ("-e", "64G")),
    "several cycles": ("2.19.6", ("-N", "2")),
    "one half": ("rccl-2024-09", ("-O", "0")),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options(programs: Path, option: str) -> None:
    version, more = OPTIONS[option]
    printed = play(
        programs, "all_reduce_perf", *SIZES, *more, VERSION=version, NOISE="0.2", PLATEAU="0.02"
    )
    assert rows_of(printed) == plainly(printed)
    assert one(printed).cpu_times == ("-C" in more)


def test_only_results_out_of_place(programs: Path) -> None:
    printed = play(programs, "all_reduce_perf", *SIZES, "-O", "1", VERSION="rccl-2024-09")
    rows = rows_of(printed)
    assert len(rows) == 7
    assert all(row.in_place_busbw is None and row.in_place_time_us is None for row in rows)
    last = [line for line in printed.splitlines() if line[:1] == b" "][-1]
    assert rows[-1].out_of_place_busbw == float(last.split()[-2])


def test_only_results_in_place() -> None:
    lead = f"{1024:12d}  {256:12d}  {'float':>8}  {'sum':>6}  {-1:6d}"
    printed = (
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 2\n"
        "#       size         count      type   redop    root"
        "     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
        f"{lead}{' ' * 32}    12.50    1.00    2.50       3\n"
        "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 2.5 \n"
    )
    (row,) = rows_of(printed.encode())
    assert (row.out_of_place_time_us, row.out_of_place_busbw, row.out_of_place_wrong) == (None,) * 3
    assert (row.in_place_time_us, row.in_place_busbw, row.in_place_wrong) == (12.5, 2.5, 3)


JSON_VERSIONS = {"1": "2.17.3", "2": "2.19.2", "3": "2.19.6"}


@pytest.mark.parametrize("number", JSON_VERSIONS)
def test_json(programs: Path, tmp_path: Path, number: str) -> None:
    path, version = tmp_path / "r.json", JSON_VERSIONS[number]
    more = () if number == "1" else ("-I", "1", *(("-K", "1") if number == "3" else ()))
    printed = play(
        programs, "all_reduce_perf", *SIZES, "-J", str(path), *more,
        VERSION=version, NOISE="0.2", WRONG="2K:7",
    )  # fmt: skip
    data = path.read_bytes()
    assert recognises(data[:4096])
    document = json.loads(data)
    assert document["version"] == int(number)
    run = one(data)
    assert [row._replace(place=None) for row in run.rows] == list(decoded(document))
    assert run.complete
    assert run.started == document["start_time"]
    assert run.test == "all_reduce_perf"
    assert PLANTED.encode() in data
    assert PLANTED not in repr(run)
    for told, text in zip(run.rows, plainly(printed), strict=True):
        assert told.size == text.size
        assert told.out_of_place_time_us == pytest.approx(text.out_of_place_time_us, rel=0.01)
        assert told.out_of_place_wrong == text.out_of_place_wrong


def decoded(document: dict[str, Any]) -> Iterator[TableRow]:
    for entry in document["results"]:
        halves = (entry["out_of_place"], entry["in_place"])
        told = [entry.get(f"{name}_per_iter") for name in ("out_of_place", "in_place")]
        times = [
            each
            and IterationTimes(
                skipped=int(each.get("skipped_iterations", 0)),
                cv_percent=each["cv_pct"],
                times_us=tuple(each["times_us"]),
                process_max_us=tuple(map(tuple, each["per_process_max_times_us"])),
                **{name: each[name] for name in FIGURES},
            )
            for each in told
        ]
        yield TableRow(
            size=entry["size"],
            type=entry["type"],
            redop=entry["redop"],
            out_of_place_busbw=halves[0]["bus_bw"],
            in_place_busbw=halves[1]["bus_bw"],
            out_of_place_wrong=halves[0]["nwrong"],
            in_place_wrong=halves[1]["nwrong"],
            elements=entry["count"],
            root=int(entry["root"]),
            out_of_place_time_us=halves[0]["time"],
            in_place_time_us=halves[1]["time"],
            out_of_place_algbw=halves[0]["alg_bw"],
            in_place_algbw=halves[1]["alg_bw"],
            out_of_place_iterations=times[0] or None,
            in_place_iterations=times[1] or None,
        )


def test_json_that_was_cut_anywhere(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    play(programs, "all_reduce_perf", "-g", "1", "-n", "2", "-I", "1", "-J", str(path))
    data = path.read_bytes()
    whole = one(data)
    for end in range(len(data)):
        runs = read_report(data[:end], "x")
        assert len(runs) <= 1
        for run in runs:
            rows = [row for row in run.rows if row.in_place_busbw is not None]
            assert rows in ([], whole.rows) or rows[0].size == whole.rows[0].size
    assert one(data[:-200]).rows


@cache
def printed_run() -> bytes:
    lead = (
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 128 step: 4(factor) warmup iters: 1 iters: 20\n#\n"
    )
    ranks = "".join(
        f"#  Rank {n:2d} Group  0 Pid {900 + n:6d} on {host:>10s} device {n:2d} [0000:1b:00] GPU\n"
        for n, host in enumerate(("oak1", "oak2"))
    )
    titles = "#       size         count      type   redop    root"
    titles += "     time   algbw   busbw  #wrong" * 2 + "            timestamp\n"
    rows = "".join(
        f"{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}"
        f"  {size * 1.37:7.2f}  {1.25:6.2f}  {size / 9:6.2f}  {0:6d}"
        f"  {size * 2.37:7.2f}  {0.11:6.2f}  {size / 8:6.2f}  {12:6d}  2026-02-03 10:11:12\n"
        for size in (8, 32, 128)
    )
    footer = "# Out of bounds values : 36 FAILED\n# Avg bus bandwidth    : 31.5 \n#\n"
    return (lead + ranks + titles + rows + footer).encode()


# As everywhere, each process has told something before the table of ranks comes.
FIRST = b"".join(
    b"oak%d:90%d:90%d [0] NCCL INFO Bootstrap: Using eth0:10.0.0.%d<0>\n" % (n + 1, n, n, n)
    for n in range(2)
)
RECORDS = {
    "info": b"oak1:900:907 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via NET/IB/0\n",
    "warning": b"\n[2026-02-03 10:11:12] oak1:900:905 [0] net_ib.cc:93 NCCL WARN Call failed\n",
    "of another rank": b"oak2:901:901 [0] NCCL INFO Connected all rings\n",
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_at_any_place(record: str) -> None:
    printed, expected = printed_run(), comparable(printed_run())
    for at in range(len(printed) + 1):
        assert comparable(FIRST + printed[:at] + RECORDS[record] + printed[at:]) == expected, at


@given(
    st.lists(
        st.tuples(st.integers(0, len(printed_run())), st.sampled_from(sorted(RECORDS))), max_size=12
    )
)
@example(cuts=[(216, "info"), (221, "info")])  # between them stands 0000:, as a label would
@settings(deadline=None, max_examples=60)
def test_many_records_at_any_places(cuts: list[tuple[int, str]]) -> None:
    printed = printed_run()
    for at, record in sorted(cuts, reverse=True):
        printed = printed[:at] + RECORDS[record] + printed[at:]
    assert comparable(FIRST + printed) == comparable(printed_run())


def test_a_warning_whose_blank_line_a_collector_dropped() -> None:
    lines = printed_run().splitlines(keepends=True)
    warning = RECORDS["warning"].lstrip()
    for at in range(5, len(lines)):
        assert comparable(b"".join([*lines[:at], warning, *lines[at:]])) == comparable(
            printed_run()
        )


@pytest.mark.parametrize("label", [b"[1,0]<stdout>:", b"0: "])
def test_labelled_lines(label: bytes) -> None:
    lines = printed_run().splitlines(keepends=True)
    info = RECORDS["info"]
    printed = b"".join(label + part for line in lines for part in (info, line))
    assert comparable(printed) == comparable(printed_run())


def comparable(data: bytes) -> object:
    run = one(data)
    rows = [row._replace(place=None) for row in run.rows]
    return rows, run.ranks, run.avg_busbw, run.out_of_bounds, run.complete


def by_post_mortem(data: bytes, path: str) -> list[Benchmark]:
    Path(path).write_bytes(data)
    return read_logs([path]).benchmarks


@pytest.mark.parametrize("read", [read_report, by_post_mortem])
@pytest.mark.parametrize("stamp", [b"", b"  2026-02-03 10:11:12"], ids=["plain", "stamped"])
def test_text_that_ends_anywhere(
    read: Callable[[bytes, str], list[Benchmark]], stamp: bytes, tmp_path: Path
) -> None:
    """A figure that the text ends in may be part of a longer one, so that it is none."""
    path = str(tmp_path / "cut.log")
    printed = printed_run() if stamp else printed_run().replace(b"            timestamp", b"")
    printed = re.sub(rb"  2026-\S+ \S+(?=\n)", stamp, printed)
    footer = printed.index(b"width    :") + len(b"width    :")
    (whole,) = read(printed, path)
    assert (len(whole.rows), whole.out_of_bounds, whole.avg_busbw) == (3, 36, 31.5)
    for end in range(1, len(printed) + 1):
        for run in read(printed[:end], path):
            assert run.complete == (end >= footer), end
            assert run.out_of_bounds in {None, 36}, end
            assert run.avg_busbw == (31.5 if end > footer + len(b" 31.5") else None), end
            ended = [line for line in printed[:end].split(b"\n")[:-1] if line.startswith(b"  ")]
            assert run.rows[: len(ended)] == whole.rows[: len(ended)], end
            for told, meant in zip(run.rows, whole.rows, strict=False):
                pairs = zip(told, meant, strict=True)
                assert all(one in {None, other} for one, other in pairs), end


def test_a_file_whose_end_was_never_written(tmp_path: Path) -> None:
    """After a power loss zeros stand where the rest should be."""
    cut = printed_run()[: printed_run().index(b"31.5") + 2]
    assert by_post_mortem(cut + b"\0" * 300, str(tmp_path / "cut.log"))[0].avg_busbw is None


@given(st.binary(max_size=400), st.integers(0, len(printed_run())))
@settings(deadline=None, max_examples=60)
def test_any_bytes_are_read(noise: bytes, at: int) -> None:
    read_report(noise, "x")
    read_report(printed_run()[:at] + noise + printed_run()[at:], "x")
    read_report(b'{"nccl_version":1,"args":[],' + noise, "x")
