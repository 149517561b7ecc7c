import io
import os
import subprocess
import sys

import pytest
from found_lines import found_lines
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.read.blocks import LINE_LIMIT, blocks
from ncdiag.read.scan import Scanner, engine_name

NEEDLES = [
    b"NCCL WARN ",
    b"WARN",
    b"opCount",
    b"a",
    b"ab",
    b"ba",
    b"\xff\xfe",
    "é".encode(),
    b"(x[",
]
PIECES = [*NEEDLES, b"\n", b"\r\n", b"\0", b"b", b" ", b"NCCL ", b"op"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)


def expected(text: bytes) -> list[tuple[bytes, tuple[bytes, ...]]]:
    found = []
    for line in text.split(b"\n"):
        hits = tuple(sorted(needle for needle in NEEDLES if needle in line))
        if hits:
            found.append((line, hits))
    return found


@given(TEXTS)
def test_both_engines_give_each_line_with_its_needles(text: bytes) -> None:
    block = bytearray(text)
    for engine in ("hyperscan", "re"):
        scanner = Scanner(NEEDLES, engine)
        assert found_lines(scanner, block) == expected(text)


@given(TEXTS, TEXTS, TEXTS)
def test_only_the_asked_part_of_a_block_is_looked_through(a: bytes, b: bytes, c: bytes) -> None:
    a, b = a + b"\n", b + b"\n"
    block = bytearray(a + b + c)
    for engine in ("hyperscan", "re"):
        scanner = Scanner(NEEDLES, engine)
        assert found_lines(scanner, block, len(a), len(a + b)) == expected(b)


def test_the_engine_can_be_chosen() -> None:
    code = "from ncdiag.read.scan import engine_name; print(engine_name())"
    for chosen in ("re", "hyperscan"):
        environment = {**os.environ, "NCDIAG_SCAN": chosen if chosen == "re" else ""}
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == chosen


def test_without_hyperscan_the_other_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncdiag.read.scan.hyperscan", None)
    assert engine_name("hyperscan") == "re"
    block = bytearray(b"x NCCL WARN y\nz\n")
    scanner = Scanner([b"WARN"])
    assert found_lines(scanner, block) == [(b"x NCCL WARN y", (b"WARN",))]


@pytest.mark.parametrize("needle", [b"", b"a\nb", b"a\0b"])
def test_a_needle_that_no_engine_can_find_is_refused(needle: bytes) -> None:
    with pytest.raises(ValueError, match="needle"):
        Scanner([needle])


def test_no_needles_find_nothing() -> None:
    assert list(Scanner([]).lines(bytearray(b"abc\n"), 0, 4)) == []


class Dribble(io.RawIOBase):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data = data
        self._sizes = sizes
        self._turn = 0

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = self._sizes[self._turn % len(self._sizes)]
        self._turn += 1
        taken = self._data[: min(size, len(buffer))]
        self._data = self._data[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


@given(
    st.lists(st.binary(max_size=60), max_size=30).map(b"\n".join),
    st.lists(st.integers(1, 50), min_size=1, max_size=5),
)
def test_blocks_hold_every_line_whole_whatever_comes_at_a_time(
    data: bytes, sizes: list[int]
) -> None:
    pieces = []
    for block in blocks(Dribble(data, sizes), 256):
        pieces.append(bytes(block.buffer[: block.size]))
        assert block.last or pieces[-1][-1:] in (b"\n", b"\r")
    assert b"".join(pieces) == data


def test_a_line_larger_than_a_block_keeps_its_beginning_and_no_more_memory() -> None:
    data = b"first\n" + b"x" * 5000 + b"\nlast\n"
    read = b"".join(bytes(b.buffer[: b.size]) for b in blocks(io.BytesIO(data), 256))
    assert read.startswith(b"first\nxxx")
    assert read.endswith(b"x\nlast\n")
    assert len(read) < 600
    assert LINE_LIMIT == 64 << 10
