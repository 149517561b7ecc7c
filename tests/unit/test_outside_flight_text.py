"""What torch's analyser of flight recorders prints."""

import pytest

from ncdiag.model.log import Event, LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.flight_text import FlightTextReader
from ncdiag.read.line import Line


def read(*texts: str) -> list[Event]:
    reader, evidence = FlightTextReader(), LogEvidence()
    for number, text in enumerate(texts, 1):
        if reader.open or any(needle in text.encode() for needle in reader.needles):
            reader.read(Line(text=text, place=Place("report.txt", number)), [])
    reader.finish(evidence)
    return evidence.events


def test_ranks_that_did_not_join() -> None:
    first, second = read(
        "Not all ranks joining collective, sequence number: 31",
        "internal record id: 30",
        "group info: 4:tensor_parallel",
        "collective: nccl:_reduce_scatter_base",
        "missing ranks: {2, 11}",
        "world size: 16",
        "Not all ranks joining collective, sequence number: 32",
        "missing ranks: {2}",
    )
    assert first.attributes == {"seq": "31", "op": "_reduce_scatter_base"}
    assert first.ranks == (2, 11)
    assert (second.attributes, second.ranks) == ({"seq": "32"}, (2,))


@pytest.mark.parametrize("name", ["error msg", "global rank errors"])
def test_ranks_whose_collective_differs(name: str) -> None:
    (event,) = read(
        "[INFO] Input/output mismatch in the collective sequence number: 9",
        f"{name}: Culprit rank 3; Error type: SIZE_OR_SYNTAX_MISMATCH, Culprit rank 5; Error",
    )
    assert event.ranks == (3, 5)


def test_a_report_ends() -> None:
    other = ["step"] * 30
    (event,) = read(
        "Not all ranks joining collective, sequence number: 1", *other, "missing ranks: {7}"
    )
    assert event.ranks == ()
