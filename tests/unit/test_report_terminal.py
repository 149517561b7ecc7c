import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from ncdiag.model.verdict import SweepReport
from ncdiag.report.terminal import render_terminal

MakeReport = Callable[..., SweepReport]


def printed(
    report: SweepReport, *, width: int = 80, terminal: bool = False, no_color: bool = False
) -> str:
    output = io.StringIO()
    console = Console(
        file=output,
        width=width,
        force_terminal=terminal,
        no_color=no_color,
        color_system="standard" if terminal else None,
    )
    render_terminal(report, console, Path("reports/x"))
    return output.getvalue()


def table_of(text: str) -> list[str]:
    return text.split("unreachable", maxsplit=1)[0].splitlines()


def test_the_last_line_is_the_verdict_after_the_list_to_isolate(faulty_report: SweepReport) -> None:
    lines = printed(faulty_report).splitlines()
    assert lines[-1] == "FAULTY: 2 culprits, isolate 1 of 8 hosts"
    assert lines[-2] == "isolate     h3"
    assert "report      reports/x/report.html" in lines


def test_culprits_say_why_and_what_next(faulty_report: SweepReport) -> None:
    words = " ".join(printed(faulty_report).split())
    assert "host h3 (sending) 20 % 99 %" in words
    assert "-> ssh h3 ethtool -S eth0" in words
    assert "unreachable h8: ssh: connect to host h8 port 22: Connection refused" in words


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_of_culprits_fits_the_terminal(width: int, make_report: MakeReport) -> None:
    long = "node-" + "x" * 120
    report = make_report([long, "b", "c", "d"], slow_senders={long: 0.2}, unreachable={"d": "?"})
    table = table_of(printed(report, width=width))
    assert max(map(cell_len, table)) <= width
    assert "".join(line.split("  ")[0].strip() for line in table).count("x") >= 120


def test_nothing_from_outside_is_markup_or_moves_the_cursor(make_report: MakeReport) -> None:
    name, reason = "[red]h1[/red]", "\x1b[2J\x07gone\u202e"
    report = make_report([name, "h2"], slow_senders={name: 0.2}, notes=[reason])
    text = printed(report)
    assert "[red]h1[/red]" in text
    assert r"\x1b[2J\x07gone\u202e" in text
    assert "\x1b" not in text


def test_colour_is_for_terminals_that_want_it(faulty_report: SweepReport) -> None:
    assert "\x1b[1;31mFAULTY" in printed(faulty_report, terminal=True)
    assert "\x1b[1;31m" not in printed(faulty_report, terminal=True, no_color=True)
    assert "\x1b" not in printed(faulty_report)


def test_a_long_list_of_hosts_is_one_line_to_copy(make_report: MakeReport) -> None:
    names = [f"h{number * 7}" for number in range(60)]
    report = make_report([*names, "z"], slow_senders=dict.fromkeys(names, 0.2))
    (line,) = [line for line in printed(report).splitlines() if line.startswith("isolate")]
    assert line.endswith("413]")


def test_many_culprits_are_cut_and_counted(make_report: MakeReport) -> None:
    report = make_report(30, slow_senders={f"h{number}": 0.2 for number in range(1, 26)})
    assert "+5 more in the report" in printed(report)


def test_a_fleet_or_rail_reads_as_itself(faulty_report: SweepReport) -> None:
    diagnosis = faulty_report.diagnosis
    fleet = replace(diagnosis.culprits[0], kind="fleet", name="fleet", direction="both")
    report = replace(faulty_report, diagnosis=replace(diagnosis, culprits=(fleet,)))
    assert "fleet (both directions)" in " ".join(printed(report, width=120).split())
