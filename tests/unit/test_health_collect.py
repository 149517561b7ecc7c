"""Collecting the facts of a host: deadlines of the sources, and joining what they told."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ncdiag.health import collect, collector
from ncdiag.health.collect import (
    DEFAULT_LIMIT_S,
    STARVED_S,
    HealthTask,
    collect_for_driver,
    collect_health,
    decode_facts,
    encode_task,
    merged,
)
from ncdiag.health.collector import CollectorTask, SourceLine, ask_sources
from ncdiag.health.sources import found as gives
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.table import SOURCES, SourceRow
from ncdiag.health.starvation import waited_for_cpu_s
from ncdiag.model.errors import UsageError
from ncdiag.model.health import GpuHealth, HealthFacts, Source, SourceState
from ncdiag.model.json_text import encode

Ask = Callable[[HostRoot], Found]


def asked(
    monkeypatch: pytest.MonkeyPatch,
    collectors: Mapping[Source, Ask],
    deadlines: Mapping[Source, float] | None = None,
    until_s: float = 60.0,
) -> dict[Source, SourceLine]:
    """The line of each source, where ``collectors`` stand in for the real ones."""
    rows = {
        source: SourceRow(f"{__name__}:{source}", (deadlines or {}).get(source, 60.0))
        for source in collectors
    }
    by_name = {f"{__name__}:{source}": ask for source, ask in collectors.items()}
    monkeypatch.setattr(collector, "_collect", lambda row, root: by_name[row.collect](root))
    lines: list[bytes] = []
    task = CollectorTask(
        root="/", sources=tuple(collectors), until_s=time.monotonic() + until_s, starved_s=0
    )
    ask_sources(task, lines.append, rows)
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    told = [msgspec.json.decode(line, type=SourceLine) for line in lines]
    assert len(told) == len({line.source for line in told}) == len(collectors)
    return {line.source: line for line in told}


def test_a_source_that_hangs_is_late_and_the_others_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = threading.Event()

    def hang(_: HostRoot) -> Found:
        never.wait()
        return gives.read()

    lines = asked(
        monkeypatch,
        {Source.PROC: lambda _: gives.read(load=1.5), Source.NVIDIA_SMI: hang},
        {Source.NVIDIA_SMI: 0.2},
    )
    never.set()
    assert lines[Source.PROC].state is SourceState.READ
    assert lines[Source.PROC].facts == {"load": msgspec.Raw(b"1.5")}
    late = lines[Source.NVIDIA_SMI]
    assert (late.state, late.facts) == (SourceState.TIMED_OUT, {})
    assert (late.reason or "").startswith("no answer within 0.")


def test_the_limit_of_all_ends_a_source_before_its_own_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = threading.Event()

    def hang(_: HostRoot) -> Found:
        never.wait()
        return gives.read()

    lines = asked(monkeypatch, {Source.PROC: hang, Source.CLOCK: hang}, until_s=0.1)
    never.set()
    assert {line.state for line in lines.values()} == {SourceState.TIMED_OUT}


def test_a_source_that_raises_fails_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: HostRoot) -> Found:
        raise RuntimeError("first\nsecond \x1b[31m" + "x" * 1000)

    def fail_without_words(_: HostRoot) -> Found:
        raise KeyError

    lines = asked(monkeypatch, {Source.PROC: fail, Source.CLOCK: fail_without_words})
    reason = lines[Source.PROC].reason or ""
    assert lines[Source.PROC].state is SourceState.FAILED
    assert reason.startswith(r"RuntimeError: first second \x1b[31mxxx")
    assert len(reason) <= 300
    assert lines[Source.CLOCK].reason == "KeyError"


@pytest.mark.parametrize("fact", [object(), {1.5: object()}])
def test_facts_that_cannot_be_written_fail_their_source_only(
    monkeypatch: pytest.MonkeyPatch, fact: object
) -> None:
    lines = asked(
        monkeypatch,
        {Source.PROC: lambda _: gives.read(load=fact), Source.CLOCK: lambda _: gives.read(cpus=2)},
    )
    assert lines[Source.PROC].state is SourceState.FAILED
    assert lines[Source.CLOCK].state is SourceState.READ


def test_facts_without_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST_LINE_BYTES", 1 << 20)
    lines = asked(monkeypatch, {Source.PROC: lambda _: gives.read(boot_id="x" * (2 << 20))})
    assert lines[Source.PROC].reason == "it told more than 1 MiB"


def test_every_source_has_a_row_and_a_deadline_within_the_limit() -> None:
    assert set(SOURCES) == set(Source)
    assert all(0 < row.deadline_s <= 5.0 for row in SOURCES.values())


def line(source: Source, state: SourceState = SourceState.READ, **facts: Any) -> SourceLine:
    raw = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in facts.items()}
    return SourceLine(source=source, state=state, facts=raw, seconds=0.5)


def test_what_all_sources_told_is_joined(tmp_path: Path) -> None:
    facts = merged(
        HostRoot(tmp_path),
        (Source.NVML, Source.PROC, Source.MODULES),
        [
            line(Source.MODULES, versions={"driver": "1", "kernel": "6.8"}, modules=["nvidia"]),
            line(Source.NVML, versions={"driver": "2"}, gpus=[{"index": 0, "uuid": "GPU-1"}]),
        ],
        "no answer within 6 s",
    )
    assert facts.versions == {"driver": "2", "kernel": "6.8"}
    assert facts.gpus == (GpuHealth(index=0, uuid="GPU-1"),)
    assert facts.modules == ("nvidia",)
    assert facts.hostname == tmp_path.name
    assert [(one.source, one.state) for one in facts.sources] == [
        (Source.NVML, SourceState.READ),
        (Source.PROC, SourceState.TIMED_OUT),
        (Source.MODULES, SourceState.READ),
    ]


def test_a_driver_that_lists_no_gpus_is_believed(tmp_path: Path) -> None:
    lines = [line(Source.NVML, gpus=[]), line(Source.DCGM, gpus=[{"index": 0}])]
    assert merged(HostRoot(tmp_path), (Source.NVML, Source.DCGM), lines, "").gpus == ()
    without_nvml = merged(HostRoot(tmp_path), (Source.NVML, Source.DCGM), lines[1:], "")
    assert without_nvml.gpus == (GpuHealth(index=0),)


def test_a_collector_that_ends_early_is_no_silence_of_the_host(tmp_path: Path) -> None:
    why = "the collector ended before it answered"
    facts = merged(HostRoot(tmp_path), (Source.PROC,), [], why)
    reading = facts.reading(Source.PROC)
    assert reading
    assert (reading.state, reading.reason) == (SourceState.FAILED, why)


@pytest.mark.parametrize(
    "facts", [{"load": "much"}, {"no_such_fact": 1}, {"gpus": [{"index": "first"}]}]
)
def test_what_is_no_fact_fails_its_source(tmp_path: Path, facts: dict[str, Any]) -> None:
    found = merged(HostRoot(tmp_path), (Source.PROC,), [line(Source.PROC, **facts)], "")
    reading = found.reading(Source.PROC)
    assert reading
    assert reading.state is SourceState.FAILED
    assert (found.load, found.gpus) == (None, ())


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("missing", "file"):
        with pytest.raises(UsageError, match=f"{name}: no folder of a host's facts"):
            collect_health(tmp_path / name)


def test_nothing_is_started_to_ask_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert collect_health(tmp_path, sources=()).sources == ()
    (reading,) = collect_health(tmp_path, sources=(Source.PROC,)).sources
    assert reading.state is SourceState.FAILED
    assert reading.reason == "the collector cannot be started: No such file or directory"


def test_a_source_that_holds_up_three_collectors_is_asked_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[tuple[Source, ...]] = []
    is_held = True

    class Held:
        returncode = None

        def __init__(self, argv: Sequence[str], **_: object) -> None:
            asked_for.append(msgspec.json.decode(argv[-1], type=CollectorTask).sources)

        def poll(self) -> int | None:
            return None if is_held else -9

    line = encode({"source": "proc", "state": "read", "facts": {"cpus": 3}})
    monkeypatch.setattr(collect, "_held_up", [])
    monkeypatch.setattr(subprocess, "Popen", Held)
    monkeypatch.setattr(collect, "_listen", lambda *_: (line, False))
    monkeypatch.setattr(collect, "_part_with", lambda *_, **__: False)
    monkeypatch.setattr(time, "time", lambda: 1e9 + len(asked_for))
    both = (Source.NVML, Source.PROC)
    rounds = [collect_health(tmp_path, sources=both) for _ in range(4)]
    assert asked_for == [both, both, both, (Source.PROC,)]
    assert [one.sources[0].state for one in rounds] == [SourceState.TIMED_OUT] * 4
    assert rounds[3].sources[0].reason == "not asked: still held up since 2001-09-09T01:46:41Z"
    assert rounds[3].cpus == 3
    is_held = False
    collect_health(tmp_path, sources=both)
    assert asked_for[4] == both


def test_tasks_and_facts_come_through_as_json() -> None:
    task = HealthTask(root="/srv/facts", sources=(Source.PROC,))
    assert msgspec.json.decode(encode_task(task), type=HealthTask) == task
    facts = HealthFacts(hostname="n1", taken_s=1.0, gpus=(GpuHealth(index=0),))
    assert decode_facts(msgspec.json.encode(facts)) == facts
    assert decode_facts(b"{}") is None
    assert decode_facts(b"\xff") is None


def test_a_driver_gets_facts_of_the_root_it_asks_for(tmp_path: Path) -> None:
    answer = collect_for_driver(encode_task(HealthTask(root=str(tmp_path), sources=())))
    facts = decode_facts(answer)
    assert facts
    assert (facts.hostname, facts.sources) == (tmp_path.name, ())


def test_waiting_for_a_cpu_is_counted_and_unknown_for_what_is_not_there() -> None:
    assert waited_for_cpu_s(1) >= 0.0
    assert waited_for_cpu_s(2**30) == 0.0


def test_the_page_names_every_source_with_its_deadline() -> None:
    page = (Path(__file__).parents[2] / "docs/health-facts.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| .+ \| ([0-9.]+) s \|$", page, re.MULTILINE)
    assert {source: float(deadline) for source, deadline in rows} == {
        str(source): row.deadline_s for source, row in SOURCES.items()
    }
    assert f"takes {DEFAULT_LIMIT_S:g} s at\nmost" in page
    assert f"up to {STARVED_S:g} s longer" in page
