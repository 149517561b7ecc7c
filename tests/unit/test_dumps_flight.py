import json
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.log import FlightDump, LogEvidence
from ncdiag.read.flight import FlightDocument, document, schema
from ncdiag.read.flight.schema import rank_of

ENTRY = {
    "record_id": 4,
    "pg_id": 1,
    "process_group": ("tp0", "tensor"),
    "collective_seq_id": 9,
    "p2p_seq_id": 2,
    "op_id": 11,
    "profiling_name": "nccl:all_reduce",
    "time_created_ns": 1_800_000_000_000_000_000,
    "duration_ms": 1.5,
    "input_sizes": [[3, 4]],
    "output_sizes": [[3, 4]],
    "input_dtypes": ["BFloat16"],
    "output_dtypes": ["BFloat16"],
    "state": "started",
    "time_discovered_started_ns": 1_800_000_000_000_000_100,
    "time_discovered_completed_ns": None,
    "retired": False,
    "timeout_ms": 600_000,
    "is_p2p": False,
    "frames": [{"name": "step", "filename": "/app/train.py", "line": 12}],
}
DUMP = {
    "version": "2.10",
    "comm_lib_version": "2.28.9",
    "pg_config": {"tp0": {"name": "tp0", "desc": "tensor", "ranks": "[4, 5, 6]"}},
    "pg_status": {
        "1": {
            "last_enqueued_collective": 9,
            "last_started_collective": 9,
            "last_completed_collective": 8,
        }
    },
    "entries": [ENTRY],
}


def read(data: bytes, path: str = "/d/nccl_trace_rank_5", piece: int = 0) -> FlightDocument:
    reader = FlightDocument(path)
    for start in range(0, len(data), piece or max(len(data), 1)):
        reader.feed(data[start : start + (piece or len(data))])
    return reader


def dump_of(data: bytes, path: str = "/d/nccl_trace_rank_5", piece: int = 0) -> FlightDump:
    evidence = LogEvidence()
    reader = read(data, path, piece)
    reader.finish(evidence)
    assert reader.error is None
    return evidence.dumps[0]


def error_of(data: bytes) -> str:
    evidence = LogEvidence()
    reader = read(data)
    reader.finish(evidence)
    assert reader.error
    assert not evidence.dumps
    return reader.error


def as_json(values: Any) -> bytes:
    """JSON has some numbers as text, no frames and no None."""
    values = json.loads(json.dumps(values))
    for status in values.get("pg_status", {}).values():
        status.update({key: str(number) for key, number in status.items()})
    for entry in values.get("entries", ()):
        entry.pop("frames", None)
        entry.update({key: 0 for key, value in entry.items() if value is None})
    return json.dumps(values).encode()


FORMS = [
    *(pytest.param(pickle.dumps(DUMP, n), id=f"pickle{n}") for n in range(6)),
    pytest.param(as_json(DUMP), id="json"),
    pytest.param(json.dumps(json.loads(as_json(DUMP)), indent=2).encode(), id="indented"),
]


@pytest.mark.parametrize("data", FORMS)
def test_pickle_and_json_say_the_same(data: bytes) -> None:
    assert FlightDocument.recognises(data[:4096])
    dump = dump_of(data)
    assert (dump.rank, dump.version, dump.library_version) == (5, "2.10", "2.28.9")
    assert dump.groups == {"tp0": ("tensor", (4, 5, 6))}
    assert dump.status == {"1": (9, 9, 8)}
    (entry,) = dump.entries
    assert (entry.group, entry.group_id, entry.collective_seq, entry.p2p_seq) == ("tp0", "1", 9, 2)
    assert (entry.name, entry.state, entry.is_p2p) == ("nccl:all_reduce", "started", False)
    assert entry.input_sizes == ((3, 4),)
    assert entry.output_types == ("BFloat16",)
    assert entry.completed_ns is None
    assert entry.timeout_ms == 600_000
    assert entry.frames in ((), ("step at /app/train.py:12",))


@pytest.mark.parametrize("data", FORMS)
@pytest.mark.parametrize("piece", [1, 7])
def test_it_may_come_in_pieces_of_any_size(data: bytes, piece: int) -> None:
    assert dump_of(data, piece=piece) == dump_of(data)


@pytest.mark.parametrize("data", FORMS)
def test_a_cut_dump_is_an_error_and_no_dump(data: bytes) -> None:
    for end in range(1, len(data)):
        message = error_of(data[:end])
        assert message.startswith("flight-recorder dump cannot be read: ")
        assert "\n" not in message


def test_older_versions_lack_keys() -> None:
    old = {"version": "2.1", "entries": [{"record_id": 1, "pg_id": 0, "seq_id": 7, "state": "x"}]}
    dump = dump_of(pickle.dumps(old, 2))
    assert dump.groups == {}
    assert dump.status == {}
    assert dump.entries[0].group == "0"
    assert dump.entries[0].collective_seq == 7
    assert dump_of(b'{"pg_config": {}, "version": "2.5"}').entries == []


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("/var/nccl_trace_rank_3", 3),
        ("comm_lib_trace_rank_12", 12),
        ("/a/my-prefix0017", 17),
        ("node7_rank_21", 21),
        ("node7_rank21.json", 21),
        ("gpu-b-5.pkl.zst", 5),
        ("rank_2_1764450000.pickle", 2),
        ("/runs/rank_9/trace.json", 9),
        ("/runs/job9/trace.json", None),
        ("trace", None),
        ("trace_12345678901234567890", None),
        ("C:\\dumps\\trace_rank_4", 4),
    ],
)
def test_the_rank_is_in_the_file_s_name(path: str, rank: int | None) -> None:
    assert rank_of(path) == rank


def test_what_is_long_completed_is_left_out() -> None:
    entries = [
        ENTRY | {"record_id": n, "collective_seq_id": n, "state": "completed"} for n in range(500)
    ]
    entries += [ENTRY | {"record_id": n, "collective_seq_id": n} for n in range(500, 700)]
    dump = dump_of(pickle.dumps({"entries": entries[::-1]}, 4))
    numbers = [entry.collective_seq for entry in dump.entries]
    assert numbers == list(range(500 - schema.KEPT_COMPLETED, 700))
    assert dump.whole


def test_values_of_other_types_are_absent() -> None:
    odd = {
        "version": 3,
        "pg_config": {"a": 1, "b": {"ranks": [1, "x", 2.5, True, 2]}},
        "pg_status": {"0": {"last_enqueued_collective": "many"}, "1": []},
        "entries": [
            None,
            {
                "process_group": [],
                "collective_seq_id": 10**30,
                "state": 5,
                "input_sizes": [3, [None, 4]],
                "input_dtypes": "Float",
                "frames": [1, {"name": 2}],
            },
        ],
    }
    dump = dump_of(pickle.dumps(odd, 4))
    assert dump.version is None
    assert dump.groups == {"b": ("", (1, 2))}
    assert dump.status == {"0": (-1, -1, -1)}
    (entry,) = dump.entries
    assert entry.collective_seq == -1
    assert entry.input_sizes == ((), (4,))


def test_other_files_are_no_dumps() -> None:
    for head in (
        b"",
        b"{",
        b'{"a": 1}',
        b"[1]",
        b"\x89PNG",
        b"\x1f\x8b\x08",
        b"plain text",
        b"\x80\x02}",
    ):
        assert not FlightDocument.recognises(head)
    assert "none of its keys" in error_of(pickle.dumps({"weights": [1.0]}, 4))
    assert "none of its keys" in error_of(pickle.dumps([1], 4))


def test_a_large_file_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_BYTES", 1 << 20)
    reader = FlightDocument("trace_rank_0")
    for _ in range(40):
        reader.feed(bytes(1 << 15))
    reader.finish(LogEvidence())
    assert reader.truncated
    assert reader.error == "flight-recorder dump of more than 1 MiB: not read"
    assert not reader._pieces.whole()


def test_json_of_too_many_values_and_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "recursion" in error_of(b'{"entries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    monkeypatch.setattr(document, "MAX_JSON_VALUES", 100)
    assert "more than 100 values" in error_of(b'{"entries": [' + b"0," * 200 + b"0]}")


@given(st.binary(max_size=300), st.sampled_from([b"", b'{"pg_config":', b"\x80\x02", b"(dp0\n"]))
def test_any_bytes_give_a_dump_or_one_line(data: bytes, start: bytes) -> None:
    evidence = LogEvidence()
    reader = read(start + data)
    FlightDocument.recognises(data)
    reader.finish(evidence)
    assert bool(evidence.dumps) == (reader.error is None)
    assert "\n" not in (reader.error or "")


@given(st.recursive(st.one_of(st.none(), st.integers(), st.text(max_size=5)), st.lists), st.data())
def test_any_values_in_place_of_the_right_ones(value: Any, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(ENTRY)))
    top = data.draw(st.sampled_from(sorted(DUMP)))
    for values in (DUMP | {"entries": [ENTRY | {key: value}]}, DUMP | {top: value}):
        dump = dump_of(pickle.dumps(values, 4))
        assert msgspec.json.encode(dump)
