"""Evidence made by hand: a line a message, without a log."""

from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.model.benchmark import Benchmark, TableRank, TableRow
from ncdiag.model.finding import Finding, FindingClass, Postmortem
from ncdiag.model.log import (
    CommunicatorState,
    Event,
    InputSummary,
    LogEvidence,
    NcclProcess,
    Speaker,
)
from ncdiag.model.place import Clock, Moment, Place

PATH = "job.log"


class Bench:
    """Makes records whose lines are counted on, so that later ones stand later."""

    def __init__(self) -> None:
        self._lines = count(1)

    def place(self, at: float | None = None, path: str = PATH) -> Place:
        """The next line; ``at`` seconds on a wall clock."""
        time = None if at is None else Moment(f"second {at:g}", at, Clock.WALL)
        return Place(path, next(self._lines), time)

    def event(
        self,
        class_: str,
        host: str | None = None,
        *,
        pid: str | None = None,
        rank: int | None = None,
        label: str | None = None,
        address: str | None = None,
        at: float | None = None,
        until: float | None = None,
        path: str = PATH,
        details: dict[str, str] | None = None,
        ranks: tuple[int, ...] = (),
        role: str | None = None,
        severity: str | None = None,
        times: int = 1,
        **attributes: str,
    ) -> Event:
        """A message of ``class_``; further words are attributes."""
        place = self.place(at, path)
        return Event(
            class_name=FindingClass(class_),
            form="made",
            place=place,
            text=f"{class_} {attributes}",
            speaker=Speaker(host=host, pid=pid, rank=rank, label=label, address=address),
            attributes=attributes,
            details=details or {},
            ranks=ranks,
            role=role,
            severity=severity,
            count=times,
            last=None if until is None else self.place(until, path),
        )

    def communicator(self, rank: int, ranks: int, **fields: Any) -> CommunicatorState:
        """A membership; ``started=True`` and the like stand for the next line."""
        for name in ("started", "completed", "progressed", "ended", "last_call"):
            if fields.get(name) is True:
                fields[name] = self.place()
        fields.setdefault("comm_id", "0xabc")
        return CommunicatorState(pointer=f"0x{rank:x}", rank=rank, ranks=ranks, **fields)

    def process(self, host: str, pid: str = "1", **fields: Any) -> NcclProcess:
        """A process that speaks."""
        fields.setdefault("first", self.place())
        return NcclProcess(host=host, pid=pid, **fields)

    def table(
        self,
        busbw: list[float] | None = None,
        *,
        hosts: tuple[str, ...] = ("a", "b"),
        complete: bool = True,
        in_place: list[float] | None = None,
        wrong: dict[int, float] | None = None,
        times: list[float] | None = None,
        **fields: Any,
    ) -> Benchmark:
        """A run of nccl-tests: one bandwidth a size, from 1 KiB on, doubling."""
        place = self.place()
        rows = [
            TableRow(
                size=1024 << number,
                type="float",
                redop="sum",
                out_of_place_busbw=value,
                in_place_busbw=None if in_place is None else in_place[number],
                out_of_place_wrong=(wrong or {}).get(number, 0.0),
                in_place_wrong=None,
                place=self.place(None if times is None else times[number]),
            )
            for number, value in enumerate(busbw or [])
        ]
        ranks = [
            TableRank(rank=n, host=host, pid=str(n), device="0", bus_id="0000:1b:00", name="GPU")
            for n, host in enumerate(hosts)
        ]
        fields.setdefault("heading", place)
        fields.setdefault("test", "all_reduce_perf")
        return Benchmark(place=place, ranks=ranks, rows=rows, complete=complete, **fields)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def post() -> Callable[..., Postmortem]:
    """Diagnoses events and, by their fields' names, other records."""

    def answer(*events: Event, names: dict[str, str] | None = None, **fields: Any) -> Postmortem:
        fields.setdefault("inputs", [InputSummary(path=PATH, kinds=["nccl"])])
        return diagnose(LogEvidence(events=list(events), **fields), names or {})

    return answer


@pytest.fixture
def names() -> SimpleNamespace:
    """Reads an answer in few words."""

    def of(answer: Postmortem, class_: str) -> Finding:
        return next(f for f in answer.findings if f.class_ == class_)

    return SimpleNamespace(
        of=of,
        roots=lambda answer: [str(f.class_) for f in answer.findings if f.role == "root"],
        classes=lambda answer: [str(f.class_) for f in answer.findings],
        isolated=lambda answer: [entry.host for entry in answer.isolate],
        suspects=lambda finding: [suspect.name for suspect in finding.suspects],
    )
