import gzip

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ncdiag.model.topology import (
    NotATopologyError,
    TopologyKind,
    TruncatedTopologyError,
)
from ncdiag.read.topology import text as topology_text
from ncdiag.read.topology.read_topology import read_topology
from ncdiag.read.topology.text import integer, number, quoted

XML = '<system version="1"><cpu numaid="7" vendor="Zürich"/></system>'
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-7\nGPU1\tPIX\t X \t0-7\n"
KINDS = {
    TopologyKind.NCCL_TOPOLOGY: XML,
    TopologyKind.NCCL_GRAPH: '<graphs><graph id="0"/></graphs>',
    TopologyKind.GPU_MATRIX: MATRIX,
}


@pytest.mark.parametrize(("kind", "text"), KINDS.items())
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
        lambda text: text.encode("latin-1"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: f"\n\n{text}\n\n".encode(),
        lambda text: f"\x1b[4m{text}\x1b[0m\x1b]0;title\x07".encode(),
        lambda text: text.encode() + b"\0\0",
    ],
)
def test_the_kind_follows_from_what_is_in_it_in_any_encoding(
    kind: TopologyKind, text: str, encode: object
) -> None:
    assert callable(encode)
    assert read_topology(encode(text)).kind is kind


def test_letters_outside_of_ascii_survive() -> None:
    for encoding in ("utf-8", "utf-16", "latin-1"):
        topology = read_topology(XML.encode(encoding))
        assert topology.kind is TopologyKind.NCCL_TOPOLOGY
        assert "Zürich" in repr(topology)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b" \n\t\r\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"\xff\xfe", "empty"),
        (b"\0\0\0\0\0\0\0\0", "binary"),
        (bytes(range(32)) * 20, "binary"),
        (b"\x7fELF" + bytes(200), "binary"),
        (b"\x1b[31m" * 100, "binary"),
        (gzip.compress(XML.encode(), mtime=0), "compressed"),
        (b"just some words\n", "no topology dump that is known"),
        (b'{"gpus": 8}', "no topology dump that is known"),
        (b"GPU0 is down\nGPU1 is up\n", "no topology dump that is known"),
    ],
)
def test_what_is_no_dump_is_refused_in_one_line(data: bytes, told: str) -> None:
    with pytest.raises(NotATopologyError, match=told) as refused:
        read_topology(data)
    assert "\n" not in str(refused.value)


def test_a_text_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_text, "MAX_BYTES", len(MATRIX) - 1)
    with pytest.raises(NotATopologyError, match="larger than"):
        read_topology(MATRIX.encode())


def answer(data: bytes) -> str:
    """The kind, or the message of one of the two documented errors."""
    try:
        return read_topology(data).kind.value
    except (NotATopologyError, TruncatedTopologyError) as refused:
        return str(refused)


@settings(max_examples=200)
@given(st.binary(max_size=400))
@example(b"<")
@example(b"\xff\xfe<\x00")
@example(b"<system>\xff\xfe")
@example(b"GPU0")
def test_any_bytes_give_a_record_or_a_documented_error(data: bytes) -> None:
    assert answer(data).isprintable()


@settings(max_examples=200)
@given(
    st.sampled_from(list(KINDS.values())),
    st.lists(st.tuples(st.integers(0, 120), st.binary(max_size=6)), max_size=4),
)
def test_a_dump_with_some_bytes_replaced_likewise(
    text: str, wounds: list[tuple[int, bytes]]
) -> None:
    data = text.encode()
    for place, wound in wounds:
        data = data[:place] + wound + data[place + len(wound) :]
    assert answer(data).isprintable()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("-1", -1),
        ("0x1F", 31),
        ("010", 10),
        ("", None),
        (None, None),
        ("1_0", None),
        ("٣", None),
        ("1.5", None),
        ("ff", None),
        ("9" * 30, None),
        ("9" * 5000, None),
    ],
)
def test_integers_are_whole_or_unknown(text: str | None, value: int | None) -> None:
    assert integer(text) == value


def test_numbers_are_finite_or_unknown() -> None:
    assert [number(text) for text in ("0.5", "-3", "inf", "nan", "x", "", None, "1_0")] == [
        0.5,
        -3.0,
        None,
        None,
        None,
        None,
        None,
        None,
    ]
    assert integer("ff", 16) == 255


def test_what_is_quoted_is_one_short_visible_line() -> None:
    assert quoted("a\n\tb\x1b[2J\u202e") == "a b\\x1b[2J\\u202e"
    assert len(quoted("x" * 1000)) == 60
