"""What perftest prints, in each of its layouts, whole, damaged and cut."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.errors import UsageError
from ncdiag.read.perftest import read, read_runs, recognises
from ncdiag.read.perftest.records import Side

_SPEC = importlib.util.spec_from_file_location(
    "perftest_layouts", Path(__file__).parents[1] / "data/perftest/layouts.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
layouts: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(layouts)

MIB = 2**20 * 8e-9


def text_of(*rows: str, program: str = "ib_write_bw", unit: str = "Gb/sec", **title: Any) -> str:
    """The whole output of the side that connects: 10.0.0.1, with 10.0.0.2."""
    lines = layouts.parameters(layouts.title(program, **title), "mlx5_0", pairs=4)
    lines += layouts.address("local", "10.0.0.1") + layouts.address("remote", "10.0.0.2")
    lines += [layouts.RULE, layouts.heading(unit), *rows, layouts.RULE]
    return "\n".join(lines) + "\n"


def figures(text: str) -> list[tuple[str, str, float | None]]:
    found = read(text.encode(), "run.txt")
    return [(pair.source, pair.target, pair.gbit_per_s) for pair in found.pairs]


ROW = layouts.row(65536, 5000, peak=98.1, average=98.02, mpps=0.18696)
INFO = {
    "test": "RDMA_Write_BW_Test",
    "Dual_port": "OFF",
    "Device": "rxe0",
    "Number_of_qps": 1,
    "TX_depth ": 128,
    "Link_type": "Ethernet",
}


def results(average: float, mpps: float, size: int = 65536) -> dict[str, object]:
    return {
        "MsgSize": size,
        "n_iterations": 5000,
        "BW_peak": 0.0,
        "BW_average": average,
        "MsgRate": mpps,
    }


@pytest.mark.parametrize(
    ("unit", "factor"), [("Gb/sec", 1.0), ("MB/sec", MIB), ("MiB/sec", MIB)], ids=str
)
def test_the_heading_tells_the_unit(unit: str, factor: float) -> None:
    [(_, _, figure)] = figures(text_of(ROW, unit=unit))
    assert figure == pytest.approx(98.02 * factor)


def test_a_run_says_what_it_is() -> None:
    [run] = read_runs(text_of(ROW).encode())
    assert (run.test, run.device, run.queue_pairs) == ("RDMA_Write BW Test", "mlx5_0", 4)
    assert (run.link_type, run.complete, run.complaints) == ("Ethernet", True, [])
    assert run.bandwidth[0].iterations == 5000


def test_payload_goes_to_the_side_that_waits_unless_it_is_read() -> None:
    forth = [("10.0.0.1", "10.0.0.2", 98.02)]
    back = [("10.0.0.2", "10.0.0.1", 98.02)]
    waited = "\n".join(layouts.WAITING) + "\n"
    assert figures(text_of(ROW)) == forth
    assert figures(text_of(ROW, program="ib_send_bw")) == forth
    assert figures(text_of(ROW, program="ib_read_bw")) == back
    assert figures(waited + text_of(ROW)) == back
    assert figures(waited + text_of(ROW, program="ib_read_bw")) == forth


def test_an_infiniband_port_is_named_by_its_lid() -> None:
    text = text_of(ROW)
    for line in layouts.address("local", "10.0.0.1"):
        text = text.replace(line + "\n", "")
    text = text.replace(layouts.RULE, layouts.address("local", None, lid=12)[0], 1)
    assert figures(text)[0][0] == "lid12"


def test_of_all_sizes_the_best_counts_and_of_equal_sizes_the_median() -> None:
    def row(size: int, average: float) -> str:
        return str(layouts.row(size, 5000, average=average, mpps=0.1))

    found = read(text_of(row(2, 0.06), row(8192, 97.0), row(8388608, 96.0)).encode(), "all")
    assert (found.pairs[0].gbit_per_s, found.pairs[0].size_bytes) == (97.0, 8192)
    seconds = [row(65536, average) for average in (97.0, 40.0, 98.0)]
    found = read(text_of(*seconds).encode(), "each second")
    assert (found.pairs[0].gbit_per_s, found.pairs[0].min_gbit_per_s) == (97.0, 40.0)


def test_both_directions_are_told_apart_by_report_both_alone() -> None:
    both = {"bidirectional": True}
    parts = [
        ROW,
        layouts.RULE,
        " Local results: ",
        layouts.RULE,
        layouts.heading(),
        layouts.row(65536, 5000, average=60.0, mpps=0.1),
        layouts.RULE,
        " Remote results: ",
        layouts.RULE,
        layouts.heading(),
        layouts.row(65536, 5000, average=38.02, mpps=0.1),
    ]
    assert figures(text_of(*parts, **both)) == [
        ("10.0.0.1", "10.0.0.2", 60.0),
        ("10.0.0.2", "10.0.0.1", 38.02),
    ]
    alone = read(text_of(ROW, **both).encode(), "sum")
    assert [pair.gbit_per_s for pair in alone.pairs] == [None, None]
    assert all("sum of both" in (pair.error or "") for pair in alone.pairs)


def test_warnings_stand_anywhere_even_inside_a_row() -> None:
    cut = ROW[:30] + layouts.CPU_WARNING + "\n" + ROW[30:]
    noise = "[h1:123] something: {else}"
    assert figures(text_of(layouts.CPU_WARNING, noise, cut, noise)) == figures(text_of(ROW))


def test_a_latency_test_is_read_and_judges_no_link() -> None:
    row = layouts.latency_row(2, 1000, [2.37, 5.39, 2.42, 2.43, 0.05, 2.47, 4.03])
    lines = layouts.parameters(layouts.title("ib_write_lat"), "mlx5_0")
    lines += [layouts.LATENCY_HEADING, row, layouts.RULE, ""]
    text = "\n".join(lines)
    [run] = read_runs(text.encode())
    assert (run.latency[0].typical_us, run.latency[0].p999_us) == (2.42, 4.03)
    found = read(text.encode(), "lat")
    assert found.pairs == []
    assert "2.42 us at 2 bytes" in found.notes[0]


def test_a_run_that_failed_says_why() -> None:
    text = text_of("", "Completion with error at client", " Failed status 12: wr_id 0 syndrom 0x81")
    [pair] = read(text.encode(), "failed").pairs
    assert (pair.gbit_per_s, pair.error) == (None, "Completion with error at client")


def test_two_runs_in_one_file_are_two_pairs() -> None:
    other = text_of(ROW).replace("10:00:00:02", "10:00:00:03")
    assert [pair[1] for pair in figures(text_of(ROW) + other)] == ["10.0.0.2", "10.0.0.3"]


@pytest.mark.parametrize("quoted", [True, False], ids=["quoted", "bare"])
@pytest.mark.parametrize("trailing", [True, False], ids=["trailing comma", "strict"])
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "no last brace"])
@pytest.mark.parametrize("before", ["", "[1,0]<stdout>: log {line}\n"], ids=["alone", "after logs"])
def test_json_is_read_in_all_its_forms(
    *, quoted: bool, trailing: bool, closed: bool, before: str
) -> None:
    text = before + layouts.json_report(
        INFO,
        [("results", results(98.02, 0.18696))],
        quoted=quoted,
        trailing=trailing,
        closed=closed,
    )
    if quoted and closed and not trailing and not before:
        json.loads(text)
    assert recognises(text.encode())
    [run] = read_runs(text.encode())
    assert (run.test, run.device, run.bandwidth[0].gbit_per_s) == (
        "RDMA_Write BW Test",
        "rxe0",
        98.02,
    )
    assert run.complete


def test_json_tells_its_unit_by_the_rate_of_messages_or_not_at_all() -> None:
    def figure(average: float, mpps: float) -> float | None:
        text = layouts.json_report(INFO, [("results", results(average, mpps))])
        return read(text.encode(), "x.json").pairs[0].gbit_per_s

    assert figure(98.02, 0.18696) == 98.02
    assert figure(98.02 / MIB, 0.18696) == pytest.approx(98.02)
    assert figure(98.02, 0.0) is None


def test_of_bidirectional_json_three_reports_tell_the_directions_and_one_does_not() -> None:
    info = INFO | {"test": "RDMA_Write_Bidirectional_BW_Test"}
    rows = [results(average, average / 524.288) for average in (98.0, 60.0, 38.0)]
    repeated = layouts.json_report(info, [("results", row) for row in rows], quoted=False)
    named = zip(("results", "results_local", "results_remote"), rows, strict=True)
    appended = "".join(layouts.json_report(info, [("results", row)]) for row in rows)
    for text in (repeated, layouts.json_report(info, list(named)), appended):
        [run] = read_runs(text.encode())
        assert [row.side for row in run.bandwidth] == list(Side)
        assert [pair.gbit_per_s for pair in read(text.encode(), "x").pairs] == [60.0, 38.0]
    alone = read(layouts.json_report(info, [("results", rows[2])]).encode(), "x")
    assert [pair.gbit_per_s for pair in alone.pairs] == [None, None]
    assert "does not say which" in (alone.pairs[0].error or "")


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("kind", ["text", "json"])
def test_no_figure_comes_out_of_a_file_that_was_cut_but_the_true_one(
    kind: str, ending: str
) -> None:
    whole = (
        text_of(ROW)
        if kind == "text"
        else layouts.json_report(INFO, [("results", results(98.02, 0.18696))], trailing=True)
    )
    data = whole.replace("\n", ending).encode()
    seen = set()
    for end in range(len(data)):
        for run in read_runs(data[:end]):
            seen |= {row.gbit_per_s for row in run.bandwidth}
    assert seen <= {98.02, None}
    assert not read(data, "x").cut
    assert read(data[: -len(ending) * 2 - 40], "x").cut


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    check(data)


_PIECES = st.sampled_from(
    [
        *text_of(ROW).splitlines(keepends=True),
        *layouts.json_report(INFO, [("results", results(1.0, 0.1))], quoted=False).splitlines(),
        layouts.LATENCY_HEADING + "\n",
        " Local results: \n",
        " 1e999 nan inf -1 99999999999999999999\n",
        "\u0663\u0663 1 1 1 1\n",
        "results: {",
    ]
)


@given(st.lists(_PIECES, max_size=30))
def test_pieces_in_any_order_are_read_or_refused(pieces: list[str]) -> None:
    check("".join(pieces).encode())


def check(data: bytes) -> None:
    recognises(data)
    try:
        found = read(data, "x")
    except UsageError as error:
        assert "no output of perftest" in str(error)  # noqa: PT017 - it may as well be read
        return
    for pair in found.pairs:
        assert (pair.gbit_per_s is None) is (pair.error is not None)
        assert pair.gbit_per_s is None or 0 <= pair.gbit_per_s < 1e12


def test_other_output_is_not_taken_for_perftest() -> None:
    for text in ("# OSU MPI Bandwidth Test\n1 2.5\n", '{"results": {"avg": 1}}', "", "error: x\n"):
        assert not recognises(text.encode())
        with pytest.raises(UsageError):
            read(text.encode(), "x")
