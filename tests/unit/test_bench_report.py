import csv
import io
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from bench_cases import run
from rich.console import Console

from ncdiag.diagnose.bench import judge
from ncdiag.expect.collective import expect_collective
from ncdiag.expect.hardware import find_machine
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchReport, BenchRun
from ncdiag.model.verdict import Verdict
from ncdiag.report.bench import csv_report, html_report, json_report, picture, summary
from ncdiag.report.bench.presentable import presentable
from ncdiag.report.bench.text import render_terminal
from ncdiag.report.bench.write import write_all

MACHINE = find_machine("h100-8x400g")
HOSTILE = "<script>\x1b]0;x\x07&"


def report(*runs: BenchRun, theory: bool = True, **changes: object) -> BenchReport:
    judged = judge(
        runs,
        Collective.ALL_REDUCE,
        expect=lambda hosts, ranks: (
            expect_collective(MACHINE, Collective.ALL_REDUCE, hosts, gpus_per_node=ranks)
            if theory
            else None
        ),
    )
    made = BenchReport(
        started="2026-11-30T10:00:00Z",
        seconds=12.5,
        collective="all_reduce",
        engine="nccl-tests",
        launcher="ssh",
        verdict=judged.verdict,
        curves=judged.curves,
        findings=judged.findings,
        notes=judged.notes,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


FAULTY = report(
    run(rate=lambda size: 400 * size / (size + 2**26), shares={2**28: 0.4}, slow_process=3),
    run(rate=lambda size: 400 * size / (size + 2**26), shares={2**28: 0.4}, seed=2),
    run(4, rate=lambda size: 380 * size / (size + 2**26), seed=3),
)
EMPTY = report(BenchRun(hosts=("a", "b"), ranks_per_host=8, error="not there"))
NOTHING = report(unreachable={"a": "no route", "b": "no route"})


def printed(one: BenchReport) -> str:
    out = io.StringIO()
    render_terminal(one, Console(file=out, width=80, force_terminal=True, color_system=None), None)
    return out.getvalue()


def test_the_terminal_has_it_on_one_screen_of_80_columns() -> None:
    lines = printed(FAULTY).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 50
    text = " ".join(" ".join(lines).split())
    assert "256 MiB" in text
    assert "cliff" in text
    assert "rank 3 on n01" in text
    assert "more sizes in bench.csv" in text
    assert lines[-1].startswith("FAULTY: cliff")


def test_what_could_not_be_measured_says_why() -> None:
    assert "INCONCLUSIVE: nothing was measured: not there" in printed(EMPTY)
    assert "a,b: no route" in printed(NOTHING) or "unreachable" in printed(NOTHING)


def test_the_json_has_every_field() -> None:
    document = msgspec.json.decode(json_report.render(FAULTY))
    assert document["schema"] == "ncdiag/bench/1"
    assert document["verdict"] == "faulty"
    assert [len(curve["hosts"]) for curve in document["curves"]] == [2, 4]
    assert document["curves"][0]["points"][0]["size_bytes"] == 8
    assert {one["kind"] for one in document["findings"]} >= {"cliff", "slow_rank"}
    again = msgspec.convert(document, BenchReport)
    assert again.curves[0].hosts == FAULTY.curves[0].hosts


def test_the_csv_has_a_row_for_each_size_of_each_number_of_hosts() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_report.render(FAULTY))))
    assert len(rows) == sum(len(curve.points) for curve in FAULTY.curves)
    cliffs = [row for row in rows if row["cliff"] == "true"]
    assert [row["size_bytes"] for row in cliffs] == [str(2**28)]
    assert float(rows[-1]["efficiency"]) == pytest.approx(
        float(rows[-1]["busbw_gb_per_s"]) / float(rows[-1]["expected_busbw_gb_per_s"]), rel=1e-4
    )


def test_the_summary_tells_of_every_kind_before_it_repeats_one() -> None:
    runs = [
        run(hosts, shares={256 * 2**20: 0.4}, wrong={8: 1}, slow_process=3, seed=hosts)
        for hosts in (2, 4)
    ]
    judged = judge(runs, Collective.ALL_REDUCE)
    report = replace(FAULTY, curves=judged.curves, findings=judged.findings, unreachable={})
    lines = summary.render(report).splitlines()
    assert len(lines) <= 10
    told = [line for line in lines if line.startswith("fault:")]
    assert [
        any(kind in line for line in told) for kind in ("wrong data", "cliff", "slow rank")
    ] == [*(True, True, True)]
    assert any(line.startswith("more:") for line in lines)
    assert "hosts:       n[01-04]" in lines


def test_the_summary_fits_a_ticket() -> None:
    text = summary.render(FAULTY)
    assert len(text.splitlines()) <= 10
    assert text.startswith("ncdiag bench: FAULTY - ")


@pytest.mark.parametrize("one", [FAULTY, EMPTY, NOTHING], ids=["faulty", "empty", "nothing"])
def test_every_report_can_be_written(one: BenchReport, tmp_path: Path) -> None:
    write_all(one, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "bench.json",
        "bench.csv",
        "metrics.prom",
        "bench.html",
        "bench.png",
        "summary.txt",
    }
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_shows_theory_cliff_and_hosts() -> None:
    page = html_report.render(FAULTY)
    assert 'class="theory"' in page
    assert 'class="ring"' in html_report.render(replace(FAULTY, curves=FAULTY.curves[:1]))
    assert "Bus bandwidth over hosts" in page
    without = html_report.render(report(run(), theory=False))
    assert 'polyline class="theory"' not in without
    assert 'class="ring"' not in without


def test_the_picture_differs_with_what_it_shows() -> None:
    assert picture.render(FAULTY) != picture.render(replace(FAULTY, curves=FAULTY.curves[:1]))
    assert picture.render(FAULTY) == picture.render(FAULTY)


def test_what_hosts_say_is_text_everywhere(tmp_path: Path) -> None:
    hostile = report(
        BenchRun(hosts=(HOSTILE, "b"), ranks_per_host=1, error=HOSTILE),
        unreachable={HOSTILE: HOSTILE},
        notes=(HOSTILE,),
        settings={HOSTILE: HOSTILE},
        verdict=Verdict.INCONCLUSIVE,
    )
    write_all(hostile, tmp_path)
    page = (tmp_path / "bench.html").read_text()
    assert "<script>" not in page
    shown = printed(hostile) + page + summary.render(presentable(hostile))
    assert "\x1b" not in shown
    assert "\x07" not in shown
