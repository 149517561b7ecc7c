import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from health_reports import facts

from ncdiag.cluster.answers import encode_answer
from ncdiag.cluster.fleet import CallError
from ncdiag.cluster.launchers import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.health import fleet_health
from ncdiag.health.collect import HealthTask
from ncdiag.health.fleet_health import ask_by_launcher, ask_fleet
from ncdiag.health.tell_health import HealthAnswer, HealthQuestion, answer, decode_answer
from ncdiag.model.host import Host
from ncdiag.model.json_text import encode

EXAMPLES = Path(__file__).parents[2] / "examples/health"
HOSTS = [Host(name=name, address=name, root=f"/trees/{name}") for name in ("h1", "h2", "h3")]


class Saying:
    """A launcher of commands that print what a host answers, and end."""

    name = "saying"
    start_ends = StartEnds.READY
    starts_at_a_time = 4
    options = LauncherOptions(python="python")

    def __init__(self, **said: bytes) -> None:
        self._said = said

    def unavailable(self) -> str | None:
        return None

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        assert job.stdin.endswith(b"\n")
        return [
            Launch(
                argv=("printf", "%s", self._said.get(host.name, b"").decode()), hosts=(host.name,)
            )
            for host in hosts
        ]


def line(host: str, told: HealthAnswer) -> bytes:
    return encode_answer(host, encode(told))


def test_answers_are_told_apart_from_what_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_health.time, "time", lambda: 1000.0)
    good = HealthAnswer(
        facts=facts("a", taken_s=990.0), before=facts("a"), since_start_s=0.5, until_sent_s=0.25
    )
    launcher = Saying(
        h1=line("h1", good), h2=line("h2", HealthAnswer(error="no \x1bfolder")), h3=b"hello\n"
    )
    readings = ask_by_launcher(HOSTS, launcher, lambda *_: None, interval_s=1.0)
    assert list(readings.facts) == list(readings.before) == ["h1"]
    assert readings.errors["h2"] == "no \\x1bfolder"
    assert "exit code 0 and said nothing" in readings.errors["h3"]


@pytest.mark.parametrize(
    ("asked_s", "since_start_s", "bounds"),
    [
        (999.0, 0.5, (999.5, 999.75)),
        (900.0, 0.5, (997.75, 999.75)),  # a start that was queued says little of when it began
        (999.9, 9.0, (999.75, 999.75)),  # a host whose clock was set meanwhile
    ],
)
def test_when_facts_were_taken_is_bound_by_our_own_clock(
    asked_s: float,
    since_start_s: float,
    bounds: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hearing = fleet_health._Hearing(asked_s)
    monkeypatch.setattr(fleet_health.time, "time", lambda: 1000.0)
    told = HealthAnswer(facts=facts("a"), since_start_s=since_start_s, until_sent_s=0.25)
    assert hearing.take("h1", encode(told))
    one = hearing.facts["h1"]
    assert (one.asked_s, one.answered_s) == bounds


def test_a_host_reads_the_folder_that_the_question_gives_it() -> None:
    roots = {"h1": str(EXAMPLES / "gpu017"), "h2": "/nowhere/\x1b"}
    question = HealthQuestion(roots=roots, interval_s=0.01)
    told = answer("h1", question, time.time())
    assert told.facts
    assert told.before
    assert told.facts.hostname == "gpu017"
    assert told.since_start_s >= 0.01
    assert decode_answer(encode(told)) == told
    failed = answer("h2", question, time.time())
    assert failed.facts is None
    assert failed.error
    assert decode_answer(b'{"facts": 1}') is None


class Call:
    def __init__(self, host: str, given: bytes | CallError) -> None:
        self.host, self.given = host, given

    def result(self) -> bytes:
        if isinstance(self.given, CallError):
            raise self.given
        return self.given


class PlayedFleet:
    up = ("h1", "h2", "h4")
    unreachable: dict[str, str] = {"h3": "no route to host"}  # noqa: RUF012 - never changed

    def __init__(self) -> None:
        self.tasks: dict[str, Any] = {}

    def call(self, host: str, _function: object, payload: bytes, *, timeout_s: float) -> Call:
        self.tasks[host] = (msgspec.json.decode(payload, type=HealthTask), timeout_s)
        given = {"h1": encode(facts("a")), "h2": CallError("lost: killed"), "h4": b"{}"}
        return Call(host, given[host])

    @staticmethod
    def as_completed(calls: Iterable[Call]) -> Iterator[Call]:
        return iter(calls)


def test_a_fleet_that_is_up_is_asked_and_each_host_has_facts_or_an_error() -> None:
    fleet: Any = PlayedFleet()
    hosts = [*HOSTS, Host(name="h4", address="h4"), Host(name="h5", address="h5")]
    told, errors = ask_fleet(fleet, hosts, timeout_s=20.0)
    assert list(told) == ["h1"]
    assert told["h1"].asked_s is not None
    assert told["h1"].answered_s is not None
    assert told["h1"].asked_s <= told["h1"].answered_s
    assert errors == {
        "h2": "lost: killed",
        "h3": "no route to host",
        "h4": "it answered something that is no answer: is it another version of ncdiag?",
        "h5": "it did not come up",
    }
    assert fleet.tasks["h1"] == (HealthTask(root="/trees/h1"), 20.0)
    assert fleet.tasks["h4"] == (HealthTask(), 20.0)
