from collections.abc import Callable
from dataclasses import replace

import pytest

from ncdiag.model.verdict import Contention, HostStatus, HostVerdict, SweepReport, Verdict
from ncdiag.report import describe, summary

MakeReport = Callable[..., SweepReport]

FAULTY = """\
ncdiag sweep: FAULTY - 2 culprits, isolate 1 of 8 hosts
measured:    2026-11-29 03:12:45 UTC, 42 s; 8 hosts, 21 pairs in 6 rounds (full, torch, ssh)
yardstick:   expected 478 Mbit/s, from 500 Mbit/s x 0.956 TCP at MTU 1500; fleet median 478 Mbit/s
culprit:     host h3 (sending) at 20 %: 6 of 6 links it sends on reach 20% of what they should; \
all it receives is as expected
culprit:     link h5->h6 at 10 %: slow twice, also alone; both hosts are fast with everybody else
isolate:     h3
unreachable: h8: ssh: connect to host h8 port 22: Connection refused
contention:  leaf1: 470 Mbit/s alone, 210 Mbit/s together (4 pairs); no fault
note:        eth1 of h2 was not measured: no carrier
"""


def test_a_faulty_sweep_reads_as_a_ticket(faulty_report: SweepReport) -> None:
    assert summary.render(faulty_report) == FAULTY


def test_a_healthy_sweep_is_three_lines(make_report: MakeReport) -> None:
    lines = summary.render(make_report()).splitlines()
    assert lines[0] == "ncdiag sweep: HEALTHY - nothing is wrong with the links that were measured"
    assert len(lines) == 3


def test_ten_lines_are_enough_whatever_was_found(make_report: MakeReport) -> None:
    contention = Contention(name="leaf1", alone_gbit_per_s=1, together_gbit_per_s=0.5, pairs=3)
    report = make_report(
        40,
        slow_senders={f"h{number}": 0.3 for number in range(1, 12)},
        unreachable={"h20": "no route", "h21": "time-out", "h22": "no python"},
        contention=[contention] * 3,
        notes=["x" * 1000, "y"],
    )
    text = summary.render(report)
    lines = text.splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 300
    assert "isolate:     h[1-11]" in lines
    assert "(+8 more)" in text
    assert "unreachable: h20: no route (+2 more)" in lines


def test_without_an_expectation_the_fleet_is_the_yardstick_and_that_is_said(
    make_report: MakeReport,
) -> None:
    text = summary.render(make_report(expected_gbit_per_s=None))
    assert "yardstick:   fleet median 478 Mbit/s (nothing is known that says" in text


def test_equal_reasons_stand_once_for_all_their_hosts(make_report: MakeReport) -> None:
    refused = {name: f"connect to {name} port 22: Connection refused" for name in ("h2", "h3")}
    groups = describe.hosts_by_reason(
        make_report(unreachable={**refused, "h5": "no python on h5"}), HostStatus.UNREACHABLE
    )
    assert groups == [
        ("h[2-3]", "connect to HOST port 22: Connection refused"),
        ("h5", "no python on h5"),
    ]


def test_an_inconclusive_sweep_says_what_is_not_known(make_report: MakeReport) -> None:
    report = make_report(unreachable={"h8": "refused"}, errors={("h1", "h2"): "hung"})
    assert describe.verdict(report) == "1 host unreachable, 1 measurement failed"


def test_too_little_data_is_said(make_report: MakeReport) -> None:
    report = make_report(2)
    report = replace(
        report, diagnosis=replace(report.diagnosis, verdict=Verdict.INCONCLUSIVE, links=())
    )
    assert describe.verdict(report) == "too little was measured to decide"
    assert describe.yardstick(report) == "none"


def test_an_interrupted_sweep_says_so(make_report: MakeReport) -> None:
    assert "interrupted" in summary.render(make_report(interrupted=True))


def test_pairs_the_budget_cut_off_are_counted(make_report: MakeReport) -> None:
    report = make_report(3)
    report = replace(
        report,
        diagnosis=replace(report.diagnosis, untested=(("h1", "h2"),), untested_pairs=120_000),
    )
    assert "120,000 planned pairs not tested" in summary.render(report)


@pytest.mark.parametrize(
    ("share", "text"), [(None, "-"), (0.984, "98 %"), (0.0512, "5.1 %"), (1.01, "101 %")]
)
def test_a_share_reads_as_per_cent(share: float | None, text: str) -> None:
    assert describe.percent(share) == text


def test_a_reason_equal_to_nothing_still_groups(make_report: MakeReport) -> None:
    report = make_report(2)
    hosts = tuple(HostVerdict(name=name, status=HostStatus.UNREACHABLE) for name in ("a1", "a2"))
    report = replace(report, diagnosis=replace(report.diagnosis, hosts=hosts))
    assert describe.hosts_by_reason(report, HostStatus.UNREACHABLE) == [("a[1-2]", "")]
