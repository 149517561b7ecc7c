"""The command itself, on hosts that were recorded."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from health_reports import HOT, NOTE, PORT, XID, facts, host_health, report, silent

from ncdiag.cli import main
from ncdiag.cli.health import deadline, modes
from ncdiag.health.check_choice import CheckChoice, choose_checks
from ncdiag.health.checks.table import CHECKS
from ncdiag.model.errors import UsageError
from ncdiag.model.health import HealthReport, HostFitness
from ncdiag.store.ledger import Ledger

EXAMPLES = Path(__file__).parents[2] / "examples/health"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.run(["health", *arguments])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[HealthReport], None]:
    """Have the command find what the test says, without looking at any host."""

    def found(given: HealthReport) -> None:
        monkeypatch.setattr(modes, "look", lambda *_: given)

    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--watch", "5s", "--interval", "1s"), "--watch and --interval do not go together"),
        (("--root", "/", "--nodes", "h1"), "--root and --nodes do not go together"),
        (("--compare",), "--compare is for several hosts; name them with --nodes"),
        (("--only", "gpu_temperatur"), "did you mean gpu_temperature?"),
        (("--only", "pair_bandwidth"), "ncdiag burn-in makes it"),
        (("--only", "gpu_missing", "--skip", "gpu_missing"), "leaves none of the checks"),
        (("--root", "/nowhere\x1b"), "there is no folder /nowhere\\x1b"),
        (("--explain", "nothing"), "no check is called 'nothing'"),
        (("--list-checks", "--format", "csv"), "checks are listed as text or json"),
        (("--interval", "0s"), "a duration must be above zero"),
        (("--store", "x"), "give --record, which keeps them"),
        (("--nodes", "127.0.0.2", "--launcher", "sssh"), "did you mean ssh?"),
        (("--nodes", "-oProxyCommand=x"), "-oProxyCommand=x"),
        (("--metrics", "/nowhere/x.prom"), "there is no folder /nowhere; make it, or name another"),
        (("--metrics", "/usr"), "--metrics /usr is a folder; name a file to write"),
    ],
)
def test_what_is_used_wrongly_is_one_line_and_code_2(
    arguments: tuple[str, ...], said: str, run: Run
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_recorded_host_is_judged_by_its_record(run: Run) -> None:
    code, out, _ = run("--root", str(EXAMPLES / "gpu017"), "--format", "json")
    document = json.loads(out)
    [host] = document["hosts"]
    assert (code, document["verdict"], host["host"]) == (1, "fatal", "gpu017")
    # Its log has the Xid, and the same once more in words.
    checks = [one["check"] for one in host["findings"]]
    assert checks == ["gpu_missing", "kernel_gpu_fell_off_bus", "gpu_temperature"]
    code, out, _ = run("--root", str(EXAMPLES / "gpu018"), "--format", "json")
    assert (code, json.loads(out)["verdict"]) == (0, "healthy")


def test_an_empty_record_is_unknown_and_never_healthy(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("--root", str(tmp_path))
    assert code == 3
    assert out.splitlines()[-1].startswith("UNKNOWN: ")
    assert run("--root", str(tmp_path), "--nagios")[0] == 3
    code, out, err = run("--root", str(tmp_path), "--prolog")
    assert (code, out) == (0, "")
    assert "not drained" in err


def test_gpus_that_are_missing_altogether_are_missed_only_when_expected(run: Run) -> None:
    root = str(EXAMPLES / "gpu018")
    assert run("--root", root, "--gpus", "4")[0] == 0
    code, out, _ = run("--root", root, "--gpus", "8")
    assert code == 1
    assert "there should be 8 (by --gpus)" in " ".join(out.split())


def test_only_the_wanted_checks_count(run: Run) -> None:
    root = str(EXAMPLES / "gpu017")
    code, out, _ = run("--root", root, "--only", "gpu_temperature")
    assert (code, out.splitlines()[-1]) == (0, "WARNING: gpu017: 1 warning; 1 check made")
    skipped = ("--skip", "gpu_missing", "--skip", "kernel_gpu_fell_off_bus")
    assert run("--root", root, *skipped, "--prolog")[:2] == (0, "")


def test_two_readings_are_made_for_an_interval(run: Run) -> None:
    code, out, _ = run(
        "--root", str(EXAMPLES / "gpu018"), "--interval", "100ms", "--format", "json"
    )
    document = json.loads(out)
    assert (code, document["interval_s"]) == (0, 0.1)
    reasons = {one["check"]: one["reason"] for one in document["hosts"][0]["not_known"]}
    assert "needs two readings" not in reasons.get("ecc_corrected_rate", "")


@pytest.mark.parametrize(
    ("health", "code"),
    [
        (report(host_health("a", *HOT, NOTE)), 0),
        (report(host_health("a", PORT)), 1),
        (report(host_health("a", XID)), 1),
        (report(silent("a")), 3),
    ],
)
def test_the_exit_code_is_that_of_the_contract(
    health: HealthReport, code: int, run: Run, found: Callable[[HealthReport], None]
) -> None:
    found(health)
    for form in ("text", "json", "csv"):
        assert run("--format", form)[0] == code


def test_nagios_hears_of_our_own_trouble_as_unknown(run: Run) -> None:
    code, out, err = run("--nagios", "--root", "/nowhere")
    assert (code, err) == (3, "")
    assert out == "HEALTH UNKNOWN - there is no folder /nowhere; name one with --root\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--nagios", "--typo"), "no such option: --typo"),
        (("--gpus", "x", "--nagios"), "--gpus"),
        (("--nagios", "--only", "nothing"), "no check is called 'nothing'"),
        (("--nagios", "--format", "json"), "--nagios and --format do not go together"),
        (("--nagios", "--metrics", "x"), "--nagios and --metrics do not go together"),
    ],
)
def test_nagios_hears_of_wrong_options_as_unknown(
    arguments: tuple[str, ...], said: str, run: Run
) -> None:
    code, out, err = run(*arguments)
    assert (code, err) == (3, "")
    assert out.startswith("HEALTH UNKNOWN - ")
    assert out.count("\n") == 1
    assert said in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nodes", "h1"),
        ("--only", "nothing"),
        ("--root", "/nowhere"),
        ("--record",),
        ("--typo",),
        ("--gpus", "x"),
        ("--interval", "5"),
        ("--nagios", "surplus"),
        ("--list-checks", "--format", "csv"),
    ],
)
def test_a_prolog_that_is_set_up_wrongly_drains_nobody(
    arguments: tuple[str, ...], run: Run
) -> None:
    for given in (("--prolog", *arguments), (*arguments, "--prolog")):
        code, out, err = run(*given)
        assert (code, out) == (0, "")
        assert err.startswith("ncdiag: this host could not be judged, and is not drained for that:")
        assert err.count("\n") == 1


def test_metrics_are_written_also_without_a_watch(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ncdiag.prom"
    root = str(EXAMPLES / "gpu017")
    assert run("--root", root, "--metrics", str(file), "--quiet")[0] == 1
    assert 'ncdiag_health_host_fitness{host="gpu017",fitness="fatal"} 1' in file.read_text()


def test_metrics_that_cannot_be_written_hide_no_verdict(
    run: Run, found: Callable[[HealthReport], None]
) -> None:
    found(report(host_health("a", XID)))
    code, out, err = run("--metrics", "/proc/ncdiag.prom")
    assert code == 1
    assert out.splitlines()[-1].startswith("FATAL: a: ")
    assert err.startswith("ncdiag: --metrics: cannot write /proc/ncdiag.prom: ")
    assert err.count("\n") == 1


def test_what_was_found_is_kept_as_evidence(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    for host in ("gpu017", "gpu018"):
        recorded = ("--root", str(EXAMPLES / host), "--record", "--store", str(store))
        _, out, err = run(*recorded)
        assert out.splitlines()[-1].startswith(("FATAL", "HEALTHY"))
        sick = host == "gpu017"
        told = "against 1 host, not conclusive against 0, clears 0" if sick else "clears 1"
        assert err.rstrip().endswith(told)
    with Ledger.open(store) as ledger:
        pieces = ledger.evidence()
    assert {(one.host, one.clears) for one in pieces} >= {("gpu017", False), ("gpu018", True)}
    assert ("gpu018", False) not in {(one.host, one.clears) for one in pieces}


def test_a_host_that_is_faulty_is_told_so_and_why_that_isolates_nobody(
    run: Run, found: Callable[[HealthReport], None], tmp_path: Path
) -> None:
    found(report(host_health("a", PORT)))
    store = tmp_path / "store.sqlite"
    code, _, err = run("--record", "--store", str(store))
    assert code == 1
    assert "conclusive against 0 hosts, not conclusive against 1, clears 0" in err
    with Ledger.open(store) as ledger:
        [piece] = [one for one in ledger.evidence() if not one.clears]
    assert piece.text.startswith("the port is down (a fault to be put right, and not conclusive")


def test_every_check_is_listed_and_can_be_explained(run: Run) -> None:
    code, out, _ = run("--list-checks")
    assert code == 0
    assert [name for name in CHECKS if name not in out] == []
    code, out, _ = run("--explain", "gpu_missing")
    assert code == 0
    assert CHECKS["gpu_missing"].title in out
    code, out, _ = run("--list-checks", "--format", "json")
    assert [one["id"] for one in json.loads(out)["checks"]] == list(CHECKS)


def test_a_host_of_which_no_wanted_check_was_made_is_unknown() -> None:
    one = replace(host_health("a", XID), passed=("gpu_missing",))
    assert CheckChoice().narrowed(one) == one
    assert choose_checks(["gpu_missing"], []).narrowed(one).fitness is HostFitness.HEALTHY
    assert choose_checks(["clock_skew"], []).narrowed(one).fitness is HostFitness.UNKNOWN
    assert choose_checks(["clock_skew"], []).narrowed(silent("b")) == silent("b")
    with pytest.raises(UsageError):
        choose_checks(["xid"], [])


def test_whatever_hangs_ends_the_command_in_time(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from threading import Event

    ended, codes = Event(), list[int]()

    def leave(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(deadline.os, "_exit", leave)
    with deadline.deadline(0.01, 3, "late"):
        assert ended.wait(60)
    assert codes == [3]
    assert capfd.readouterr().err == "ncdiag: late\n"


def test_who_is_in_time_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[Any] = []
    monkeypatch.setattr(
        deadline.threading, "Timer", lambda *given: timers.append(Timer(*given)) or timers[-1]
    )
    with deadline.deadline(9.0, 3, "late"):
        assert (timers[0].seconds, timers[0].state) == (9.0, "started")
    assert timers[0].state == "cancelled"


class Timer:
    daemon = False

    def __init__(self, seconds: float, *_: object) -> None:
        self.seconds, self.state = seconds, "made"

    def start(self) -> None:
        self.state = "started"

    def cancel(self) -> None:
        self.state = "cancelled"


def test_all_deadlines_together_stay_below_ten_seconds() -> None:
    from ncdiag.health.collect import DEFAULT_LIMIT_S
    from ncdiag.health.sources.table import SOURCES

    assert max(row.deadline_s for row in SOURCES.values()) <= DEFAULT_LIMIT_S
    assert DEFAULT_LIMIT_S < deadline.LONGEST_S < 10.0


def test_a_round_of_a_watch_knows_the_one_before(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    given: list[object] = []

    def look(_plan: object, _tell: object, earlier: object) -> HealthReport:
        given.append(dict(earlier))  # type: ignore[call-overload]
        if len(given) == 3:
            raise KeyboardInterrupt
        return report(host_health("a", told=facts("a", taken_s=float(len(given)))))

    monkeypatch.setattr(modes, "look", look)
    code, out, _ = run("--watch", "1ms")
    assert code == 130
    assert "HEALTHY" in out
    assert given == [{}, {"a": facts("a", taken_s=1.0)}, {"a": facts("a", taken_s=2.0)}]
