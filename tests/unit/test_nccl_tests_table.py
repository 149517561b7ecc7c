"""Result tables of nccl-tests and rccl-tests, of every layout, whole and in pieces."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.diagnose.postmortem.benchmarks import benchmarks, peak_busbw
from ncdiag.model.benchmark import Benchmark
from ncdiag.model.log import LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.nccl_tests.join import continue_benchmark
from ncdiag.read.nccl_tests.table import TableReader, version_of


def read_bytes(data: bytes) -> LogEvidence:
    return scanned(TableReader(), data)


def read(text: str) -> list[Benchmark]:
    return read_bytes(text.encode()).benchmarks


def one(text: str) -> Benchmark:
    (benchmark,) = read(text)
    return benchmark


ANNOUNCED = (
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 32 step: 2(factor) warmup iters: 1 iters: 20 \n"
)
TITLES = "#       size         count      type   redop    root     time   algbw   busbw #wrong"
HEADING = (
    "#                                                              out-of-place         in-place\n"
    f"{TITLES}     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       \n"
)
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5 \n#\n"


def half(time: str, busbw: str, wrong: str, *more: str) -> str:
    return f"  {time:>7}    0.01  {busbw:>6}  {wrong:>6}" + "".join(
        f"  {value:>7}" for value in more
    )


def ranks(*hosts: str, pid: int = 500) -> str:
    return "# Using devices\n" + "".join(
        f"#  Rank {n:2d} Group  0 Pid {pid + n:6d} on {host:>8s} device {n:2d} [0000:1b:00] GPU\n"
        for n, host in enumerate(hosts)
    )


def row(size: int, busbw: float = 1.5, wrong: str = "0", time: float = 12.5) -> str:
    head = f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum':>6s}  {-1:6d}"
    half = f"  {time:7.2f}  {1.0:6.2f}  {busbw:6.2f}  {wrong:>6s}"
    return head + half + half + "\n"


WHOLE = (
    "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n"
    "# Collective test starting: all_gather_perf_mpi\n"
    + ANNOUNCED
    + "#\n"
    + ranks("oak1", "oak1", "oak2", "oak2")
    + "#\n"
    + HEADING
    + row(8)
    + row(16)
    + row(32, 3.5)
    + FOOTER
)


def test_a_whole_run() -> None:
    run = one(WHOLE)
    assert run.test == "all_gather_perf_mpi"
    assert run.library_version == "2.28.7"
    assert [(rank.rank, rank.host, rank.pid) for rank in run.ranks] == [
        (0, "oak1", "500"),
        (1, "oak1", "501"),
        (2, "oak2", "502"),
        (3, "oak2", "503"),
    ]
    assert [r.size for r in run.rows] == [8, 16, 32]
    assert run.rows[0].out_of_place_busbw == 1.5
    assert run.rows[0].in_place_wrong == 0
    assert (run.avg_busbw, run.out_of_bounds, run.complete) == (1.5, 0, True)
    assert run.unfinished_size is None
    assert peak_busbw(run) == 3.5


OLD_HALF = "     time   algbw   busbw  error"
OLD_TITLES = f"#       size         count    type   redop{OLD_HALF}{OLD_HALF}"
LAYOUTS = {
    "old": (
        OLD_TITLES,
        "          64            16   float     sum"
        + half("54.07", "0.02", "2e-07")
        + half("53.00", "0.03", "2e-07"),
        (64, "sum", 0.02, 0.03, None),
    ),
    "old, without an operation": (
        OLD_TITLES,
        "          64            16   float        "
        + half("1.63", "0.02", "N/A")
        + half("1.3", "0.03", "N/A"),
        (64, "", 0.02, 0.03, None),
    ),
    "old, one half": (
        OLD_TITLES,
        "         128            32   float     sum    84.61    0.01    0.02  2e-07",
        (128, "sum", 0.02, None, None),
    ),
    "old, with a root": (
        f"#       size         count    type   redop    root{OLD_HALF}{OLD_HALF}",
        "          64            16   float     sum       0"
        + half("16215", "0.02", "2e-07")
        + half("53.00", "0.03", "2e-07"),
        (64, "sum", 0.02, 0.03, None),
    ),
    "new": (HEADING.splitlines()[1], row(64, 0.02).rstrip(), (64, "sum", 0.02, 0.02, 0)),
    "no operation, no check in place": (
        HEADING.splitlines()[1],
        "          64            16      half    none      -1"
        + half("12.34", "0.02", "0")
        + half("12.20", "0.03", "N/A"),
        (64, "none", 0.02, 0.03, 0),
    ),
    "exponents": (
        HEADING.splitlines()[1],
        "  1073741824     268435456  bfloat16     sum       0"
        + half("1.2e+06", "1.8e+3", "0")
        + half("1200000", "1900", "0"),
        (1073741824, "sum", 1800.0, 1900.0, 0),
    ),
    "time stamp": (
        HEADING.splitlines()[1] + "            timestamp",
        "          64            16     uint8     sum      -1"
        + half("12.34", "0.02", "0")
        + half("12.20", "0.03", "0")
        + "  2026-02-03 10:11:12",
        (64, "sum", 0.02, 0.03, 0),
    ),
    "per iteration": (
        TITLES
        + "    i_min   i_max   i_p99   i_cv%"
        + "     time   algbw   busbw #wrong   i_min   i_max   i_p99   i_cv%",
        "          64            16     float     sum      -1"
        + half("12.34", "0.02", "0", "1.0", "2.0", "3.0", "4.0")
        + half("12.20", "0.03", "0", "1.0", "2.0", "3.0", "4.0"),
        (64, "sum", 0.02, 0.03, 0),
    ),
    "processor time": (
        HEADING.splitlines()[1].replace("    time", " cputime"),
        row(64, 0.02).rstrip(),
        (64, "sum", 0.02, 0.02, 0),
    ),
}


# Without titles nobody can tell the columns of iterations from those of results.
FORMS = [(layout, True) for layout in LAYOUTS]
FORMS += [(layout, False) for layout in LAYOUTS if layout != "per iteration"]


@pytest.mark.parametrize(("layout", "headed"), FORMS)
def test_layouts(layout: str, *, headed: bool) -> None:
    titles, text, expected = LAYOUTS[layout]
    run = one((titles + "\n" if headed else "") + text + "\n" + FOOTER)
    (made,) = run.rows
    assert (
        made.size,
        made.redop,
        made.out_of_place_busbw,
        made.in_place_busbw,
        made.out_of_place_wrong,
    ) == expected
    assert run.complete


RANK_LINES = {
    "2.0": ("#   Rank  0 on     oak1 device  0 [0x06] Tesla V100", "", "0x06"),
    "2.13.3": ("#   Rank  0 Pid 608119 on oak1 device  0 [0x0f] GPU 3090", "608119", "0x0f"),
    "2.14": (
        "#  Rank  0 Group  0 Pid   3454 on oak1 device  0 [0000:41:00] GPU",
        "3454",
        "0000:41:00",
    ),
    "rccl": ("#   Rank  0 Pid    712 on oak1 device  0 [0000:c1:00.0] GPU", "712", "0000:c1:00.0"),
}


@pytest.mark.parametrize("form", RANK_LINES)
def test_rank_tables(form: str) -> None:
    line, pid, bus_id = RANK_LINES[form]
    (rank,) = one(f"{ANNOUNCED}#\n# Using devices\n{line}\n").ranks
    assert (rank.rank, rank.host, rank.pid, rank.bus_id) == (0, "oak1", pid, bus_id)


def test_rccl_tests() -> None:
    run = one(
        "rccl-tests: Version develop:0123abc\n"
        "# nThreads: 1 nGpus: 1 minBytes: 8 maxBytes: 8 step: 2(factor) warmupIters: 5 iters: 20\n"
        "#   Rank  0 Pid 712 on elm1 device  0 [0000:c1:00.0] GPU\n"
        + HEADING
        + "           8             2     float     sum      -1     10.1    0.00    0.25      0"
        "      9.9    0.00    0.35      0\n"
        "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n"
        + FOOTER
    )
    assert [rank.host for rank in run.ranks] == ["elm1"]
    assert peak_busbw(run) == 0.35
    assert run.complete


INFO = "oak1:500:500 [0] NCCL INFO AllReduce: {} Bytes -> Algo RING proto SIMPLE"


def test_rows_that_other_lines_cut_in_pieces() -> None:
    run = one(
        "oak1:500:500 [0] NCCL INFO Using network IB\n"
        + ANNOUNCED
        + HEADING
        + "           8             2     float     sum      -1"
        + INFO.format(8)
        + "\n"
        + INFO.format(8)
        + "\n    12.50    1.00    2.50       0"
        + INFO.format(8)
        + "\n"
        + INFO.format(8)
        + "\n    12.50    1.00    3.50       0\n"
        + row(16)
        + FOOTER
    )
    assert [(r.size, r.out_of_place_busbw, r.in_place_busbw) for r in run.rows] == [
        (8, 2.5, 3.5),
        (16, 1.5, 1.5),
    ]
    assert run.complete


def test_results_behind_a_record() -> None:
    run = one(
        ANNOUNCED
        + HEADING
        + "           8             2     float     sum      -1\n"
        + INFO.format(8)
        + "    12.50    1.00    2.50       0    12.50    1.00    3.50       0\n"
        + INFO.format(8)
        + row(16)
        + FOOTER
    )
    assert [(r.size, r.out_of_place_busbw, r.in_place_busbw) for r in run.rows] == [
        (8, 2.5, 3.5),
        (16, 1.5, 1.5),
    ]


def test_lines_that_a_terminal_cut() -> None:
    lines = [line[at : at + 80] for line in (HEADING + row(8)).splitlines() for at in (0, 80)]
    run = one(ANNOUNCED + "\n".join(lines) + "\n" + FOOTER)
    assert [(r.out_of_place_busbw, r.in_place_busbw) for r in run.rows] == [(1.5, 1.5)]
    assert run.complete


def test_ranks_without_line_ends_between_them() -> None:
    run = one(ANNOUNCED + ranks("oak1", "oak2", "oak3").replace("GPU\n", "GPU"))
    assert [rank.host for rank in run.ranks] == ["oak1", "oak2", "oak3"]
    assert {rank.name for rank in run.ranks} == {"GPU"}


def test_a_number_cut_in_two() -> None:
    run = one(
        ANNOUNCED
        + HEADING
        + "           8             2     float     sum      -1    12.50    1.\n"
        + INFO.format(8)
        + "\n00    2.50       0    12.50    1.00    3.50       0\n"
    )
    assert [(r.out_of_place_busbw, r.in_place_busbw) for r in run.rows] == [(2.5, 3.5)]


def test_foreign_numbers_are_no_results() -> None:
    run = one(ANNOUNCED + HEADING + row(8) + "  17  42\n 3.5 4.5 5.5 6.5\n" + row(16) + FOOTER)
    assert [r.size for r in run.rows] == [8, 16]


def test_runs_one_after_another() -> None:
    first, second, third = read(WHOLE + ANNOUNCED + ranks("oak3") + WHOLE)
    assert (first.complete, second.complete, third.complete) == (True, False, True)
    assert len(second.ranks) == 1
    assert second.test is None


def test_an_announcement_is_a_run_even_if_nothing_follows() -> None:
    (summary,) = benchmarks(read_bytes(ANNOUNCED.encode()))
    assert (summary.test, summary.ranks, summary.complete) == (None, None, False)


def test_a_table_without_an_announcement_is_a_run() -> None:
    run = one(HEADING + row(8) + FOOTER)
    assert run.test is None
    assert run.complete


def test_using_devices_alone_is_no_run() -> None:
    assert read("# Using devices\n") == []


def test_independent_runs_at_the_same_time() -> None:
    parts = [
        ANNOUNCED * 3,
        "".join(ranks("oak1", pid=pid) for pid in (1, 2, 3)),
        HEADING * 3,
        *(row(8, 1.0, time=10.0 + n) for n in range(3)),
        row(16, 1.0),
        row(32, 1.0),
        *(row(16, 1.0, time=10.0 + n) for n in range(2)),
        *(row(32, 1.0, time=10.0 + n) for n in range(2)),
        "# Out of bounds values : 0 OK\n" * 3,
        "# Avg bus bandwidth    : 1\n" * 3,
    ]
    runs = read("".join(parts))
    assert len(runs) == 3
    assert {run.ranks[0].pid for run in runs} == {"1", "2", "3"}
    for run in runs:
        assert len(run.ranks) == 1
        assert [r.size for r in run.rows] == [8, 16, 32]
        assert run.complete


@pytest.mark.parametrize("text", [WHOLE, HEADING + row(8) + row(16) + FOOTER], ids=["all", "rows"])
def test_a_log_with_every_line_twice_is_one_run(text: str) -> None:
    expected = one(text)
    found = one("".join(line * 2 for line in text.splitlines(keepends=True)))
    assert [r.size for r in found.rows] == [r.size for r in expected.rows]
    assert len(found.ranks) == len(expected.ranks)
    assert found.complete


def test_announcements_alone_are_as_many_runs_as_lines() -> None:
    assert len(read(ANNOUNCED * 3)) == 3


def test_the_name_may_come_before_the_label_of_the_stream_is_known() -> None:
    lines = WHOLE.splitlines()
    run = one("\n".join([*lines[:2], *(f"[1,0]<stdout>:{line}" for line in lines[2:])]))
    assert run.test == "all_gather_perf_mpi"


def test_labelled_runs_at_the_same_time() -> None:
    lines = WHOLE.splitlines()
    mixed = [f"[1,{n}]<stdout>:{line.replace('3.50', f'{n}.50')}" for line in lines for n in (4, 7)]
    runs = read("\n".join(mixed))
    assert [peak_busbw(run) for run in runs] == [4.5, 7.5]
    assert all(run.complete and len(run.ranks) == 4 for run in runs)


def test_a_run_that_died_leaves_its_table_to_the_next() -> None:
    dead = ANNOUNCED + ranks("oak1", "oak2") + HEADING + row(8) + row(16)
    first, second = read(dead + "mpirun noticed that a process was lost\n" + WHOLE)
    assert [r.size for r in first.rows] == [8, 16]
    assert not first.complete
    assert [r.size for r in second.rows] == [8, 16, 32]
    assert second.complete


FAILURE = (
    "oak2: Test NCCL failure common.cu:1279 'remote process exited / '\n"
    " .. oak2 pid 503: Test failure common.cu:1100\n"
)


def test_a_failure_ends_the_run_once() -> None:
    text = ANNOUNCED + ranks("oak1", "oak2") + HEADING + row(8) + FAILURE * 3 + WHOLE
    evidence = read_bytes(text.encode())
    first, second = evidence.benchmarks
    assert first.failed
    assert not first.complete
    assert second.failed is None
    assert second.complete
    assert evidence.inputs[0].kinds == ["nccl-tests"]


def test_each_failing_run_is_marked() -> None:
    part = ANNOUNCED + ranks("oak1", "oak2") + FAILURE
    assert [bool(run.failed) for run in read(part * 3)] == [True] * 3


def test_failure_lines_name_hosts() -> None:
    evidence = read_bytes(
        b"# Using devices\nelm5: Test CUDA failure common.cu:941 'invalid device ordinal'\n"
        b" .. elm5 pid 9: Test failure common.cu:891\nelm6: Test timeout (30s) common.cu:1\n"
    )
    assert evidence.hosts.keys() == {"elm5", "elm6"}
    assert evidence.benchmarks == []
    assert evidence.inputs[0].kinds == ["nccl-tests"]


def test_wrong_values() -> None:
    text = (
        ANNOUNCED
        + ranks("oak1", "oak2")
        + HEADING
        + row(8)
        + row(16, wrong="12")
        + row(32, wrong="7")
    )
    evidence = read_bytes((text + "# Out of bounds values : 2 FAILED\n").encode())
    (event,) = evidence.events
    assert event.class_name == "data_corruption"
    assert event.attributes == {"size": "16", "wrong": "12"}
    assert event.details["hosts"] == "oak1,oak2"
    assert "16" in event.text


def test_values_out_of_bounds_without_a_bad_row() -> None:
    (event,) = read_bytes(b"# Out of bounds values : 3 FAILED\n").events
    assert event.attributes == {"wrong": "3"}


def test_deviations_are_no_wrong_values() -> None:
    titles, text, _ = LAYOUTS["old"]
    assert read_bytes(f"{titles}\n{text}\n{FOOTER}".encode()).events == []


def test_a_hang_keeps_the_size_it_stopped_at() -> None:
    run = one(ANNOUNCED + HEADING + row(8) + "          16             4     float     sum      -1")
    assert run.unfinished_size == 16
    assert [r.size for r in run.rows] == [8]


@pytest.mark.parametrize(
    ("command", "test"),
    [
        ("+ mpirun -np 2 ./build/all_reduce_perf -b 8 -e 8 -g 1", "all_reduce_perf"),
        ("$ srun /opt/nccl-tests/alltoall_perf_mpi -b 8", "alltoall_perf_mpi"),
        ("Linking  ../build/all_reduce.o  > ../build/all_reduce_perf", None),
        ("for t in all_reduce_perf all_gather_perf; do mpirun ./$t -b 8; done", None),
        ("", None),
    ],
)
def test_the_name_of_the_test_from_the_command(command: str, test: str | None) -> None:
    first, second = read(command + "\n" + ANNOUNCED + HEADING + FOOTER + ANNOUNCED)
    assert first.test == test
    assert second.test is None


def test_versions_of_headings() -> None:
    assert version_of(22807) == "2.28.7"
    assert version_of(21903) == "2.19.3"
    assert version_of(2708) == "2.7.8"


def test_zero_sizes() -> None:
    run = one(ANNOUNCED + HEADING + row(0) * 3 + row(32) + FOOTER)
    assert [r.size for r in run.rows] == [0, 0, 0, 32]


def test_a_table_is_over_after_many_foreign_lines() -> None:
    reader = TableReader()
    for number, text in enumerate((ANNOUNCED + HEADING + row(8)).splitlines(), 1):
        reader.read(Line(text=text, place=Place("a.log", number)), [])
    assert reader.open
    for number in range(10, 20_000):
        reader.read(Line(text="loss went down again", place=Place("a.log", number)), [])
    assert not reader.open


def test_a_table_cut_anywhere_is_read() -> None:
    data = WHOLE.encode()
    for cut in range(len(data)):
        runs = read_bytes(data[:cut]).benchmarks
        assert not any(run.complete for run in runs) or b"Avg bus bandwidth    :" in data[:cut]
    for cut in range(0, len(data), 5):
        read_bytes(data[cut:])


def test_lines_may_end_as_they_like() -> None:
    expected = one(WHOLE)
    found = one(WHOLE.replace("\n", "\r\n"))
    assert found.rows == expected.rows
    assert found.complete


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=300), st.integers(0, len(WHOLE)))
def test_any_bytes_are_read(noise: bytes, at: int) -> None:
    data = WHOLE.encode()
    read_bytes(data[:at] + noise + data[at:])
    read_bytes(noise + b"  8  2  float  sum  -1  " + noise)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=40, max_size=160))
def test_lines_in_between_do_not_change_a_table(where: list[int]) -> None:
    lines: list[str] = []
    for index, line in enumerate(WHOLE.splitlines()):
        lines += [INFO.format(index)] * where[index % len(where)]
        lines.append(line)
    run = one("\n".join(lines))
    assert [(r.size, r.in_place_busbw) for r in run.rows] == [(8, 1.5), (16, 1.5), (32, 3.5)]
    assert len(run.ranks) == 4
    assert run.complete


def test_titles_of_the_tests_are_those_that_are_printed() -> None:
    assert re.search(r"redop\s+root", HEADING)


def test_a_table_read_in_two_pieces_is_one() -> None:
    lines = WHOLE.splitlines(keepends=True)
    cut = next(n for n, line in enumerate(lines) if line == row(16))
    pieces = [read("".join(lines[:cut])), read("".join(lines[cut:]))]
    (first,), (later,) = pieces
    assert continue_benchmark(first, later)
    assert [r.size for r in first.rows] == [8, 16, 32]
    assert (first.avg_busbw, first.complete) == (1.5, True)
    assert not continue_benchmark(first, later)
    assert not continue_benchmark(later, one(WHOLE))


def wrapped(text: str, width: int) -> str:
    """``text`` as a terminal of so many columns shows it, copied from its screen."""
    lines = text.split("\n")
    pieces = [line[i : i + width] for line in lines for i in range(0, max(len(line), 1), width)]
    return "\n".join(piece.rstrip() for piece in pieces)


@pytest.mark.parametrize("width", range(64, 119))
def test_rows_that_a_terminal_wrapped_are_put_together(width: int) -> None:
    rows = "".join(row(8 * 4**n, 0.75 * 3**n, time=11.25 * 2.5**n) for n in range(8))
    found = read_bytes(
        wrapped(ANNOUNCED + ranks("a1", "a2") + HEADING + rows + FOOTER, width).encode()
    )
    assert found.events == []
    (table,) = found.benchmarks
    assert table.complete
    assert [each.size for each in table.rows] == [8 * 4**n for n in range(8)]
    for n, each in enumerate(table.rows):
        assert each.out_of_place_busbw == pytest.approx(0.75 * 3**n, abs=0.006)
        assert each.in_place_busbw == each.out_of_place_busbw
        assert (each.out_of_place_wrong, each.in_place_wrong) == (0, 0)


@pytest.mark.parametrize("width", [80, 90, 100])
def test_wrong_values_show_in_wrapped_rows(width: int) -> None:
    text = ANNOUNCED + HEADING + row(8) + row(16, wrong="204") + row(32)
    (event,) = read_bytes(wrapped(text, width).encode()).events
    assert event.attributes == {"size": "16", "wrong": "204"}


@pytest.mark.parametrize("wrong", ["7", "1.67772e+07", "12*"])
def test_any_count_of_wrong_values_accuses(wrong: str) -> None:
    (event,) = read_bytes((ANNOUNCED + HEADING + row(8, wrong=wrong)).encode()).events
    assert event.attributes["wrong"] == wrong.rstrip("*")


@given(cut=st.integers(0, 119), gap=st.integers(1, 40))
def test_a_row_without_some_of_its_columns_accuses_nobody(cut: int, gap: int) -> None:
    damaged = row(1 << 20, 31.25, time=61.75).rstrip("\n")
    damaged = damaged[: max(cut, 44)] + damaged[max(cut, 44) + gap :]
    for heading in (HEADING, ""):
        assert read_bytes(f"{ANNOUNCED}{heading}{damaged}\n{FOOTER}".encode()).events == []


@pytest.mark.parametrize("mark", [r"#", r"# *"])
def test_a_page_took_the_marks_of_comments_for_its_own(mark: str) -> None:
    (whole,) = read(WHOLE)
    (run,) = read(re.sub(mark, "", WHOLE).replace("wrong", "#wrong"))
    assert run.test == whole.test
    assert (run.complete, run.avg_busbw, run.out_of_bounds) == (True, 1.5, 0)
    assert [(rank.rank, rank.host) for rank in run.ranks] == [(r.rank, r.host) for r in whole.ranks]
    assert [each.out_of_place_busbw for each in run.rows] == [1.5, 1.5, 3.5]


FIRST_RELEASE = """\
nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 8(bytes) warmup iters: 5 iters: 20 validation: 1
# NCCL Tests compiled with NCCL 2.1
# Using devices
#   Rank  0 on       elm1 device  0 [0x0b] Tesla V100-SXM2-16GB
#   Rank  1 on       elm2 device  0 [0x0b] Tesla V100-SXM2-16GB

#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
           8             2   float     sum    0.021   0.00   0.00    4e-07    0.022   0.00   0.00    1e-07
          64            16   float     sum    0.342   3.07   3.27    3e+00    0.339   3.09   3.19    0e+00
 Out of bounds values : 6 FAILED
 Avg bus bandwidth    : 1.615
"""  # noqa: E501 - as wide as it is printed


def test_the_first_release_names_no_processes_and_prints_deviations() -> None:
    found = read_bytes(FIRST_RELEASE.encode())
    (run,) = found.benchmarks
    assert [(rank.rank, rank.host, rank.device) for rank in run.ranks] == [
        (0, "elm1", "0"),
        (1, "elm2", "0"),
    ]
    assert (run.complete, run.avg_busbw) == (True, 1.615)
    assert [each.out_of_place_busbw for each in run.rows] == [0.0, 3.27]
    (event,) = found.events
    assert event.attributes == {"size": "64", "wrong": "6"}


def test_a_table_as_wide_as_its_heading_is_not_taken_for_a_wrapped_record() -> None:
    heading, *rows = (HEADING.split("\n")[1], row(8), row(16), row(32), row(64))
    width = max(map(len, (heading, *(each.rstrip() for each in rows))))
    lines = [f"{line.rstrip():>{width}}" for line in rows]
    (run,) = read("\n".join([ANNOUNCED.strip(), heading.ljust(width, "-"), *lines, FOOTER]))
    assert [each.size for each in run.rows] == [8, 16, 32, 64]
