import io
from collections.abc import Iterable

import pytest

from ncdiag.model.log import LogEvidence
from ncdiag.read.blocks import blocks
from ncdiag.read.depth import DEEPEST, Depth, depth
from ncdiag.read.facts_budget import FactsBudget
from ncdiag.read.log_reader import LogReader
from ncdiag.read.newlines import newlines
from ncdiag.read.selection import Selection


class Witness(LogReader):
    """Notes the lines it is given."""

    def __init__(self) -> None:
        super().__init__("log")
        self.needles = frozenset({b"needle", b": opCount "})
        self.facts = frozenset({b"fact"})
        self.seen: list[tuple[int, bytes, tuple[bytes, ...]]] = []
        self.close_after = 0
        self.learning = 0

    @property
    def learned(self) -> int:
        return self.learning

    def take(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> None:
        self.seen.append((number, raw, hits))
        self.close_after -= 1
        if b"needle opens" in raw:
            self.close_after = 3
        self.open = self.close_after > 0

    def finish(self) -> LogEvidence:
        return LogEvidence()


def select(
    data: bytes, *, every_line: bool = False, block: int = 1 << 20, depth: Depth = DEEPEST
) -> tuple[Witness, Selection]:
    witness = Witness()
    chosen = Selection(witness, every_line=every_line, size=len(data), depth=depth)
    for one in blocks(io.BytesIO(data), block):
        chosen.read(one)
    return witness, chosen


def numbers(witness: Witness, word: bytes) -> list[int]:
    return [number for number, raw, _ in witness.seen if word in raw]


def long_input(middle: Iterable[bytes]) -> bytes:
    """Lines between two edges, so far apart that both are over when the middle begins."""
    filler = b"nothing here\n" * 4000
    return filler + b"".join(line + b"\n" for line in middle) + filler


def test_every_line_of_a_small_input_is_read() -> None:
    witness, chosen = select(b"a\n\nneedle\nb", every_line=True)
    assert witness.seen == [
        (1, b"a", ()),
        (2, b"", ()),
        (3, b"needle", (b"needle",)),
        (4, b"b", ()),
    ]
    assert (chosen.lines, chosen.bytes) == (4, 11)


@pytest.mark.parametrize("block", [256, 4096, 1 << 20])
def test_of_a_large_input_hits_and_both_ends_are_read(block: int) -> None:
    data = long_input([b"needle one", b"not", b"needle two"])
    witness, chosen = select(data, block=block)
    assert numbers(witness, b"needle") == [4001, 4003]
    assert not numbers(witness, b"not ")
    assert witness.seen[0][0] == 1
    assert witness.seen[-1][0] == 8003 == chosen.lines
    assert len(witness.seen) < 4000
    given = [number for number, _, _ in witness.seen]
    assert given == sorted(set(given))


def test_while_a_reader_is_open_it_gets_whatever_comes() -> None:
    witness, _ = select(long_input([b"needle opens", b"x1", b"x2", b"x3", b"needle", b"x4"]))
    assert numbers(witness, b"x") == [4002, 4003, 4004]


def test_line_ends_of_other_systems_count_as_their_own_do() -> None:
    plain, _ = select(long_input([b"a", b"needle", b"b"]))
    other, _ = select(long_input([b"a", b"needle", b"b"]).replace(b"\n", b"\r\n"))
    assert numbers(plain, b"needle") == numbers(other, b"needle") == [4002]


def test_a_gigantic_line_is_cut_and_the_next_one_read() -> None:
    data = long_input([b"needle " + b"x" * (9 << 20), b"needle after"])
    witness, chosen = select(data, block=4 << 20)
    assert numbers(witness, b"needle") == [4001, 4002]
    assert max(len(raw) for _, raw, _ in witness.seen) == 64 << 10
    assert chosen.cut_lines == 1


def test_a_progress_bar_is_read_part_by_part() -> None:
    bar = b"\r".join([b"%d%%" % n for n in range(40_000)])
    witness, _ = select(long_input([bar + b"\rneedle" + b"\r" + bar, b"needle"]))
    assert [(n, raw) for n, raw, _ in witness.seen if b"needle" in raw] == [
        (4001, b"needle"),
        (4002, b"needle"),
    ]


def test_calls_are_read_where_a_large_input_begins_and_ends() -> None:
    ends = Depth(first_calls_bytes=1 << 20, last_calls_bytes=1 << 20)
    lines = [b"%07d AllReduce: opCount 1 and so on and so on" % n for n in range(100_000)]
    witness, _ = select(b"\n".join(lines) + b"\n", depth=ends)
    seen = [number for number, _, _ in witness.seen]
    assert seen[:1000] == list(range(1, 1001))
    assert seen[-1000:] == list(range(99_001, 100_001))
    assert 40_000 < len(seen) < 70_000


def test_facts_are_read_while_they_teach_something() -> None:
    witness, _ = select(b"a fact that is always the same\n" * 200_000)
    assert 4_000 <= len(witness.seen) < 20_000
    budget = FactsBudget(4000, 4000)
    budget.spend(4_000, 3_000, 2)
    assert budget.wanted
    budget.spend(4_000, 10, 2)
    assert not budget.wanted
    budget.renew()
    assert budget.wanted


def test_of_many_inputs_each_is_read_less_deeply() -> None:
    assert depth(1) == depth(16) == DEEPEST
    many, more = depth(100), depth(10_000)
    for name in Depth.__dataclass_fields__:
        assert getattr(DEEPEST, name) > getattr(many, name) > getattr(more, name) > 0


def test_facts_of_more_hosts_take_longer_to_read() -> None:
    few, many = FactsBudget(4000, 4000), FactsBudget(4000, 4000)
    few.spend(5_000, 5_000, 2)
    many.spend(5_000, 5_000, 200)
    assert not few.wanted
    assert many.wanted


def test_a_large_log_has_its_line_feeds_counted_by_numpy() -> None:
    pytest.importorskip("numpy")
    text = bytearray(b"one\ntwo\n\nfour" * 3_000)
    slow, fast = newlines(None), newlines(1 << 40)
    assert slow is not fast
    for start, stop in ((0, len(text)), (3, 4), (1, 9_000), (len(text), len(text))):
        assert slow(text, start, stop) == fast(text, start, stop) == text.count(b"\n", start, stop)
