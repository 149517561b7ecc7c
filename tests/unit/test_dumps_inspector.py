import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.log import InspectorRecord, LogEvidence
from ncdiag.model.place import Place
from ncdiag.read import inspector
from ncdiag.read.inspector import InspectorReader
from ncdiag.read.line import Line


def record(rank: int = 1, size: int = 1 << 20, **perf: Any) -> dict[str, Any]:
    return {
        "header": {"id": "0xfeed", "comm_name": "dp", "rank": rank, "n_ranks": 16, "nnodes": 2},
        "metadata": {
            "inspector_output_format_version": "v4.0",
            "git_rev": "x",
            "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": 1_790_000_000_000_000,
            "hostname": "gpu-a",
            "pid": 77,
        },
        "coll_perf": {
            "coll": "AllReduce",
            "coll_sn": 5,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": 40,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 20.0,
            "coll_busbw_gbs": 36.5,
            **perf,
        },
    }


def read(texts: Iterable[str]) -> list[InspectorRecord]:
    reader = InspectorReader()
    for number, text in enumerate(texts, 1):
        hits = [needle for needle in reader.needles if needle in text.encode(errors="replace")]
        if hits:
            reader.read(Line(text=text, place=Place("i", number)), hits)
    evidence = LogEvidence()
    reader.finish(evidence)
    assert reader.kinds == ({"inspector"} if evidence.inspector else set())
    return evidence.inspector


def test_equal_operations_are_summed_up() -> None:
    lines = [
        record(),
        record(coll_exec_time_us=60.5, coll_busbw_gbs=33.5),
        record(size=(1 << 21) - 1),
        record(size=1 << 21),
        record(rank=2),
        record(coll="AllGather"),
    ]
    sums = read(json.dumps(line) for line in lines)
    assert [(s.op, s.rank, s.size, s.count) for s in sums] == [
        ("AllReduce", 1, 1 << 20, 3),
        ("AllReduce", 1, 1 << 21, 1),
        ("AllReduce", 2, 1 << 20, 1),
        ("AllGather", 1, 1 << 20, 1),
    ]
    first = sums[0]
    assert (first.host, first.pid, first.comm_id, first.ranks) == ("gpu-a", "77", "0xfeed", 16)
    assert first.mean_time_us == pytest.approx(140.5 / 3)
    assert first.mean_busbw_gb_per_s == pytest.approx(106.5 / 3)


def test_transfers_are_read_and_wrappers_ignored() -> None:
    line = record()
    del line["coll_perf"]
    line["p2p_perf"] = {
        "p2p": "Send",
        "p2p_sn": 1,
        "p2p_peer": 3,
        "p2p_msg_size_bytes": 0,
        "p2p_exec_time_us": 4,
        "p2p_busbw_gbs": 1.5,
    }
    (only,) = read(["12: " + json.dumps(line) + "\r"])
    assert (only.op, only.size, only.mean_busbw_gb_per_s) == ("Send", 0, 1.5)


def test_lines_that_are_cut_or_other_tell_nothing() -> None:
    whole = json.dumps(record())
    assert read(whole[:end] for end in range(len(whole))) == []
    assert read(['{"coll_perf": {"coll": "x"}}', '"coll_perf" {', '}"coll_perf"{']) == []
    assert read([json.dumps(record(rank=-1)), json.dumps(record(size=-5))]) == []


def test_sums_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspector, "MAX_SUMS", 10)
    sums = read(json.dumps(record(rank=n)) for n in [*range(50), 3])
    assert len(sums) == 10
    assert sums[3].count == 2


@given(st.text(max_size=200), st.integers(0, 600))
def test_any_text(text: str, at: int) -> None:
    whole = json.dumps(record())
    read([text + '"coll_perf"', whole[:at] + text + whole[at:], '{"coll_perf":' + "[" * 3000])
