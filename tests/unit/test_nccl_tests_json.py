"""Reports that nccl-tests write as JSON, of each version, whole and cut short."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.diagnose.postmortem.benchmarks import benchmarks
from ncdiag.diagnose.postmortem.job import job_shape
from ncdiag.model.log import LogEvidence
from ncdiag.read.document import HEAD_BYTES
from ncdiag.read.nccl_tests.cut_json import mended
from ncdiag.read.nccl_tests.json_report import JsonReport


def half(busbw: object, wrong: object = 0) -> dict[str, object]:
    return {"time": 12.5, "alg_bw": 1.0, "bus_bw": busbw, "nwrong": wrong}


def device(rank: int, host: str) -> dict[str, object]:
    return {
        "rank": rank,
        "group": 0,
        "pid": 70 + rank,
        "hostname": host,
        "device": 0,
        "device_hex": "[0000:1b:00]",
        "device_info": "GPU",
    }


REPORT: dict[str, object] = {
    "version": 3,
    "start_time": "2026-02-03 04:05:06",
    "args": ["./build/all_reduce_perf", "-b", "8"],
    "env": [
        "NCCL_DEBUG=INFO",
        "NCCL_SOCKET_IFNAME=eth0",
        "HOME=/home/somebody",
        "AWS_SECRET_ACCESS_KEY=abcdef",
        "OMPI_MCA_mytoken=1",
        "CUDA_AUTH_TOKEN=abcdef",
    ],
    "nccl_version": 23007,
    "config": {
        "nthreads": 1,
        "ngpus": 8,
        "blocking_collectives": "false",
        "devices": [device(0, "oak1"), device(8, "oak2")],
    },
    "results": [
        {
            "size": 8,
            "count": 2,
            "type": "float",
            "redop": "sum",
            "root": "    -1",
            "out_of_place": half(1.5),
            "in_place": half("nan", None),
        },
        {
            "size": 16,
            "count": 4,
            "type": "float",
            "redop": "sum",
            "root": "    -1",
            "out_of_place": {"cpu_time": 3.5, "alg_bw": 1.0, "bus_bw": 4.5, "nwrong": 0},
            "in_place": None,
        },
    ],
    "out_of_bounds": {"count": 0, "okay": "true"},
    "average_bus_bandwidth": {"bandwidth": 3.0, "okay": "unchecked"},
    "errors": [""],
    "end_time": "2026-02-03 04:06:06",
}


def read(data: bytes, step: int = 1 << 20) -> tuple[JsonReport, LogEvidence]:
    report, evidence = JsonReport("r.json"), LogEvidence()
    for at in range(0, len(data), step):
        report.feed(data[at : at + step])
    report.finish(evidence)
    return report, evidence


def test_a_whole_report() -> None:
    data = json.dumps(REPORT, indent=2).encode()
    assert JsonReport.recognises(data[:HEAD_BYTES])
    report, evidence = read(data, 100)
    assert (report.error, report.truncated) == (None, False)
    (run,) = evidence.benchmarks
    assert run.library_version == "2.30.7"
    assert run.rows[0].in_place_busbw is None
    assert run.rows[0].in_place_wrong is None
    assert [rank.host for rank in run.ranks] == ["oak1", "oak2"]
    (summary,) = benchmarks(evidence)
    assert summary.test == "all_reduce_perf"
    assert summary.ranks == 16
    assert (summary.avg_busbw_gb_per_s, summary.peak_busbw_gb_per_s) == (3.0, 4.5)
    assert (summary.out_of_bounds, summary.complete) == (0, True)
    job = job_shape(evidence)
    assert (job.ranks, job.nodes, job.hosts) == (16, 2, ("oak1", "oak2"))
    assert evidence.events == []


def test_no_secret_is_kept() -> None:
    _, evidence = read(json.dumps(REPORT).encode())
    assert evidence.benchmarks[0].environment == {
        "NCCL_DEBUG": "INFO",
        "NCCL_SOCKET_IFNAME": "eth0",
        "CUDA_AUTH_TOKEN": "[redacted]",
    }


def test_the_first_version_misspells_its_footer() -> None:
    old = {k: v for k, v in REPORT.items() if k not in {"average_bus_bandwidth", "version"}}
    old["average_bus_bandwidith"] = {"bandwidith": 2.5, "okay": "true"}
    _, evidence = read(json.dumps(old).encode())
    assert evidence.benchmarks[0].avg_busbw == 2.5
    assert evidence.benchmarks[0].complete


def test_wrong_values() -> None:
    results = [{"size": 64, "type": "half", "redop": "sum", "out_of_place": half(1.0, 3)}]
    _, evidence = read(json.dumps({**REPORT, "results": results}).encode())
    (event,) = evidence.events
    assert event.class_name == "data_corruption"
    assert event.attributes == {"size": "64", "wrong": "3"}


def test_values_out_of_bounds() -> None:
    bounds = {"count": 4, "okay": "false"}
    _, evidence = read(json.dumps({**REPORT, "out_of_bounds": bounds}).encode())
    assert [event.attributes for event in evidence.events] == [{"wrong": "4"}]


def test_what_the_library_said_last() -> None:
    errors = ["NET/IB : Got completion from peer 10.1.2.3<4> with error 12, opcode 1, len 0"]
    _, evidence = read(json.dumps({**REPORT, "errors": errors}).encode())
    assert evidence.benchmarks[0].failed


def test_a_report_cut_anywhere() -> None:
    data = json.dumps(REPORT, indent=1).encode()
    for cut in range(data.index(b'"nccl_version"') + 30, len(data) - 1, 3):
        report, evidence = read(data[:cut])
        assert report.error is None
        assert report.truncated
        (run,) = evidence.benchmarks
        assert run.test == "all_reduce_perf"
        assert len(run.rows) <= 2


@pytest.mark.parametrize("head", [b"", b"{}", b'{"version": 3}', b"[1]", b'{"pg_config": {}}'])
def test_other_documents_are_not_recognised(head: bytes) -> None:
    assert not JsonReport.recognises(head)


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        (b'{"a": [1, 2, {"b": "x', b'{"a": [1, 2, {}]}'),
        (b'{"a": 1, "b"', b'{"a": 1}'),
        (b'{"a": "}],', b"{}"),
        (b'{"a": {"b": 1}', b'{"a": {"b": 1}}'),
        (b"[[[", b"[[[]]]"),
        (b'{"a\\"b": 1,', b'{"a\\"b": 1}'),
        (b"]", b""),
    ],
)
def test_mending(cut: bytes, whole: bytes) -> None:
    assert mended(cut) == whole


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff{]", b"null"]
)
def test_damaged_documents_give_no_traceback(data: bytes) -> None:
    report, evidence = read(data)
    assert report.error or evidence.benchmarks


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "size",
                    "type",
                    "out_of_place",
                    "bus_bw",
                    "nwrong",
                    "devices",
                    "rank",
                    "count",
                    "okay",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(REPORT)), json_values), st.binary(max_size=40))
def test_any_values_are_read(values: dict[str, object], noise: bytes) -> None:
    read(json.dumps({**REPORT, **values}).encode())
    read(json.dumps(values).encode() + noise)
    read(noise)
