import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.log import LogEvidence, RasReport
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler
from ncdiag.read.ras import json_report
from ncdiag.read.ras.json_lines import RasJsonReader
from ncdiag.read.ras.json_report import RasDocument

OPS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv")


def rank(number: int, **changes: Any) -> dict[str, Any]:
    status = {
        "init_state": 0,
        "async_error": 0,
        "finalize_called": False,
        "destroy_flag": False,
        "abort_flag": False,
    }
    counts = dict.fromkeys(OPS, 0) | {"AllReduce": 70, "SendRecv": number}
    return {
        "rank": number,
        "host": f"10.9.0.{number // 2 + 1}",
        "pid": 100 + number,
        "cuda_dev": number % 2,
        "nvml_dev": number % 2,
        "status": status | changes.get("status", {}),
        "collective_counts": counts | changes.get("counts", {}),
    }


def missing(number: int, **status: bool) -> dict[str, Any]:
    one = rank(number)
    del one["collective_counts"]
    return one | {"status": {"unresponsive": True, "considered_dead": False} | status}


def told(
    ranks: list[dict[str, Any]],
    absent: list[dict[str, Any]] | None = None,
    *,
    size: int = 4,
    timeouts: int = 0,
) -> dict[str, Any]:
    communicator = {
        "hash": "0x5eaf",
        "secondary_hash": "0x1:0x2",
        "size": size,
        "ranks_count": len(ranks),
        "missing_ranks_count": len(absent or ()),
        "ranks": ranks,
        "missing_ranks": absent or [],
    }
    return {
        "nccl_version": "2.28.7",
        "cuda_runtime_version": 13000,
        "cuda_driver_version": 13010,
        "timestamp": "2026-02-03 04:05:06",
        "communicators_count": 1,
        "communicators": [communicator],
        "ras": {"collection_time_sec": 0.12, "timeouts_count": timeouts},
    }


def read(data: bytes) -> tuple[list[RasReport], str | None]:
    document = RasDocument("r.json")
    document.feed(data)
    evidence = LogEvidence()
    document.finish(evidence)
    return evidence.ras, document.error


def report(values: dict[str, Any]) -> RasReport:
    data = json.dumps(values, indent=2).encode()
    assert RasDocument.recognises(data[:4096])
    (only,), error = read(data)
    assert error is None
    return only


def test_a_healthy_job() -> None:
    only = report(told([rank(n) for n in range(4)]))
    assert only.issues == []
    assert only.version == "2.28.7"
    assert (only.nodes, only.processes, only.gpus) == (2, 4, 4)
    assert (only.communicators, only.largest, only.complete) == (1, 4, True)


def test_counts_are_compared() -> None:
    ranks = [rank(n, counts={"AllReduce": 70 - (n == 2), "Reduce": int(n == 1)}) for n in range(4)]
    reduce, all_reduce = report(told(ranks)).issues
    assert (reduce.kind, reduce.op, reduce.counts) == ("MISMATCH", "Reduce", {-1: 3, 1: 1})
    assert (all_reduce.op, all_reduce.counts) == ("AllReduce", {70: 3, 69: 1})
    assert (all_reduce.group, all_reduce.ranks) == ("0x5eaf", 4)
    (behind,) = all_reduce.members
    assert behind[:5] == (2, "10.9.0.2", "102", "0", 69)


def test_statuses_are_compared() -> None:
    ranks = [
        rank(0),
        rank(1, status={"init_state": 7}),
        rank(2, status={"abort_flag": True, "destroy_flag": True}),
        rank(3, status={"finalize_called": True}),
        rank(4),
    ]
    (issue,) = report(told(ranks, [missing(5, unresponsive=False)], size=6)).issues
    assert issue.statuses == {"RUNNING": 2, "INIT": 1, "ABORT": 1, "FINALIZE": 1, "NOCOMM": 1}
    assert [m.rank for m in issue.members] == [1, 2, 3, 5]


def test_errors_have_their_names() -> None:
    ranks = [rank(0, status={"async_error": 6}), rank(1, status={"init_state": 2}), rank(2)]
    issues = [each for each in report(told(ranks)).issues if each.kind == "ERROR"]
    assert [each.statuses for each in issues] == [{"System error": 1}, {"Remote process error": 1}]
    assert issues[1].members[0].status == "Remote process error"


def test_missing_and_dead_ranks() -> None:
    absent = [missing(2), missing(3, considered_dead=True), missing(4294967295), missing(9)]
    dead, incomplete = report(told([rank(0), rank(1)], absent)).issues
    assert (dead.kind, [m.rank for m in dead.members]) == ("DEAD", [3])
    assert (incomplete.kind, [m.rank for m in incomplete.members]) == ("INCOMPLETE", [2])


def test_timeouts_are_told() -> None:
    (issue,) = report(told([rank(0)], size=1, timeouts=2)).issues
    assert issue.kind == "TIMEOUT"


def test_unknown_hosts_are_nobody() -> None:
    ranks = [rank(n) for n in range(2)]
    ranks[0] |= {"host": "unknown", "pid": -1}
    assert report(told(ranks)).nodes == 1


def test_what_a_server_answers_before_the_report_is_skipped() -> None:
    data = b"SERVER PROTOCOL 2\nOK\nOK\n" + json.dumps(told([rank(0)], size=1)).encode()
    assert RasDocument.recognises(data)
    assert len(read(data)[0]) == 1


def event(name: str, **peer: Any) -> str:
    values = {"timestamp": "2026-02-03 04:05:06", "group": "TRACE", "event": name}
    return json.dumps(values | {"peer": peer, "details": "of no use"}, indent=2)


def test_a_stream_of_events() -> None:
    texts = [
        event("PEER_NEW", host="10.9.0.1", pid=1, cuda_devs=[0], nvml_devs=[0]),
        event("PEER_DEAD", host="10.9.0.1", pid=1, cuda_devs=[0, 1], nvml_devs=[0, 1]),
        event("PEER_SEND_STUCK", addr="10.9.0.2<999>"),
    ]
    data = "\n".join(texts).encode()
    assert RasDocument.recognises(data)
    (stream,), error = read(data)
    assert error is None
    assert [(i.kind, i.members[0].host, i.members[0].gpus) for i in stream.issues] == [
        ("DEAD", "10.9.0.1", "0,1"),
        ("TIMEOUT", "10.9.0.2", None),
    ]


def test_reports_before_a_cut_one_are_kept() -> None:
    one = json.dumps(told([rank(0)], size=1), indent=1).encode()
    for end in range(1, len(one)):
        reports, error = read(one + one[:end])
        assert len(reports) == 1
        assert error
        assert error.startswith("RAS report is cut or damaged")
        assert "\n" not in error


def read_lines(lines: list[str], *, every_line: bool = False) -> list[RasReport]:
    reader = RasJsonReader()
    for number, text in enumerate(lines, 1):
        hits = [needle for needle in reader.needles if needle in text.encode(errors="replace")]
        if hits or reader.open or every_line:
            level = "INFO" if " NCCL INFO " in text else None
            reader.read(Line(text=text, place=Place("log", number), level=level), hits)
    evidence = LogEvidence()
    reader.finish(evidence)
    return evidence.ras


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_reports_among_the_lines_of_a_log(indent: int | None) -> None:
    ranks = [rank(n, counts={"AllReduce": 70 - (n == 2)}) for n in range(4)]
    one = json.dumps(told(ranks), indent=indent).split("\n")
    lines = ["$ ncclras -f json", *one, "step 4 {", *one[:-1], "h:1:2 [0] NCCL INFO x", one[-1]]
    if indent is None:
        lines = ["report: " + one[0] + " done", "step 4", one[0]]
    first, second = read_lines(lines)
    assert first.issues[0].op == "AllReduce"
    assert [m.rank for m in first.issues[0].members] == [2]
    assert first.place.line in (1, 3)
    assert second.complete


def test_events_among_the_lines_of_a_log() -> None:
    lines = event("PEER_DEAD", host="10.9.0.1", pid=1).split("\n")
    (stream,) = read_lines(["start", *lines, "end"])
    assert stream.issues[0].members[0].host == "10.9.0.1"


def test_an_object_that_does_not_end_is_given_up() -> None:
    lines = json.dumps(told([rank(0)], size=1), indent=2).split("\n")
    assert read_lines([*lines[:9], *["epoch 1"] * 9, *lines[9:]]) == []
    assert read_lines(lines[:-1]) == []


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(0, 40))
def test_any_lines_among_those_of_a_report(lines: list[str], at: int) -> None:
    whole = json.dumps(told([rank(0)], size=1), indent=2).split("\n")
    read_lines([*whole[:at], *lines, *whole[at:]], every_line=True)


def test_other_json_is_none() -> None:
    for text in (b"{}", b'{"nccl_version": 1}', b'{"timestamp": "x", "event": "y"}', b"[", b""):
        assert not RasDocument.recognises(text)


def test_a_large_report_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_report, "MAX_BYTES", 1 << 20)
    reports, error = read(b" " * (1 << 21))
    assert reports == []
    assert error
    assert "more than 1 MiB" in error


def test_deep_nesting_is_an_error() -> None:
    assert read(b'{"communicators": ' + b"[" * 100_000)[1]
    assert read(b"{" * 100_000)[1]


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    RasDocument.recognises(data)
    read(data)
    read(b'{"nccl_version": "2", "communicators": [' + data)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner)),
    max_leaves=5,
)


@given(JSON, st.data())
def test_any_value_in_place_of_the_right_one(value: Any, data: st.DataObject) -> None:
    values = told([rank(0), rank(1)], [missing(2)])
    places: list[Any] = [values]
    for place in places:
        inner = place.values() if isinstance(place, dict) else place
        places += [each for each in inner if isinstance(each, dict | list)]
    place = data.draw(st.sampled_from(places))
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    if keys:
        place[data.draw(st.sampled_from(keys))] = value
    read(json.dumps(values).encode())


def test_lines_full_of_quotes_are_looked_at_once() -> None:
    read_lines(['"nccl_version": 1', '"' + '\\"' * 32_768, '"' * 65_536, "{" * 65_536])


@pytest.mark.parametrize("label", ["0: ", " 12: ", "[rank3]: ", "elm1: ", "[3] "])
def test_reports_behind_labels_of_launchers(label: str) -> None:
    text = json.dumps(told([rank(0), rank(1)]), indent=2)
    peeler = Peeler("job.log")
    reader, evidence = RasJsonReader(), LogEvidence()
    raws = [f"{label}{line}".encode() for line in ["starting", *text.splitlines()]]
    lines = [line for number, raw in enumerate(raws, 1) for line in peeler.feed(raw, number)]
    for line in [*lines, *peeler.finish()]:
        reader.read(line, [needle for needle in reader.needles if needle in line.text.encode()])
    reader.finish(evidence)
    assert [found.largest for found in evidence.ras] == [4]
