import pytest
from found_lines import found_lines
from hypothesis import given
from hypothesis import strategies as st
from ordinary_lines import ORDINARY

from ncdiag.model.log import Event
from ncdiag.model.place import Place
from ncdiag.read import ordinary, scan
from ncdiag.read.clues import clues
from ncdiag.read.log_reader import LogReader
from ncdiag.read.scan import Scanner
from ncdiag.read.shapes import Shapes, Tally

NEEDLES = [
    b"could not open the lid",
    b"could not open the lid of the box",
    b"the lid is open",
    b"open",
    b"rope",
    b"a cat sat on the mat",
    b"a dog sat on the mat",
]
PIECES = [*NEEDLES, b" sat on ", b"could not ", b"the lid", b"\n", b"\r", b"\0", b"o", b" "]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)


@given(TEXTS)
def test_clues_lead_to_the_lines_that_needles_do(text: bytes) -> None:
    expected = [
        (line, hits)
        for line in text.split(b"\n")
        if (hits := tuple(sorted(one for one in NEEDLES if one in line)))
    ]
    assert found_lines(Scanner(NEEDLES, brief=True), bytearray(text)) == expected
    assert found_lines(Scanner(NEEDLES, "re", brief=True), bytearray(text)) == expected


def test_each_needle_contains_its_word() -> None:
    needles = LogReader("log").needles
    words = clues(needles)
    assert sorted(needle for owners in words.values() for needle in owners) == sorted(needles)
    assert all(word in needle for word, owners in words.items() for needle in owners)
    assert all(len(word) <= 8 or owners == [word] for word, owners in words.items())
    assert words[b"ode=13"] == [b"ode=13"]
    assert len(words) < 0.7 * len(needles)


def test_no_word_lies_in_what_jobs_print_all_the_time() -> None:
    words = clues(LogReader("log").needles - {b": opCount ", b"[nranks=", b"NCCL CALL "})
    lines = [*(line.encode() for line in ORDINARY), *ordinary.TEXT.split(b"\n")]
    assert {word: line for line in lines for word in words if word in line} == {}


def test_a_word_that_misleads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_MOST_MISLED", 10)
    scanner = Scanner(NEEDLES, brief=True)
    wrong = bytearray(b"nobody sat on the moon\n" * 20)
    assert len(scanner.lines(wrong, 0, len(wrong))) == 20
    assert found_lines(scanner, wrong) == []
    assert len(scanner.lines(wrong, 0, len(wrong))) == 20
    scanner.reconsider()
    assert scanner.lines(wrong, 0, len(wrong)) == []
    text = bytearray(b"a cat sat on the mat\nnobody\nthe lid is open\na dog sat on the mat")
    assert found_lines(scanner, text) == [
        (b"a cat sat on the mat", (NEEDLES[5],)),
        (b"the lid is open", (b"open", b"the lid is open")),
        (b"a dog sat on the mat", (NEEDLES[6],)),
    ]


def test_a_line_is_its_hosts_first_until_one_of_that_host_was_looked_at() -> None:
    shapes = Shapes()
    known = b"n1:4:5 [0] NCCL WARN the lid is open"
    shape = shapes.of(known)
    assert shape is not None
    event = Event(class_name="x", form="x", place=Place("log", 1), text="")
    shape.note([Tally(event)], None)
    shapes.mute(known, shape, finer=False)
    shapes.hear(known)
    block = bytearray(known + b"\n" + known.replace(b"n1", b"n2") + b"\n")
    lines = [(0, len(known), [0]), (len(known) + 1, 2 * len(known) + 1, [0])]
    assert list(shapes.unmuted(block, lines)) == lines[1:]
    assert list(shapes.unmuted(block, lines)) == lines[1:]
    shapes.hear(bytes(block[lines[1][0] : lines[1][1]]))
    assert list(shapes.unmuted(block, lines)) == []
