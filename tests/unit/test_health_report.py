import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from health_reports import (
    HOT,
    NOTE,
    PORT,
    XID,
    facts,
    finding,
    fleet,
    host_health,
    report,
    silent,
)
from rich.console import Console

from ncdiag.model.health import HealthReport, HostFitness, Severity, Source
from ncdiag.report.health import describe
from ncdiag.report.health.csv_report import COLUMNS, render_health_csv
from ncdiag.report.health.json_report import render_health_json
from ncdiag.report.health.one_line import NagiosCode, drain_reason, render_nagios
from ncdiag.report.health.prometheus import render_health_metrics
from ncdiag.report.health.text import render_health_text

HOSTILE = finding(
    "disk", Severity.FATAL, '\x1b[2J"} 1\n| bad=1 \u202e=cmd', "a\nb", next="=HYPERLINK()"
)


def text_of(given: HealthReport, **how: bool) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, markup=False, emoji=False, highlight=False, color_system=None
    )
    render_health_text(given, console, **how)
    return stream.getvalue()


def test_a_fleet_fits_one_screen_and_folds_hosts_with_like_findings() -> None:
    shown = text_of(fleet())
    lines = shown.splitlines()
    assert len(lines) <= 24
    assert "gpu[004-005] mlx5_1: the port is down (ib_port_down)" in shown
    assert "gpu[003,006] gpu[0-7]: such as gpu003 gpu0: at 88 °C" in shown
    assert "unknown     gpu[007-008]: ssh: connection refused" in lines
    assert "drain       gpu003" in lines
    assert lines[-1].startswith("FATAL: of 64 hosts 1 to be drained, 2 faulty, 2 unknown")


def test_why_the_only_host_gave_no_answer_is_said_once() -> None:
    assert text_of(report(silent("a", "no route"))) == "UNKNOWN: a: no route\n"


def test_one_screen_is_enough_for_a_host_where_everything_trips() -> None:
    many = [
        finding(f"check_{number}", Severity.FAULT, "wrong " * 12, f"gpu{number}")
        for number in range(40)
    ]
    shown = text_of(report(host_health("gpu001", *many)))
    assert len(shown.splitlines()) <= 24
    assert "and 34 more kinds of findings: --verbose shows them" in shown
    assert all(
        f"gpu{number}:" in text_of(report(host_health("a", *many)), verbose=True)
        for number in range(40)
    )


def test_what_is_worse_stands_first() -> None:
    found = describe.groups(report(host_health("a", NOTE, *HOT), host_health("b", XID, PORT)))
    assert [group.severity for group in found] == ["fatal", "fault", "warning", "note"]


def test_notes_and_what_was_not_checked_are_for_the_curious() -> None:
    one = report(host_health("gpu001", NOTE, told=facts("gpu001", hung=[Source.NVIDIA_SMI])))
    short, long = text_of(one), text_of(one, verbose=True)
    assert "MIG is on" not in short
    assert "and 1 note: --verbose shows them" in short
    assert "note        gpu0: MIG is on" in long
    assert "not checked ib_errors: there is no InfiniBand here" in long
    assert "passed      gpu_count, memory_ecc" in long
    assert "gpus        8 NVIDIA H100 80GB HBM3" in long
    for shown in (short, long):
        assert "not read    nvidia-smi timed out (no answer within 5.0 s)" in shown


def test_who_differs_from_the_majority_is_told_when_asked() -> None:
    assert "1 difference between hosts: --compare shows them" in text_of(fleet())
    shown = text_of(fleet(), compare=True)
    assert "differs     driver: 535.1 on gpu009; 550.54.15 on 62 hosts" in shown
    alike = report(host_health("a"), host_health("b"))
    assert "no host differs from the others" in text_of(alike, compare=True)


@pytest.mark.parametrize(
    ("hosts", "verdict", "code", "nagios"),
    [
        ([host_health("a")], HostFitness.HEALTHY, 0, NagiosCode.OK),
        ([host_health("a"), host_health("b", *HOT)], HostFitness.WARNING, 0, NagiosCode.WARNING),
        ([host_health("a", *HOT), silent("b")], HostFitness.UNKNOWN, 3, NagiosCode.UNKNOWN),
        ([host_health("a", PORT), silent("b")], HostFitness.FAULTY, 1, NagiosCode.CRITICAL),
        ([host_health("a", PORT), host_health("b", XID)], HostFitness.FATAL, 1,
         NagiosCode.CRITICAL),
    ],
)  # fmt: skip
def test_the_verdict_and_all_exit_codes_agree(
    hosts: list[object], verdict: HostFitness, code: int, nagios: NagiosCode
) -> None:
    given = report(*hosts)  # type: ignore[arg-type] # hosts
    assert describe.verdict(given) is verdict
    assert given.exit_code == code
    line, nagios_code = render_nagios(given)
    assert nagios_code == nagios
    assert line.startswith(f"HEALTH {nagios.name} - ")
    assert text_of(given).splitlines()[-1].startswith(f"{verdict.upper()}: ")


def test_the_line_for_nagios_is_one_with_one_bar_whatever_is_in_it() -> None:
    line, _ = render_nagios(report(host_health("a", HOSTILE, *HOT), silent("b|c\n" * 200)))
    assert line.isprintable()
    told, figures = line.split("|")
    assert len(told) < 600
    assert "fatal=1;;0" in figures.split()
    assert "warnings=8;0" in figures.split()
    assert "gpu_temperature_max=57" in figures.split()
    many = [finding(f"check_{number}", Severity.FAULT, f"{number}") for number in range(9)]
    line, _ = render_nagios(report(host_health("a", *many)))
    assert "; 0; 1; 2; and 6 more | " in line
    assert "faults=9;;0" in line


def test_what_a_check_says_of_a_device_counts_once_however_often_it_is_said() -> None:
    twice = report(host_health("a", XID, replace(XID, text="fallen off, in other words"), *HOT))
    assert "a: 1 fatal, 8 warnings; " in text_of(twice)
    assert "fatal=1;;0" in render_nagios(twice)[0]
    metric = 'ncdiag_health_findings{host="a",check="xid",severity="fatal"} 1'
    assert metric in render_health_metrics(twice).splitlines()


def test_only_what_is_fatal_is_a_reason_to_drain() -> None:
    assert drain_reason(report(host_health("a", PORT, *HOT))) is None
    assert drain_reason(report(silent("a"))) is None
    assert drain_reason(report(host_health("a", PORT, XID))) == (
        "ncdiag: gpu3: Xid 79: the GPU has fallen off the bus"
    )


def test_a_reason_to_drain_is_one_short_line() -> None:
    long = finding("xid", Severity.FATAL, "bad " * 400)
    reason = drain_reason(report(host_health("a", long, HOSTILE)))
    assert reason
    assert reason.isprintable()
    assert len(reason) <= 210
    assert reason.endswith("... (and 1 more finding)")


def test_the_json_has_everything_under_public_names() -> None:
    document = json.loads(render_health_json(fleet()))
    assert document["schema"] == "ncdiag/health/1"
    assert document["verdict"] == "fatal"
    assert (document["seconds"], document["interval_s"]) == (2.5, None)
    by_name = {host["host"]: host for host in document["hosts"]}
    assert by_name["gpu003"]["findings"][0]["class"] == "gpu_lost"
    assert by_name["gpu003"]["facts"]["gpus"][7]["temperature_c"] == 57.0
    assert by_name["gpu007"]["facts"] is None
    assert by_name["gpu007"]["error"] == "ssh: connection refused"
    assert document["differences"][0]["other"] == "535.1"


def test_the_table_has_a_row_a_finding_and_one_for_each_other_host() -> None:
    given = report(host_health("a", XID, PORT), silent("b"), host_health("c"))
    rows = list(csv.DictReader(io.StringIO(render_health_csv(given))))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["host"], row["fitness"], row["check"]) for row in rows] == [
        ("a", "fatal", "xid"),
        ("a", "fatal", "ib_port_down"),
        ("b", "unknown", ""),
        ("c", "healthy", ""),
    ]
    assert rows[2]["text"] == "ssh: connection refused"


@pytest.mark.parametrize(
    "render",
    [
        text_of,
        lambda given: render_health_json(given).decode(),
        render_health_csv,
        render_health_metrics,
        lambda given: render_nagios(given)[0],
    ],
)
def test_no_format_lets_through_what_hides_or_moves_text(
    render: Callable[[HealthReport], str],
) -> None:
    shown = render(report(host_health("h\x1b[1m", HOSTILE), silent("s\u202e", "no\x07")))
    assert not {"\x1b", "\u202e", "\x07"} & set(shown)


def test_a_spreadsheet_runs_nothing() -> None:
    [row] = csv.DictReader(io.StringIO(render_health_csv(report(host_health("a", HOSTILE)))))
    assert row["next"] == "'=HYPERLINK()"


def test_metrics_tell_fitness_findings_and_what_could_not_be_read() -> None:
    told = facts("a", hung=[Source.NVIDIA_SMI])
    lines = render_health_metrics(
        report(host_health("a", XID, *HOT, told=told), silent("b"), interval_s=60.0)
    ).splitlines()
    for line in (
        'ncdiag_health_hosts{fitness="fatal"} 1',
        'ncdiag_health_host_fitness{host="b",fitness="unknown"} 1',
        'ncdiag_health_findings{host="a",check="gpu_temperature",severity="warning"} 8',
        'ncdiag_health_checks{host="a",result="not_known"} 1',
        'ncdiag_health_source_read{host="a",source="nvidia-smi"} 0',
        'ncdiag_health_source_read{host="a",source="proc"} 1',
        "ncdiag_health_interval_seconds 60",
        "ncdiag_health_finished_timestamp_seconds 1796032802",
    ):
        assert line in lines


def test_a_report_that_has_no_hosts_is_rendered() -> None:
    assert text_of(report()) == "HEALTHY: no hosts\n"
    assert "hosts=0" in render_nagios(report())[0]
    assert msgspec.json.decode(render_health_json(report()))["hosts"] == []
