"""Times of ranks are read from every table that people and tools write."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.cli.main import run
from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import IterationTable, TimeKind
from ncdiag.read.iteration_times import Placed, TimesReader, gather, read_rank_map
from ncdiag.read.iteration_times.columns import kind_of
from ncdiag.store.ledger import Ledger

LONG = """rank,iteration,compute_time_ms,host,local_rank,stage
0,10,400,h1,0,a
1,10,410.5,h1,1,a
0,11,402,h1,0,a
1,11,n/a,h1,1,a
"""
WIDE = "step;rank0;rank1;rank2\n5;0.4;0.5;\n6;0.41;0.51;0.6\n"


def read(text: str | bytes, column: str | None = None, **more: str) -> IterationTable:
    reader = TimesReader(column, **more)
    reader.feed(text.encode() if isinstance(text, str) else text)
    reader.end_file("f")
    return reader.table()


def inspector(rank: int, number: int, time_us: float, comm: str = "0xa", ranks: int = 2) -> str:
    return json.dumps(
        {
            "header": {"id": comm, "rank": rank, "n_ranks": ranks},
            "metadata": {"hostname": f"h{rank}", "pid": 7},
            "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_exec_time_us": time_us},
        }
    )


def test_a_row_a_rank_and_iteration() -> None:
    table = read(LONG)
    assert table.ranks == (0, 1)
    assert table.iterations == (10, 11)
    expected = [[0.4, 0.4105], [0.402, np.nan]]
    np.testing.assert_allclose(table.seconds, expected)
    assert table.hosts == {0: "h1", 1: "h1"}
    assert table.places == {0: "h1 gpu0", 1: "h1 gpu1"}
    assert table.groups == {0: "a", 1: "a"}
    assert table.notes == ("1 lines hold no time of a rank",)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [LONG, WIDE])
def test_a_table_cut_anywhere_reads_the_same(text: str, end: str) -> None:
    data = text.replace("\n", end).encode()
    whole = read(data)
    for cut in range(len(data)):
        reader = TimesReader()
        reader.feed(data[:cut])
        reader.feed(data[cut:])
        reader.end_file("f")
        np.testing.assert_equal(reader.table().seconds, whole.seconds)


def test_a_column_a_rank() -> None:
    table = read(WIDE)
    assert (table.ranks, table.iterations) == ((0, 1, 2), (5, 6))
    np.testing.assert_allclose(table.seconds, [[0.4, 0.5, np.nan], [0.41, 0.51, 0.6]])


def test_json_lines_with_whatever_a_program_prints_between_them() -> None:
    table = read(
        '{"rank": 1, "step": 3, "iteration_time_us": 5e5}\nloading\n{"rank": 0, "st'
        '\n{"rank": 0, "step": 3, "iteration_time_us": 4e5, "host": "h9"}\n'
    )
    np.testing.assert_allclose(table.seconds, [[0.4, 0.5]])
    assert table.hosts == {0: "h9"}


def test_times_without_a_number_of_their_iteration_are_counted_by_rank() -> None:
    table = read("rank,time_s\n0,1\n1,2\n0,3\n1,4\n")
    np.testing.assert_allclose(table.seconds, [[1, 2], [3, 4]])


def test_inspector_joins_ranks_by_communicator_and_takes_the_largest() -> None:
    lines = [inspector(rank, 7, 100.0 + rank, "0xbig", 4) for rank in range(3)]
    lines += [inspector(rank, 7, 5.0, "0xsmall") for rank in range(2)]
    table = read("\n".join(lines))
    np.testing.assert_allclose(table.seconds, [[1e-4, 1.01e-4, 1.02e-4]])
    assert table.hosts[2] == "h2"
    assert "communicator 0xbig of 2" in table.notes[0]
    assert read("\n".join(lines), communicator="0xsmall").ranks == (0, 1)
    with pytest.raises(UsageError, match="no communicator '0x0'; there are: 0xbig, 0xsmall"):
        read("\n".join(lines), communicator="0x0")


def test_collectives_of_different_functions_have_numbers_of_their_own() -> None:
    lines = [inspector(rank, 7, 100.0) for rank in range(2)]
    lines += [inspector(rank, 7, 300.0).replace("AllReduce", "AllGather") for rank in range(2)]
    lines.append(inspector(0, (1 << 62) - 1, 5.0))
    table = read("\n".join(lines))
    np.testing.assert_allclose(table.seconds, [[1e-4, 1e-4], [3e-4, 3e-4]])
    assert "1 lines hold no time of a rank" in table.notes


def test_the_times_of_all_communicators_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gather, "MAX_TIMES", 5)
    lines = [inspector(0, number, 5.0, f"0x{number}") for number in range(6)]
    read("\n".join(lines[:5]))
    with pytest.raises(UsageError, match="more than 5 times; give a part of them"):
        read("\n".join(lines))


def test_the_name_of_a_communicator_moves_no_cursor() -> None:
    with pytest.raises(UsageError) as told:
        read(inspector(0, 1, 5.0, "\x1b[2J"), communicator="0x\x1b")
    assert str(told.value) == "no communicator '0x\\x1b'; there are: \\x1b[2J"


def test_several_files_are_one_job() -> None:
    reader = TimesReader()
    for rank in range(3):
        reader.feed(inspector(rank, 1, 10.0, ranks=3).encode())
        reader.end_file(f"h{rank}-pid1.log")
    assert reader.table().ranks == (0, 1, 2)
    assert reader.kind is TimeKind.COLLECTIVE


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("compute_time_ms", TimeKind.COMPUTE),
        ("Forward time (s)", TimeKind.COMPUTE),
        ("allreduce_us", TimeKind.COLLECTIVE),
        ("elapsed time per iteration (ms)", TimeKind.ITERATION),
        ("time", TimeKind.ITERATION),
    ],
)
def test_the_name_of_a_column_tells_what_was_timed(name: str, kind: TimeKind) -> None:
    assert kind_of(name) is kind


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no times of ranks"),
        ("host,time_s\nh1,3\n", "no column of ranks among host, time_s"),
        ("rank,start_time,end_time\n0,1,2\n", "no column of times"),
        ("rank,compute_time,comm_time\n0,1,2\n", "several columns of times: compute_time"),
        ("0,1,2\n0,2,3\n", "the first line must name the columns"),
        ("rank,iteration,time_s\n0,0,0\n0,1,-3\n0,2,nan\n0,3,inf\n", "no times of ranks"),
        ('{"step": 3}\n', "no column of ranks among step"),
    ],
)
def test_what_is_no_table_of_times_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read(text)


def test_of_several_columns_one_is_chosen() -> None:
    table = read("rank,compute_time_s,comm_time_s\n0,1,2\n", column="comm_time_s")
    np.testing.assert_allclose(table.seconds, [[2.0]])
    with pytest.raises(UsageError, match="no column 'x' among"):
        read("rank,compute_time_s\n0,1\n", column="x")


def test_a_sparse_table_does_not_fill_memory() -> None:
    rows = "\n".join(f"{number},{number},1" for number in range(8000))
    with pytest.raises(UsageError, match="8,000 ranks times 8,000 iterations are too many"):
        read(f"rank,iteration,time_s\n{rows}\n")


def test_a_line_without_end_is_dropped_and_the_rest_is_read() -> None:
    reader = TimesReader()
    reader.feed(b"rank,iteration,time_s\n0,0,1\n")
    for _ in range(40):
        reader.feed(b"x" * 65536)
    reader.feed(b"\n1,0,2\n")
    reader.end_file("f")
    assert reader.table().ranks == (0, 1)


@given(st.binary(max_size=300), st.sampled_from([b"", b"rank,iteration,time_s\n", b"{"]))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes, before: bytes) -> None:
    reader = TimesReader()
    try:
        reader.feed(before + data)
        reader.end_file("f")
        table = reader.table()
    except UsageError:
        return
    assert table.seconds.shape == (len(table.iterations), len(table.ranks))


def test_a_map_says_where_ranks_run() -> None:
    text = "rank host gpu\n# a comment\n0 h1 0\n1,h1,1,stage0\n2  h2\n"
    assert read_rank_map(text, "m") == {
        0: Placed("h1", "0"),
        1: Placed("h1", "1", "stage0"),
        2: Placed("h2"),
    }
    with pytest.raises(UsageError, match="m, line 2: rank 0 stands there twice"):
        read_rank_map("0 h1\n0 h2\n", "m")
    with pytest.raises(UsageError, match=r"line 1: .* is not 'rank host"):
        read_rank_map("0 -h1\n", "m")


def slow_rank_csv(path: Path) -> Path:
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        file.write("rank,iteration,compute_time_ms\n")
        for iteration in range(20):
            for rank in range(16):
                time = 400 * (1 + 0.03 * rng.standard_normal()) * (1.3 if rank == 9 else 1)
                file.write(f"{rank},{iteration},{time:.2f}\n")
    return path


def test_the_command_names_the_slow_rank_and_its_host(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = slow_rank_csv(tmp_path / "t.csv")
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for path in (file, packed):
        assert run(["stragglers", str(path), "--nodes", "n[1-2]", "--format", "json"]) == 1
        report = json.loads(capfd.readouterr().out)
        assert report["schema"] == "ncdiag/stragglers/1"
        assert [(one["rank"], one["place"]) for one in report["slow"]] == [(9, "n2 gpu1")]
        assert report["slow_hosts"] == ["n2"]
    assert run(["stragglers", str(file), "--skip", "10", "--format", "csv"]) == 1
    assert capfd.readouterr().out.splitlines()[1].startswith("9,")


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--nodes", "n1"], "does not say where 8 of 16 ranks run: 8, 9, 10, 11, 12, ..."),
        (["--skip", "20"], "--skip 20 leaves nothing of 20 iterations"),
        (["--pipeline-stages", "3"], "--pipeline-stages 3 does not divide 16 ranks"),
        (["--nodes", "n1", "--map", "m"], "--map and --nodes both say"),
        (["--map", "nothing"], "nothing: No such file"),
        (["--kind", "comput"], "Did you mean 'compute'?"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], more: list[str], complaint: str
) -> None:
    assert run(["stragglers", str(slow_rank_csv(tmp_path / "t.csv")), *more]) == 2
    said = capfd.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_text_from_the_table_moves_no_cursor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    rows = [f"{r},{i},{3 if r == 2 else 1},\x1b[2Jh{r}" for i in range(6) for r in range(5)]
    file.write_text("\n".join(["rank,step,compute_s_time_s,host", *rows]))
    assert run(["stragglers", str(file)]) == 1
    assert "\x1b" not in capfd.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_at_the_start_of_a_file_tell_how_it_is_written(encoding: str) -> None:
    np.testing.assert_equal(read(LONG.encode(encoding)).seconds, read(LONG).seconds)


def test_quoted_and_padded_cells_and_powers_of_ten_are_read() -> None:
    table = read('"Rank" , "Step", "Compute time (ms)"\n"0" ,"1","4.0e2"\n 1 , 1 , 4.1E+02 \n')
    np.testing.assert_allclose(table.seconds, [[0.4, 0.41]])


def test_decimal_commas_are_refused_and_not_left_out() -> None:
    with pytest.raises(UsageError, match="'396,63': write decimals with a point"):
        read("rank;step;compute_time_ms\n0;1;396,63\n")


def test_a_rank_that_moves_is_where_it_was_last() -> None:
    table = read("rank,step,time_s,host\n0,1,1.0,a\n0,2,1.0,b\n0,3,1.0,a\n")
    assert table.hosts == {0: "a"}


def test_evidence_of_an_old_file_is_as_old_as_the_file(tmp_path: Path) -> None:
    files = [tmp_path / f"times{part}.csv" for part in range(2)]
    for part, file in enumerate(files):
        rows = [
            f"{rank},{step},{20 if rank == 5 else 10},h{rank}"
            for rank in range(8)
            for step in range(10 * part, 10 * part + 10)
        ]
        file.write_text("rank,iteration,compute_time_ms,host\n" + "\n".join(rows) + "\n")
        os.utime(file, (1e9 - part, 1e9 - part))
    store = tmp_path / "store.db"
    arguments = [*map(str, files), "--record", "--store", str(store), "--quiet"]
    assert run(["stragglers", *arguments]) == 1
    with Ledger.open(store) as ledger:
        assert [(one.host, one.seen_s) for one in ledger.evidence()] == [("h5", 1e9)]
