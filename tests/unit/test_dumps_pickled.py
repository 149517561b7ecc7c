import math
import os
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.log import LogEvidence
from ncdiag.read.flight import FlightDocument, pickled
from ncdiag.read.flight.pickled import PickleError, load

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
KEYS = st.one_of(st.text(max_size=8), st.integers(-(2**63), 2**63))
PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**120), 2**120),
        st.floats(allow_nan=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner),
        st.tuples(inner, inner, inner),
        st.lists(inner, min_size=4, max_size=5).map(tuple),
        st.dictionaries(KEYS, inner, max_size=5),
    ),
    max_leaves=20,
)


def _said_of(data: bytes) -> str:
    try:
        load(data)
    except PickleError as error:
        return str(error)
    return ""


@given(PLAIN, st.sampled_from(PROTOCOLS))
def test_plain_values_of_every_protocol_are_read_as_they_are(value: Any, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol)) == value


@given(st.binary(max_size=400))
def test_any_bytes_are_a_value_or_the_one_error(data: bytes) -> None:
    assert "\n" not in _said_of(data)


@given(PLAIN, st.data())
def test_a_damaged_pickle_is_a_value_or_the_one_error(value: Any, data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps(value, data.draw(st.sampled_from(PROTOCOLS))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    assert "\n" not in _said_of(bytes(whole))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_cut_anywhere_says_so(protocol: int) -> None:
    value = {"entries": [{"a": (1, 2.5, "x" * 300, [True, None])}] * 3, "n": 2**70, "version": "2"}
    whole = pickle.dumps(value, protocol)
    for end in range(len(whole)):
        with pytest.raises(PickleError):
            load(whole[:end])


class _Runs:
    """Its pickle writes a file when it is loaded the usual way."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_in_a_pickle_runs(tmp_path: Path, protocol: int) -> None:
    trap = tmp_path / "trap"
    data = pickle.dumps({"entries": [_Runs(trap)]}, protocol)
    with pytest.raises(PickleError, match="plain values do not need"):
        load(data)
    assert not trap.exists()
    pickle.loads(data)  # noqa: S301  # the trap works
    assert trap.exists()


# What imports, calls, builds, looks up or reaches out, each behind values that it would need.
_HARMFUL = ["GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"]
_HARMFUL += ["PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER"]
_HARMFUL += ["EMPTY_SET", "FROZENSET", "ADDITEMS", "BYTEARRAY8", "DUP", "POP", "POP_MARK"]
_SAFE_NAMES = {op.name for op in pickletools.opcodes if ord(op.code) in pickled._OPERATIONS} | {
    "STOP"
}


def test_every_opcode_is_either_plain_or_refused() -> None:
    assert {op.name for op in pickletools.opcodes} - _SAFE_NAMES == set(_HARMFUL)


@pytest.mark.parametrize("name", _HARMFUL)
def test_harmful_opcodes_are_refused_whatever_stands_before_them(name: str) -> None:
    code = next(op.code for op in pickletools.opcodes if op.name == name).encode("latin-1")
    for before in (b"", b"(", b"((", b"X\x02\0\0\0osX\x06\0\0\0system", b"}(K\x01", b"]]", b"N)"):
        for after in (b"os\nsystem\n.", b"\x01.", b"\x01\0\0\0."):
            with pytest.raises(PickleError, match=r"opcode|early|damaged"):
                load(before + code + after)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02X\xff\xff\xff\xff.",  # a text of 4 GiB
        b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b".",
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",  # a number of 2 GiB
        b"\x80\x02\x8b\xff\xff\xff\xff.",  # of negative size
        b"\x80\x02\x8b\x00\x00\x10\x00" + b"\x7f" * (1 << 20) + b".",
        b"I" + b"9" * 100_000 + b"\n.",
        b"L" + b"9" * 100_000 + b"L\n.",
        b"p" + b"9" * 30 + b"\n.",
        b"\x80\x02Nr\xff\xff\xff\xffj\xff\xff\xff\x7f.",
        b"\x80\x04\x95" + struct.pack("<Q", 2**63) + b".",
        b"(" * 1_000_000,
        b"\x80\x02" + b"]" * 1_000_000 + b"a" * 1_000_001 + b".",
        b"\x80\x06N.",
        b"(lp0\nNd.",
        b"(NNt(NN",
        b"}(]K\x01u.",
        b"}()K\x01u.",
        b"e.",
        b"\x87.",
        b"N\x87.",
        b"K\x01a.",
        b"K\x01]K\x02s.",
        b"V\\ud800\n",
        b"Sabc\n.",
        b"F1e\n.",
        b"hK.",
        b".",
    ],
    ids=range(28),
)
def test_hostile_pickles_end_in_one_line(data: bytes) -> None:
    with pytest.raises(PickleError) as told:
        load(data)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 200


def test_a_large_memo_index_takes_no_room() -> None:
    assert load(b"\x80\x02Nr\xff\xff\xff\xffj\xff\xff\xff\xff\x86.") == (None, None)


def test_endless_operations_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickled, "MAX_STEPS", 1000)
    with pytest.raises(PickleError, match="more than 1000 steps"):
        load(b"\x80\x02]" + b"Na" * 600 + b".")


def _laughs(levels: int, width: int) -> bytes:
    """A list of lists of lists ... of one text, each level the one below many times over."""
    # All but the last list are left on the stack; the memo brings it where it belongs.
    data = b"\x80\x02]q\0(K\x01e"
    for level in range(1, levels):
        data += b"]q" + bytes([level]) + b"(" + (b"h" + bytes([level - 1])) * width + b"e"
    last = bytes([levels - 1])
    entry = b"}(X\x0b\0\0\0input_sizesh" + last + b"X\x06\0\0\0framesh" + last + b"u"
    return data + b"}X\x07\0\0\0entries](" + entry + b"es."


@pytest.mark.parametrize("levels", [3, 4, 60])
def test_a_memo_bomb_is_counted_not_followed(levels: int) -> None:
    data = _laughs(levels, 1000)
    evidence = LogEvidence()
    document = FlightDocument("trace_rank_1")
    document.feed(data)
    document.finish(evidence)
    if evidence.dumps:
        (entry,) = evidence.dumps[0].entries
        assert sum(math.prod(size) for size in entry.input_sizes) <= 1000
    else:
        assert document.error


def test_a_list_that_holds_itself_is_read() -> None:
    data = b"\x80\x02}X\x07\0\0\0entries]q\0h\0as."
    document = FlightDocument("trace_rank_1")
    document.feed(data)
    evidence = LogEvidence()
    document.finish(evidence)
    assert document.error is None
    assert evidence.dumps[0].entries == []


def test_a_bomb_of_entries_is_counted() -> None:
    sizes = b"]q\0(" + b"K\x01" * 1000 + b"e"
    rows = b"]q\1(" + b"h\0" * 1000 + b"e"
    entry = b"}q\2X\x0b\0\0\0input_sizesh\1s"
    data = b"\x80\x02" + sizes + rows + entry + b"}X\x07\0\0\0entries](" + b"h\2" * 1000 + b"es."
    document = FlightDocument("trace_rank_1")
    document.feed(data)
    evidence = LogEvidence()
    document.finish(evidence)
    assert document.error
    assert "values" in document.error
    assert not evidence.dumps
