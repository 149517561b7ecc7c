"""Exports of log stores: tables with a header, and JSON documents of several records."""

import json

import pytest

from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler

NCCL = "vq-07:42:50 [3] misc/demo.cc:8 NCCL WARN made up for a test"
KERNEL = "NVRM: Xid (PCI:0000:4b:00): 31, pid=77, name=demo"
NIGHT = 1780275723.0  # 2026-06-01T01:02:03Z
EVENTS = [
    {"timestamp": 1780275723000, "message": "[rank1]: one", "ingestionTime": 1780275729000},
    {"timestamp": 1780275724000, "message": 'say "two"\n\tand three'},
]


def peel(*raws: str) -> list[Line]:
    peeler = Peeler("a.log")
    lines = [
        line for number, raw in enumerate(raws, 1) for line in peeler.feed(raw.encode(), number)
    ]
    return [*lines, *peeler.finish()]


def told(lines: list[Line]) -> list[tuple[str, str | None, float | None]]:
    """Text, host and time of each line."""
    return [
        (line.text, line.speaker.host, line.place.time.seconds if line.place.time else None)
        for line in lines
    ]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ('"_time",host,source,"_raw"', '"2026-06-01T01:02:03.000+0000","vq-07","/a/b","{}"'),
        ('"@timestamp","host.name",message', '"Jun 1, 2026 @ 01:02:03.000","vq-07","{}"'),
        ("@timestamp,message,hostname", '2026-06-01T01:02:03Z,"{}",vq-07'),
    ],
)
@pytest.mark.parametrize(
    ("text", "peeled"),
    [
        (f"kernel: {KERNEL}", KERNEL),
        (f"Jun  1 01:02:03 vq-07 kernel: {KERNEL}", KERNEL),
        (NCCL, "made up for a test"),
        ('name ""demo"", 7', 'name "demo", 7'),
    ],
)
def test_a_row_is_the_line_in_its_message_column(
    header: str, row: str, text: str, peeled: str
) -> None:
    assert told(peel(header, row.format(text)))[1:] == [(peeled, "vq-07", NIGHT)]


@pytest.mark.parametrize(
    "header",
    ["name,host,message", '"_time",host,source', "step, loss, time", '"a" "message","time"'],
)
def test_without_columns_of_an_export_rows_stay(header: str) -> None:
    row = '"2026-06-01T01:02:03Z","vq-07","a message"'
    assert [line.text for line in peel(header, row)][1:] == [row]


def test_a_header_counts_only_where_the_input_begins() -> None:
    row = '"2026-06-01T01:02:03Z","vq-07","a message"'
    assert told(peel("first", '"_time",host,"_raw"', row))[-1][1] is None


def test_a_row_without_a_time_or_of_other_columns_is_a_line_of_its_own() -> None:
    header = "timestamp,host,message"
    for row in ('"never","vq-07","a"', '"2026-06-01T01:02:03Z","a"', "a, b, c, d"):
        ((_, host, _),) = told(peel(header, row))[1:]
        assert host is None


def test_a_record_goes_on_until_its_quote_is_closed() -> None:
    lines = [
        '"_time",host,"_raw"',
        '"2026-06-01T01:02:03Z","vq-07","Traceback (most recent call last):',
        '  File ""demo.py"", line 7',
        'ValueError: ""no""',
        '"',
        '"2026-06-01T01:02:04Z","vq-08","one',
        'two"',
        "no row",
    ]
    assert told(peel(*lines))[1:] == [
        ("Traceback (most recent call last):", "vq-07", NIGHT),
        ('  File "demo.py", line 7', "vq-07", NIGHT),
        ('ValueError: "no"', "vq-07", NIGHT),
        ("", "vq-07", NIGHT),
        ("one", "vq-08", NIGHT + 1),
        ("two", "vq-08", NIGHT + 1),
        ("no row", None, None),
    ]


@pytest.mark.parametrize("document", [{"events": EVENTS, "nextToken": "f/1"}, EVENTS])
@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_each_message_of_a_document_is_a_line(document: object, indent: int | str | None) -> None:
    found = [one for one in told(peel(*json.dumps(document, indent=indent).split("\n"))) if one[2]]
    assert found == [
        ("one", None, NIGHT),
        ('say "two"', None, NIGHT + 1),
        ("\tand three", None, NIGHT + 1),
    ]


def test_a_list_with_an_object_a_line_is_read_object_by_object() -> None:
    first, second = (json.dumps(event) for event in EVENTS)
    for lines in (["[", f"  {first},", f"  {second}", "]"], [f"[{first},", f"{second}]"]):
        assert [one[2] for one in told(peel(*lines)) if one[2]] == [NIGHT, NIGHT + 1, NIGHT + 1]


@pytest.mark.parametrize("before", ["[", '{"events": ['])
def test_of_a_list_that_was_cut_off_the_whole_objects_are_read(before: str) -> None:
    text = before + ", ".join(map(json.dumps, EVENTS)) + ', {"timestamp": 17802'
    assert [one[0] for one in told(peel(text))] == ["one", 'say "two"', "\tand three"]


def test_a_property_proves_nothing_for_another_object() -> None:
    lines = [
        "{",
        '  "time": "2026-06-01T01:02:03Z",',
        '  "host": "vq-07",',
        '  "message": "one"',
        "},",
        "{",
        '  "message": "two",',
        '  "host": "vq-08"',
        "}",
    ]
    found = [one for one in told(peel(*lines)) if one[0] in {"one", "two"}]
    assert found == [("one", "vq-07", NIGHT), ("two", None, None)]


@pytest.mark.parametrize("line", ['  "note": "a",', '  "message": "a" + b', '  "message": {'])
def test_what_is_no_whole_property_of_a_message_stays(line: str) -> None:
    assert [found.text for found in peel("{", line)][1:] == [line]
