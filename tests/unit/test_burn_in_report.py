import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from burn_in_reports import HOSTILE, burn_in_report
from rich.console import Console

from ncdiag.cli import main
from ncdiag.diagnose.burn_in import conclude
from ncdiag.model.burn_in import (
    BurnInReport,
    Figure,
    GateVerdict,
    HostOutcome,
    Outcome,
    Stage,
    StageFinding,
    StageRun,
    StageState,
)
from ncdiag.model.errors import UsageError
from ncdiag.model.health import HealthFinding, HealthReport, HostFitness, HostHealth, Severity
from ncdiag.model.host import Host
from ncdiag.model.verdict import SweepReport
from ncdiag.report.burn_in import describe, html_report, json_report, prometheus, summary
from ncdiag.report.burn_in.figures import grouped, share
from ncdiag.report.burn_in.presentable import presentable
from ncdiag.report.burn_in.text import render_text, shown_runs
from ncdiag.report.burn_in.write import write_all

MakeReport = Callable[..., SweepReport]
FILES = {
    "hosts.good.txt",
    "hosts.spare.txt",
    "hosts.isolate.txt",
    "hosts.undecided.txt",
    "summary.txt",
    "report.json",
    "report.html",
    "metrics.prom",
}
OF_SWEEP = {"links.csv", "heatmap.png"}


def printed(report: BurnInReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    render_text(report, Console(width=80, markup=False, highlight=False), Path("out"))
    return capsys.readouterr().out.splitlines()


def test_the_verdict_stands_first_and_everybody_is_told_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(burn_in_report(hosts=13), capsys)
    assert lines[0] == "MET: 8 of 8 good hosts and 1 spare; 3 out, 1 undecided"
    text = "\n".join(lines)
    assert "chosen      h[1-2,4,6-7,9-10,12]\nspares      h13\n" in text
    assert "leaves      leaf1 (4), leaf2 (4), leaf3 (1)\n" in text
    assert "out         h5: health: gpu3: Xid 79: GPU has fallen off the bus (99 % sure)" in text
    assert "undecided   h11: load: cut off before its own result: 31 s were too few\n" in text
    assert "isolate     h[3,5]\n" in text
    assert "next        launch on the first 8 of hosts.good.txt; spares follow\n" in text
    assert "next        h3: ssh h3 ethtool -S eth0" in text
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"spares": 0, "undecided": False}, "8 of 8 good hosts; 3 out, 1 more good"),
        ({"spares": 0}, "8 of 8 good hosts; 3 out, 1 undecided"),
        ({}, "8 of 8 good hosts and none of 1 spare; 3 out, 1 undecided"),
        ({"need": 7, "spares": 2}, "7 of 7 good hosts and 1 of 2 spares; 3 out, 1 undecided"),
        ({"need": 12}, "8 of 12 good hosts and none of 1 spare; 3 out, 1 undecided"),
    ],
)
def test_the_verdict_in_words(changes: dict[str, int], line: str) -> None:
    assert describe.verdict(burn_in_report(**changes)) == line


@pytest.mark.parametrize(
    ("need", "verdict", "first"),
    [
        (8, GateVerdict.MET, "launch on hosts.good.txt"),
        (9, GateVerdict.UNDECIDED, "give more time"),
        (10, GateVerdict.SHORT, "do not launch"),
    ],
)
def test_what_to_do_next_goes_by_the_verdict(need: int, verdict: GateVerdict, first: str) -> None:
    report = burn_in_report(need=need, spares=0)
    assert report.verdict is verdict
    assert describe.next_steps(report)[0].startswith(first)


def undecided_report(*findings: StageFinding, state: StageState = StageState.DONE) -> BurnInReport:
    """Four hosts, of which h1 passed everything, h4 gave no result, and others have findings."""
    stages = tuple(
        StageRun(
            stage=stage,
            state=state if stage is Stage.LOAD else StageState.DONE,
            hosts=4,
            seconds=1.0,
            findings=tuple(one for one in findings if one.stage is stage),
            passed=("h1",) if stage is Stage.LOAD else ("h1", "h2", "h3", "h4"),
        )
        for stage in Stage
    )
    hosts = [Host(name=f"h{number}", address=f"h{number}") for number in range(1, 5)]
    found = conclude(hosts, stages, None, need=4, spares=0)
    return replace(
        burn_in_report(need=4, spares=0),
        verdict=found.verdict,
        hosts=found.hosts,
        chosen=found.chosen,
        stages=stages,
        isolate=(),
        notes=(),
    )


def doubt(host: str, step: str, reason: str = "gave no figure: it hung") -> StageFinding:
    return StageFinding(
        host=host,
        stage=Stage.LOAD,
        outcome=Outcome.UNDECIDED,
        reason=reason,
        confidence=0.0,
        next=step,
    )


def test_more_time_is_advised_only_where_there_was_too_little() -> None:
    done = undecided_report(doubt("h2", "look at h2"))
    late = doubt("h2", "look at h2", "slow; no time was left to repeat it alone")
    for report in (undecided_report(late), undecided_report(state=StageState.CUT)):
        assert report.verdict is GateVerdict.UNDECIDED
        assert describe.next_steps(report)[0].startswith("give more time with --budget")
    assert done.verdict is GateVerdict.UNDECIDED
    assert not any("--budget" in step for step in describe.next_steps(done))
    assert "next:        put right what keeps hosts undecided" in summary.render(done)


def test_every_undecided_host_has_a_next_step() -> None:
    few = describe.next_steps(
        undecided_report(doubt("h2", "look at h2"), doubt("h3", "look at h3"))
    )
    assert few[1] == "h[2-3]: look at HOST"
    assert few[2].startswith("h4: measure again")
    many = [doubt(f"h{number}", f"step {number}") for number in (2, 3, 4)]
    most = describe.next_steps(undecided_report(*many, doubt("h4", "one more")))
    assert most[-1] == "h4: 1 more step in report.json"


def test_after_an_interrupt_nobody_is_told_to_launch() -> None:
    steps = describe.next_steps(replace(burn_in_report(), interrupted=True))
    assert steps[0].startswith("run it again to its end")
    assert not any("launch" in step for step in steps)


def test_hosts_with_the_same_reasons_stand_together() -> None:
    hosts = [
        HostOutcome(name=name, outcome=Outcome.REJECTED, confidence=sure, reasons=(reason,))
        for name, sure, reason in (
            ("h1", 0.9, "reach: connect to host h1: refused"),
            ("h2", 0.8, "load: slow"),
            ("h3", 0.7, "reach: connect to host h3: refused"),
        )
    ]
    assert describe.by_reasons(hosts) == [
        ("h[1,3]", ("reach: connect to host HOST: refused",), 0.7),
        ("h2", ("load: slow",), 0.8),
    ]


def test_of_many_passes_the_odd_ones_and_the_last_are_shown() -> None:
    runs = [
        StageRun(stage=Stage.LOAD, state=StageState.DONE, hosts=2, seconds=1.0, pass_number=number)
        for number in range(1, 101)
    ]
    runs[41] = replace(runs[41], state=StageState.FAILED, reason="hung")
    shown = [run.pass_number for run in shown_runs(tuple(runs))]
    assert shown == [42, *range(84, 101)]
    assert shown_runs(tuple(runs[:5])) == runs[:5]


def figure(host: str, value: float, **more: object) -> Figure:
    return Figure(
        **{"host": host, "stage": Stage.LOAD, "name": "step_s", "value": value, "median": 2.0}
        | more
    )


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (figure("a", 1.0), 0.5),
        (figure("a", 4.0, lower_is_worse=False), 0.5),
        (figure("a", 1.0, median=None), None),
        (figure("a", 1.0, median=0.0), None),
        (figure("a", 0.0, lower_is_worse=False), None),
        (figure("a", -1.0), None),
    ],
)
def test_a_figure_is_a_share_of_its_median(one: Figure, expected: float | None) -> None:
    assert share(one) == expected


def test_figures_stand_together_the_worst_host_and_the_worst_pass_first() -> None:
    run = StageRun(stage=Stage.LOAD, state=StageState.DONE, hosts=2, seconds=1.0)
    first = replace(run, figures=(figure("a", 2.0), figure("b", 1.0), figure("c", 2.1)))
    second = replace(run, figures=(figure("a", 1.8), figure("c", 5.0, median=None)))
    (group,) = grouped(replace(burn_in_report(), stages=(first, second)))
    assert (group.name, group.unit) == ("step", "s")
    assert [(one.host, one.value) for one in group.figures] == [("b", 1.0), ("a", 1.8), ("c", 2.1)]
    assert group.shares == (0.5, 0.9, 1.05)


def test_the_summary_has_at_most_ten_lines() -> None:
    lines = summary.render(burn_in_report(hosts=13)).splitlines()
    assert lines[0] == ("ncdiag burn-in: MET - 8 of 8 good hosts and 1 spare; 3 out, 1 undecided")
    assert "load (cut off)" in lines[2]
    assert "chosen:      h[1-2,4,6-7,9-10,12]" in lines
    assert len(lines) <= 10
    long = summary.render(burn_in_report(text="x" * 500)).splitlines()
    assert max(map(len, long)) == 300


def test_the_metrics_tell_verdict_outcomes_and_hosts() -> None:
    lines = prometheus.render(burn_in_report()).splitlines()
    assert 'ncdiag_burn_in_verdict{verdict="met"} 1' in lines
    assert 'ncdiag_burn_in_verdict{verdict="short"} 0' in lines
    assert 'ncdiag_burn_in_hosts{outcome="rejected"} 3' in lines
    assert 'ncdiag_burn_in_host_isolate{host="h3"} 1' in lines
    assert 'ncdiag_burn_in_host_isolate{host="h8"} 0' in lines
    assert 'ncdiag_burn_in_host_good{host="h1"} 1' in lines
    assert 'ncdiag_burn_in_stage_complete{stage="load"} 0' in lines


def test_the_json_has_the_schema_and_whole_reports_of_sweep_and_health(
    make_report: MakeReport,
) -> None:
    health = HealthReport(
        started="now",
        seconds=1.0,
        hosts=(
            HostHealth(
                host="h5",
                fitness=HostFitness.FATAL,
                findings=(
                    HealthFinding(
                        check="gpu-lost",
                        severity=Severity.FATAL,
                        text="t",
                        next="n",
                        class_="xid",
                    ),
                ),
            ),
        ),
    )
    report = replace(burn_in_report(make_report(4)), health=health)
    document = json.loads(json_report.render(report))
    assert document["schema"] == "ncdiag/burn-in/1"
    assert list(document)[:2] == ["schema", "verdict"]
    assert document["sweep"]["schema"] == "ncdiag/sweep/1"
    assert document["health"]["schema"] == "ncdiag/health/1"
    assert document["stages"][1]["findings"][0]["class"] == "xid"
    again = json_report.read(json_report.render(report), "report.json")
    assert json_report.render(again) == json_report.render(report)
    assert again.hosts[2].reasons == report.hosts[2].reasons
    assert again.health == health
    assert again.sweep is not None
    assert again.sweep.diagnosis.hosts == report.sweep.diagnosis.hosts


@pytest.mark.parametrize(
    ("document", "part"),
    [
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "no report of a burn-in"),
        (b'{"schema": "ncdiag/sweep/1"}', "no report of a burn-in"),
        (b'{"schema": "ncdiag/burn-in/1", "hosts":' + b"[" * 100_000, "is no JSON"),
        (b'{"schema": "ncdiag/burn-in/1"}', "damaged"),
        (b'{"schema": "ncdiag/burn-in/1", "sweep": {"plan": 3}}', "damaged"),
        (b'{"schema": "ncdiag/burn-in/1", "sweep": 3}', "damaged"),
    ],
)
def test_a_damaged_report_is_one_line(document: bytes, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        json_report.read(document, "x/report.json")


def test_any_cut_of_a_report_is_refused_in_one_line() -> None:
    whole = json_report.render(burn_in_report())
    for end in random.Random(1).sample(range(len(whole) - 2), 60):
        with pytest.raises(UsageError):
            json_report.read(whole[:end], "report.json")


def test_the_page_is_whole_and_asks_for_nothing(make_report: MakeReport) -> None:
    page = html_report.render(burn_in_report(make_report(4)))
    assert "<h1>" in page
    assert "8 of 8 good hosts" in page
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "style=" not in page  # the policy would refuse it


def test_what_comes_from_outside_is_escaped_in_the_page_and_visible_everywhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = burn_in_report(text=HOSTILE)
    page = html_report.render(presentable(report))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    shown = "\n".join(printed(report, capsys)) + summary.render(presentable(report)) + page
    assert "\x1b" not in shown
    assert "x1b[31m" in shown


def test_a_burn_in_in_which_nothing_ran_still_has_a_page() -> None:
    empty = replace(burn_in_report(), stages=(), hosts=(), chosen=(), isolate=(), leaves={})
    assert "<h1>" in html_report.render(empty)


def test_the_page_of_many_hosts_stays_small() -> None:
    report = burn_in_report(hosts=3000, need=2900)
    page = html_report.render(report)
    assert len(page) < 1_500_000
    assert "1,000 more are in report.json" in page


def test_the_directory_holds_every_file_and_lists_one_host_a_line(
    make_report: MakeReport, tmp_path: Path
) -> None:
    write_all(burn_in_report(make_report(3), hosts=13), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES | OF_SWEEP
    lists = {
        name: (tmp_path / f"hosts.{name}.txt").read_text().split()
        for name in ("good", "spare", "isolate", "undecided")
    }
    assert lists == {
        "good": ["h1", "h2", "h4", "h6", "h7", "h9", "h10", "h12", "h13"],
        "spare": ["h13"],
        "isolate": ["h3", "h5"],
        "undecided": ["h11"],
    }
    write_all(burn_in_report(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_a_report_is_rendered_again_with_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(burn_in_report(need=10), tmp_path)
    before = (tmp_path / "report.json").read_bytes()
    (tmp_path / "summary.txt").unlink()
    assert main.run(["report", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("SHORT: 8 of 10 good hosts")
    assert (tmp_path / "summary.txt").exists()
    assert (tmp_path / "report.json").read_bytes() == before
    assert main.run(["report", str(tmp_path), str(tmp_path)]) == 2
    assert "only sweeps are compared" in capsys.readouterr().err
    write_all(replace(burn_in_report(), interrupted=True), tmp_path)
    assert main.run(["report", str(tmp_path)]) == 130
    (tmp_path / "report.json").write_bytes(before[:500])
    capsys.readouterr()
    assert main.run(["report", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
