"""Completion dumps of libmlx5: whole, interleaved, with lines dropped, damaged, endless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.mlx5_dump import Mlx5DumpReader

HEAD = "mlx5: gpu-9: got completion with error:"
ZEROS = "00000000 00000000 00000000 00000000"


def last(syndrome: str, vendor: str = "88") -> str:
    return f"00000000 0000{vendor}{syndrome} 08002a11 0001c5d2"


def read(*lines: tuple[str, str] | str) -> tuple[list[Event], Mlx5DumpReader]:
    reader = Mlx5DumpReader()
    for number, each in enumerate(lines, 1):
        text, pid = each if isinstance(each, tuple) else (each, None)
        if reader.open or any(needle in text.encode() for needle in reader.needles):
            speaker = Speaker(pid=pid)
            reader.read(Line(text=text, place=Place("x", number), speaker=speaker), [])
    evidence = LogEvidence()
    reader.finish(evidence)
    return evidence.events, reader


@pytest.mark.parametrize(
    ("syndrome", "status"),
    [("01", "1"), ("04", "4"), ("12", "9"), ("13", "10"), ("14", "11"), ("15", "12"), ("16", "13")],
)
def test_syndrome_becomes_a_status(syndrome: str, status: str) -> None:
    events, reader = read(HEAD, ZEROS, ZEROS, ZEROS, last(syndrome))
    (event,) = events
    assert event.class_name == "ib_completion_error"
    assert event.attributes == {"status": status, "vendor_err": "136"}
    assert event.speaker.host == "gpu-9"
    assert event.place.line == 1
    assert not reader.open


def test_flush_is_an_echo() -> None:
    (event,) = read(HEAD, ZEROS, ZEROS, ZEROS, last("05", "f9"))[0]
    assert event.class_name == "ib_flush_error"
    assert event.role == "consequence"
    assert event.attributes == {"status": "5", "vendor_err": "249"}


def test_lines_that_a_collector_dropped_are_not_missed() -> None:
    assert len(read(HEAD, ZEROS, last("15"))[0]) == 1


def test_dumps_of_two_processes_are_kept_apart() -> None:
    events, _ = read((HEAD, "1"), (HEAD, "2"), (ZEROS, "1"), (last("13"), "2"), (last("15"), "1"))
    assert {(e.speaker.pid, e.attributes["status"]) for e in events} == {("1", "12"), ("2", "10")}


@pytest.mark.parametrize("text", [ZEROS, last("99"), "00000000 00008813", last("13")[:-2] + "00"])
def test_words_that_tell_nothing_are_no_event(text: str) -> None:
    assert read(HEAD, text)[0] == []


def test_words_without_a_head_are_no_event() -> None:
    assert read(ZEROS, last("13"))[0] == []


def test_reader_closes_by_itself() -> None:
    assert not read(HEAD, *["step 4 loss 2.1"] * 40)[1].open


@given(st.lists(st.text(max_size=60), max_size=40))
def test_any_lines_are_read(lines: list[str]) -> None:
    read(HEAD, *lines)
