"""Formats are told apart by what a file holds; nothing that is read can do harm."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults
from ncdiag.read.results.formats import FORMATS, HEAD_BYTES, Format, format_of, read_results
from ncdiag.read.results.text import document

DATA = Path(__file__).parents[1] / "data/results"
FILES = {
    "mpigraph.txt": "mpigraph",
    "clusterkit_bandwidth.txt": "clusterkit",
    "clusterkit_bandwidth.json": "clusterkit",
    "osu_bw_fir1_fir2.txt": "osu",
    "osu_mbw_mr.txt": "osu",
    "nvbandwidth.txt": "nvbandwidth",
    "nvbandwidth.json": "nvbandwidth",
    "rccl.json": "rccl-tests",
    "rccl.csv": "rccl-tests",
    "superbench.jsonl": "superbench",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_known_by_its_content(name: str) -> None:
    assert read_results((DATA / name).read_bytes(), "renamed.bin").format == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_known_to_one_reader_alone(name: str) -> None:
    head = (DATA / name).read_bytes()[:HEAD_BYTES]
    assert sum(one.recognises(head) for one in FORMATS) == 1


@pytest.mark.parametrize("name", FILES)
def test_lines_before_and_line_ends_of_windows(name: str) -> None:
    data = (DATA / name).read_bytes()
    expected = read_results(data, "x")
    noise = b"Loading modules\nsrun: job 17 queued\n" if not name.endswith(("json", "csv")) else b""
    found = read_results(noise + data.replace(b"\n", b"\r\n"), "x")
    assert found.pairs == expected.pairs
    assert len(found.benchmarks) == len(expected.benchmarks)


@pytest.mark.parametrize(
    "data", [b"", b"hello\n", b"{}", b"[1, 2]", b"\x80\x04\x95", b"a,b\n1,2\n"]
)
def test_an_unknown_format_is_told_what_is_known(data: bytes) -> None:
    assert format_of(data) is None
    with pytest.raises(UsageError, match=r"known are nvbandwidth.*mpiGraph.*nccl-tests") as raised:
        read_results(data, "notes.txt")
    assert f"{raised.value}".startswith("notes.txt: not a known format")


@given(st.binary(max_size=600), st.sampled_from(sorted(FILES)), st.integers(0, 4000))
@settings(deadline=None, max_examples=150)
def test_any_bytes_are_read_or_refused_in_one_line(noise: bytes, name: str, at: int) -> None:
    whole = (DATA / name).read_bytes()
    damaged = whole[:at] + noise + whole[at + len(noise) // 2 :]
    for one in FORMATS:
        for data in (noise, damaged):
            results, complaint = tried(one, data)
            assert "\n" not in complaint
            for pair in results.pairs if results else ():
                assert pair.gbit_per_s is None or 0 < pair.gbit_per_s < 1e7
                assert pair.source != pair.target


def tried(one: Format, data: bytes) -> tuple[ForeignResults | None, str]:
    try:
        return one.read(data, "x"), ""
    except UsageError as error:
        return None, f"{error}"


def test_documents_with_something_around_them() -> None:
    assert document(b'log line\n{"a": [1, {"b": 2}]}\nand more') == ({"a": [1, {"b": 2}]}, False)
    assert document(b'{"a": [1, {"b": 2}') == ({"a": [1, {"b": 2}]}, True)
    assert document(b'{"a": 1, "b": "tex')[1]
    assert document(b"no braces") == (None, True)
