from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import msgspec

from ncdiag.model.finding import (
    JobShape,
    Library,
    Network,
    Postmortem,
    PostmortemVerdict,
)
from ncdiag.report.postmortem import json_report

MakeCase = Callable[..., tuple[Postmortem, object]]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A record of the contract: no key more, no key less."""


class Input(Strict):
    path: str
    bytes: int
    lines: int
    kinds: list[str]
    truncated: bool
    error: str | None


class LibraryPart(Strict):
    name: Literal["NCCL", "RCCL"] | None
    versions: list[str]


class Job(Strict):
    ranks: int | None
    nodes: int | None
    hosts: list[str]


class NetworkPart(Strict):
    name: str | None
    transports: list[str]
    nics: list[str]
    gdr: Literal["on", "off", "mixed", "unknown"]
    nvls: Literal["on", "off", "unknown"]
    sharp: Literal["on", "off", "unknown"]


class Benchmark(Strict):
    test: str | None
    ranks: int | None
    avg_busbw_gb_per_s: float | None
    peak_busbw_gb_per_s: float | None
    out_of_bounds: int | None
    complete: bool


class SuspectPart(Strict):
    kind: Literal["host", "rank", "gpu", "nic", "link", "switch", "config", "application"]
    name: str


class Seen(Strict):
    path: str
    line: int
    time: str | None


class Quoted(Strict):
    path: str
    line: int
    text: str


class FindingPart(Strict):
    class_: str = msgspec.field(name="class")
    role: Literal["root", "consequence", "warning"]
    severity: Literal["fatal", "degraded", "info"]
    confidence: float
    suspects: list[SuspectPart]
    victims: list[str]
    ranks: list[int]
    attributes: dict[str, str]
    count: int
    first_seen: Seen | None
    evidence: list[Quoted]
    explanation: str
    actions: list[str]


class Isolated(Strict):
    host: str
    confidence: float
    because: str


class Document(Strict):
    schema: Literal["ncdiag/postmortem/1"]
    verdict: Literal["ok", "findings", "inconclusive"]
    inputs: list[Input]
    library: LibraryPart
    job: Job
    network: NetworkPart
    benchmarks: list[Benchmark]
    findings: list[FindingPart]
    isolate: list[Isolated]


def read(postmortem: Postmortem) -> Document:
    return msgspec.json.decode(json_report.render(postmortem), type=Document)


def test_a_post_mortem_has_the_keys_of_the_contract_and_no_others(make_case: MakeCase) -> None:
    document = read(make_case(3)[0])
    assert [one.class_ for one in document.findings] == [
        "ib_port_error",
        "ib_completion_error",
        "host_config_warning",
    ]
    first = document.findings[0]
    assert first.suspects == [SuspectPart("host", "gpu003"), SuspectPart("nic", "mlx5_0")]
    assert first.attributes == {"event": "port error", "hca": "mlx5_0"}
    assert first.first_seen == Seen("logs/gpu003.log", 400, "310s")
    assert first.actions[0].startswith("Check the port now and what it counted: ibstat mlx5_0;")
    assert document.isolate == [Isolated("gpu003", 0.951, "ib_port_error on mlx5_0")]
    assert document.benchmarks[0].avg_busbw_gb_per_s == 12.345679
    assert document.benchmarks[0].peak_busbw_gb_per_s is None


def test_what_is_not_known_is_null_or_unknown() -> None:
    empty = Postmortem(
        verdict=PostmortemVerdict.INCONCLUSIVE,
        inputs=[],
        library=Library(),
        job=JobShape(),
        network=Network(),
        benchmarks=[],
        findings=[],
        isolate=[],
    )
    document = read(empty)
    assert (document.library.name, document.job.ranks, document.network.name) == (None, None, None)
    assert document.network.gdr == "unknown"
    assert document.findings == []


def test_control_characters_and_broken_text_come_out_readable(make_case: MakeCase) -> None:
    postmortem, _ = make_case(2)
    first = replace(postmortem.findings[0], attributes={"peer": "a\x1b[2J\u202e\udc80b"})
    data = json_report.render(replace(postmortem, findings=[first]))
    assert read(replace(postmortem, findings=[first])).findings[0].attributes == {
        "peer": r"a\x1b[2J\u202e\udc80b"
    }
    assert b"\x1b" not in data


def test_figures_that_are_no_numbers_are_null(make_case: MakeCase) -> None:
    postmortem, _ = make_case(2)
    odd = replace(
        postmortem.benchmarks[0],
        avg_busbw_gb_per_s=float("nan"),
        peak_busbw_gb_per_s=float("inf"),
    )
    document = read(replace(postmortem, benchmarks=[odd]))
    assert document.benchmarks[0].avg_busbw_gb_per_s is None
    assert document.benchmarks[0].peak_busbw_gb_per_s is None
