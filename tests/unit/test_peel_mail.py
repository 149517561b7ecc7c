"""What programs for mail do to a log: escapes, soft line ends, breaks between words, quotes."""

import quopri
import textwrap
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler

WHO = "elm-0{0}:40{0}:41{0} [{0}]"
WHERE = f"{WHO} transport/net_ib.cc:77{{0}} NCCL WARN"
COMPLETION = (
    f"{WHERE} NET/IB: Got completion from peer 10.8.0.{{0}}<4{{0}}1> with status=1{{0}} opcode=12"
    " len=4096 vendor err 129 (Recv) localGid ::ffff:10.8.1.1 remoteGids ::ffff:10.8.1.2"
)
CHANNEL = f"{WHO} NCCL INFO Channel 00/0 : {{0}}[1] -> 9[1] [send] via NET/IB/{{0}}/GDRDMA"
CALL = f"{WHERE} Call to recv from fd00::{{0}}:1%ib0<5{{0}}2> failed with the error : timed out"
CHAIN = f"{WHO} NCCL INFO transport/net.cc:81{{0}} -> 2"
RECORDS = (COMPLETION, CHANNEL, CALL, CHAIN)
LOG = [record.format(n) for n in range(1, 5) for record in RECORDS]


def peel(lines: Iterable[str | bytes]) -> list[Line]:
    peeler, found = Peeler("mail.log"), []
    for number, line in enumerate(lines, 1):
        raw = line if isinstance(line, bytes) else line.encode()
        found.extend(peeler.feed(raw, number))
    return [*found, *peeler.finish()]


def shown(lines: Iterable[str | bytes]) -> list[str]:
    return [line.shown for line in peel(lines) if line.level]


def wrapped(lines: Iterable[str], width: int, quote: str = "") -> list[str]:
    return [
        quote + piece
        for line in lines
        for piece in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    ]


@pytest.mark.parametrize("header", [["Content-Transfer-Encoding: quoted-printable", ""], []])
def test_quoted_printable_is_undone(header: list[str]) -> None:
    body = quopri.encodestring("\n".join(LOG).encode()).split(b"\n")
    assert shown([*header, *body]) == LOG


@pytest.mark.parametrize("width", [72, 74, 76, 78])
@pytest.mark.parametrize("quote", ["", "> ", "> > ", ">> "])
def test_records_that_were_broken_between_words_are_whole_again(width: int, quote: str) -> None:
    assert shown(wrapped(LOG, width, quote)) == LOG


def test_one_record_that_ends_within_a_phrase_goes_on() -> None:
    text = f"{WHERE.format(3)} NET/IB: Got"
    rest = "completion from peer 10.8.0.3<431> with status=12 opcode=0 len=0 vendor err 129"
    assert shown([text, rest]) == [f"{text} {rest}"]


def test_what_a_program_prints_after_a_record_is_no_rest_of_it() -> None:
    record = "elm-01:401:411 [1] NCCL INFO Connected all rings, use ring PXN 1 GDR 1"
    for other in ("validation of the checkpoint begins", "evaluating", "loss=0.5 at epoch=3"):
        assert [line.text for line in peel([record, other, record + " ", other])] == [
            "Connected all rings, use ring PXN 1 GDR 1",
            other,
        ] * 2


def test_an_equals_sign_at_the_end_is_kept() -> None:
    border = "#" + "=" * 70
    option = "the value of this option, which is a long one, may stand here: option="
    assert [line.text for line in peel([border, "plain", option, "", "plain"])] == [
        border,
        "plain",
        option,
        "",
        "plain",
    ]


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (
            "slurmstepd: error: *** JOB 77 ON a1 CANCELLED AT 2031-02-03T04:05:06",
            "DUE TO TIME LIMIT ***",
        ),
        (
            "slurmstepd: error: *** STEP 77.0 ON a1 CANCELLED AT 2031-02-03T04:05:06 DUE TO",
            "TIME LIMIT ***",
        ),
    ],
)
def test_a_record_of_slurm_goes_on_to_its_asterisks(first: str, rest: str) -> None:
    wide = "x" * 200
    assert [line.text for line in peel([wide, first, rest, "bye"])] == [
        wide,
        f"{first} {rest}",
        "bye",
    ]
    assert [line.text for line in peel([first, "bye"])] == [first, "bye"]


@given(st.lists(st.text("> ab", max_size=90), max_size=30))
def test_no_letter_is_lost(texts: list[str]) -> None:
    letters = str.maketrans("", "", "> ")
    found = "".join(line.text for line in peel(texts)).translate(letters)
    assert found == "".join(texts).translate(letters)


@given(st.lists(st.binary(max_size=90), max_size=30), st.booleans())
def test_any_bytes_are_read(raws: list[bytes], announced: bool) -> None:  # noqa: FBT001
    header = [b"Content-Transfer-Encoding: quoted-printable"] if announced else []
    lines = [*header, *(raw + tail for raw in raws for tail in (b"=", b"=3D", b"=C3=A9", b""))]
    numbers = [line.place.line for line in peel(lines)]
    assert numbers == sorted(numbers)
