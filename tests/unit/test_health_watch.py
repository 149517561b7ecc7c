import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from health_reports import HOT, PORT, XID, facts, host_health, report, silent
from rich.console import Console

from ncdiag.cli.health import watch
from ncdiag.cli.health.watch import Watch, changes
from ncdiag.model.errors import UsageError
from ncdiag.model.health import HealthFacts, HealthReport, Severity

Look = Callable[[Mapping[str, HealthFacts]], HealthReport]


class Clock:
    """Time that passes only where somebody sleeps, or works."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    return clock


def watched(look: Look, rounds: int, metrics: Path | None = None) -> tuple[str, str]:
    """What it says, and what it complains of, without the times."""
    out, err = io.StringIO(), io.StringIO()
    consoles = [Console(file=stream, width=200, color_system=None) for stream in (out, err)]
    Watch(look, 60.0, metrics, *consoles).run(rounds)
    said, complained = (
        "".join(line[22:] + "\n" for line in stream.getvalue().splitlines())
        for stream in (out, err)
    )
    return said, complained


def test_others_are_told_when_the_verdict_changes(clock: Clock) -> None:
    sick, well = report(host_health("a", XID)), report(host_health("a"))
    look, _ = playing(well, well, sick, sick, well)
    told: list[HealthReport] = []
    consoles = [Console(file=io.StringIO()) for _ in range(2)]
    Watch(look, 60.0, None, *consoles, announce=told.append).run(5)
    assert told == [well, sick, well]
    assert len(clock.slept) == 4


def playing(*rounds: HealthReport | Exception) -> tuple[Look, list[dict[str, HealthFacts]]]:
    """Each round in turn; with what each was given of the rounds before."""
    left: Iterator[HealthReport | Exception] = iter(rounds)
    given: list[dict[str, HealthFacts]] = []

    def look(earlier: Mapping[str, HealthFacts]) -> HealthReport:
        given.append(dict(earlier))
        one = next(left)
        if isinstance(one, Exception):
            raise one
        return one

    return look, given


def test_only_changes_are_told(clock: Clock) -> None:
    bad = report(host_health("gpu003", PORT))
    look, _ = playing(report(host_health("gpu003")), bad, bad, report(host_health("gpu003")))
    said, complained = watched(look, 4)
    assert complained == ""
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "HEALTHY",
        "fault     gpu003 mlx5_1 ib_port_down",
        "FAULTY",
        "gone     gpu003 mlx5_1 ib_port_down",
        "HEALTHY",
    ]
    assert clock.slept == [60.0, 60.0, 60.0]


def test_a_finding_that_weighs_more_than_before_is_told_again() -> None:
    worse = replace(PORT, severity=Severity.FATAL)
    told = list(changes(report(host_health("a", PORT)), report(host_health("a", worse))))
    assert told[0] == (
        "fatal     a mlx5_1 ib_port_down: the port is down (it was fault) -> put ib_port_down right"
    )


def test_a_figure_that_moves_is_no_change() -> None:
    hotter = [replace(one, text="at 99 °C") for one in HOT]
    assert list(changes(report(host_health("a", *HOT)), report(host_health("a", *hotter)))) == []


def test_each_round_gets_the_last_facts_of_each_host_also_of_one_that_was_silent_since(
    clock: Clock,
) -> None:
    first, third = facts("a", taken_s=1.0), facts("a", taken_s=3.0)
    look, given = playing(
        report(host_health("a", told=first)),
        report(silent("a")),
        report(host_health("a", told=third)),
        report(host_health("a", told=third)),
    )
    watched(look, 4)
    assert given == [{}, {"a": first}, {"a": first}, {"a": third}]
    assert len(clock.slept) == 3


@pytest.mark.parametrize(
    "error", [UsageError("no kubectl"), OSError(5, "Input/output error"), ZeroDivisionError("x")]
)
def test_a_round_that_fails_is_told_once_and_ends_nothing(error: Exception, clock: Clock) -> None:
    look, _ = playing(error, error, report(host_health("a")), error)
    said, complained = watched(look, 4)
    assert said.startswith("HEALTHY")
    assert len(complained.splitlines()) == 2
    assert len(clock.slept) == 3


def test_metrics_that_cannot_be_written_do_not_end_it(tmp_path: Path, clock: Clock) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    look, _ = playing(report(host_health("a", XID)), report(host_health("a", XID)))
    said, complained = watched(look, 2, blocked / "ncdiag.prom")
    assert said.startswith("fatal")
    assert len(complained.splitlines()) == 1
    assert "metrics: cannot write" in complained
    assert clock.slept == [60.0]


def test_metrics_are_those_of_the_last_round(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "textfile" / "ncdiag.prom"
    look, _ = playing(report(host_health("a", XID)), report(host_health("a")))
    watched(look, 2, file)
    assert "ncdiag_health_findings" not in file.read_text()
    assert 'ncdiag_health_hosts{fitness="healthy"} 1' in file.read_text()
    assert [one.name for one in file.parent.iterdir()] == ["ncdiag.prom"]
    assert clock.slept == [60.0]


def test_a_round_that_takes_long_delays_the_next_and_no_more(clock: Clock) -> None:
    def look(_earlier: Mapping[str, HealthFacts]) -> HealthReport:
        clock.now_s += 10.0 if clock.slept else 150.0
        return report(host_health("a"))

    watched(look, 3)
    assert clock.slept == [0.0, 50.0]


def test_an_interrupt_ends_it(clock: Clock) -> None:
    def look(_earlier: Mapping[str, HealthFacts]) -> HealthReport:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched(look, 3)
    assert clock.slept == []
