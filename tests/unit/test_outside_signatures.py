"""The rows for what kernels, PyTorch, launchers and ending programs say."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.finding import FindingClass
from ncdiag.model.log import Event, LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler
from ncdiag.read.signatures import exceptions, framework, kernel, launcher
from ncdiag.read.signatures.reader import SignatureReader, match
from ncdiag.read.signatures.row import Signature
from ncdiag.read.signatures.sxid import ALWAYS_FATAL, FATAL
from ncdiag.read.signatures.xid_catalogue import XIDS

# One line each with what it means: a class or none, attributes, details, ranks, and the role
# where the form differs from its class.
LINES = Path(__file__).parents[1] / "data" / "postmortem" / "outside_lines.jsonl"
CASES = [json.loads(text) for text in LINES.read_text(encoding="utf-8").splitlines()]
ROWS = (*kernel.ROWS, *framework.ROWS, *launcher.ROWS, *exceptions.ROWS)
HERE = Place("job.log", 1)


def hits(reader: SignatureReader, text: str) -> tuple[bytes, ...]:
    raw = text.encode()
    return tuple(needle for needle in sorted(reader.needles) if needle in raw)


def events_of(text: str, *, level: str | None = None) -> list[Event]:
    """What the rows make of one line."""
    reader = SignatureReader(ROWS)
    reader.read(Line(text=text, place=HERE, shown=text, level=level), hits(reader, text))
    evidence = LogEvidence()
    reader.finish(evidence)
    return evidence.events


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_sample_is_read_by_one_row_of_its_class(row: Signature) -> None:
    line = Line(text=row.sample, place=HERE)
    same = [other.name for other in ROWS if other.class_ is row.class_ and match(other, line)]
    assert same == [row.name]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"][:60])
def test_line_means(case: dict[str, Any]) -> None:
    events = events_of(case["line"])
    if case["class"] is None:
        assert events == []
        return
    (event,) = events
    attributes, details = case.get("attributes", {}), case.get("details", {})
    assert event.class_name == case["class"]
    assert {name: event.attributes.get(name) for name in attributes} == attributes
    assert {name: event.details.get(name) for name in details} == details
    assert event.role == case.get("role")
    assert event.ranks == tuple(case.get("ranks", ()))


def test_there_are_enough_lines() -> None:
    assert len({case["line"] for case in CASES}) > 200


@pytest.mark.parametrize(
    "wrapper",
    [
        "{}",
        "[ 8123.456789] {}",
        "[Thu Jan  2 03:04:05 2031] {}",
        "Jan  2 03:04:05 gpu9 kernel: [ 8123.456789] {}",
        "kern  :err   : [ 8123.456789] {}",
        "2031-01-02T03:04:05.678901+00:00 gpu9 kernel: {}",
        "3,812,8123456789,-;{}",
    ],
)
def test_kernel_line_means_the_same_behind_each_wrapper(wrapper: str) -> None:
    text = "NVRM: Xid (PCI:0000:5e:00): 79, pid=12, name=python, GPU has fallen off the bus."
    peeler = Peeler("kern.log")
    lines = [*peeler.feed(wrapper.format(text).encode(), 1), *peeler.finish()]
    (event,) = (event for line in lines for event in events_of(line.text))
    assert event.class_name == FindingClass.GPU_FELL_OFF_BUS
    assert event.attributes == {"xid": "79", "pci": "0000:5e:00"}


@pytest.mark.parametrize("number", XIDS)
def test_every_xid_of_the_catalogue_has_its_class(number: int) -> None:
    (event,) = events_of(f"NVRM: Xid (PCI:0000:5e:00): {number}, pid=12, name=python, text")
    assert event.class_name == XIDS[number].kind.class_
    assert event.role == XIDS[number].kind.role
    assert event.attributes["xid"] == str(number)


@given(st.integers(0, 999_999))
def test_every_other_xid_only_informs(number: int) -> None:
    (event,) = events_of(f"NVRM: Xid (PCI:0000:5e:00): {number}, text")
    assert (event.role == "warning") >= (number not in XIDS)


@pytest.mark.parametrize("number", sorted(FATAL | ALWAYS_FATAL))
def test_word_of_a_switch_decides_over_the_lists(number: int) -> None:
    head = f"nvidia-nvswitch0: SXid (PCI:0000:c2:00.0): {number:05d}, "
    said = {
        word: events_of(f"{head}{word}Link 3 text")[0] for word in ("Fatal, ", "Non-fatal, ", "")
    }
    assert [event.class_name for event in said.values()] == [
        FindingClass.NVSWITCH_FATAL,
        FindingClass.NVSWITCH_NONFATAL,
        FindingClass.NVSWITCH_FATAL,
    ]
    assert {event.attributes["sxid"] for event in said.values()} == {str(number)}


def test_kernel_words_in_a_line_of_the_library_are_not_the_kernels() -> None:
    assert events_of("Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus", level="WARN") == []


def test_rank_of_the_prefix_is_preferred_to_the_one_in_the_text() -> None:
    text = (
        "[rank1]:[E102 06:40:05.483840160 ProcessGroupNCCL.cpp:542] [Rank 12] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, Timeout(ms)=60000) ran "
        "for 60001 milliseconds before timing out."
    )
    peeler = Peeler("job.log")
    (line,) = [*peeler.feed(text.encode(), 1), *peeler.finish()]
    reader = SignatureReader(ROWS)
    reader.read(line, hits(reader, text))
    (event,) = reader.events.all()
    assert (event.speaker.rank, event.ranks) == (1, ())
    assert reader.kinds == {"torch"}


@given(st.data())
def test_any_damage_to_a_line_is_read_without_an_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([case["line"] for case in CASES]))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    events_of(text[:start] + data.draw(st.text(max_size=40)) + text[end:])
