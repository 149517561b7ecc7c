"""Lines as each release prints them, with the class and the attributes they must give.

They stand in a file, one JSON object a line: ``level`` is null for a line that is not the
library's, ``class`` is null where nothing must be found, and ``attributes`` are all of them or,
where they are not looked at, absent.
"""

from pathlib import Path

import msgspec
import pytest

from ncdiag.model.log import Event, LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.signatures.reader import SignatureReader
from ncdiag.read.signatures.table import TABLE


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line: its release, text and what must be read in it."""

    release: str
    text: str
    class_: str | None = msgspec.field(name="class", default=None)
    attributes: dict[str, str] | None = None
    level: str | None = "WARN"
    location: str | None = None


FILE = Path(__file__).parents[1] / "data" / "postmortem" / "signature_lines.jsonl"
ALL = msgspec.json.Decoder(Told).decode_lines(FILE.read_bytes())
COMPLETIONS = [t for t in ALL if t.class_ in {"ib_completion_error", "ib_flush_error"}]


def read(told: Told) -> list[Event]:
    reader = SignatureReader(TABLE)
    raw = told.text.encode()
    line = Line(text=told.text, place=Place("job.log", 1), level=told.level, location=told.location)
    reader.read(line, [needle for needle in sorted(reader.needles) if needle in raw])
    evidence = LogEvidence()
    reader.finish(evidence)
    return evidence.events


def said(text: str, **more: str | None) -> list[Event]:
    return read(msgspec.structs.replace(Told(release="any", text=text), **more))


@pytest.mark.parametrize("told", ALL, ids=lambda told: f"{told.release}: {told.text[:70]}")
def test_line_gives_its_class_and_attributes(told: Told) -> None:
    events = {event.class_name: event for event in read(told)}
    if told.class_ is None:
        assert events == {}
        return
    assert told.class_ in events
    assert told.attributes is None or dict(events[told.class_].attributes) == told.attributes


@pytest.mark.parametrize("told", COMPLETIONS, ids=lambda told: told.text[-60:])
def test_cut_completion_never_gives_a_wrong_status(told: Told) -> None:
    assert told.attributes
    status = told.attributes["status"]
    for end in range(len(told.text)):
        for event in said(told.text[:end], level=told.level):
            assert event.attributes["status"] == status


def test_there_are_enough_lines() -> None:
    assert len(ALL) >= 150


def test_context_of_a_connection_is_kept_for_the_diagnosis() -> None:
    text = "Connect to 10.4.0.9<50011> failed : Connection refused"
    (nowhere,) = said(text)
    (rendezvous,) = said(text, location="bootstrap.cc:120")
    (data,) = said(text, location="transport/net_socket.cc:301")
    assert "context" not in nowhere.details
    assert rendezvous.details["context"] == "bootstrap"
    assert data.details["context"] == "net_socket"


def test_result_codes_are_numbered_and_keep_the_last_error() -> None:
    text = "gpu-9: Test NCCL failure common.cu:9 'unhandled system error / Call to x failed'"
    (event,) = said(text, level=None)
    assert event.details == {"result": "2", "last_error": "Call to x failed"}


def test_ranks_of_a_duplicate_are_told() -> None:
    (event,) = said("Duplicate GPU detected : rank 9 and rank 8 both on CUDA device 9b000")
    assert event.ranks == (9, 8)
