import re
from collections.abc import Callable
from dataclasses import replace

from ncdiag.model.verdict import SweepReport
from ncdiag.report import prometheus

MakeReport = Callable[..., SweepReport]


def test_the_verdict_is_one_of_three(faulty_report: SweepReport) -> None:
    text = prometheus.render(faulty_report)
    assert 'ncdiag_sweep_verdict{verdict="faulty"} 1\n' in text
    assert 'ncdiag_sweep_verdict{verdict="healthy"} 0\n' in text


def test_hosts_and_culprits_have_their_figures(faulty_report: SweepReport) -> None:
    text = prometheus.render(faulty_report)
    assert 'ncdiag_sweep_hosts{status="unreachable"} 1\n' in text
    assert 'ncdiag_sweep_host_isolate{host="h3"} 1\n' in text
    assert 'ncdiag_sweep_host_isolate{host="h1"} 0\n' in text
    assert 'ncdiag_sweep_host_efficiency_ratio{host="h1"} 0.991\n' in text
    assert 'name="h5->h6",direction="send"} 0.8\n' in text
    assert "ncdiag_sweep_finished_timestamp_seconds 1795922007\n" in text


def test_only_links_that_are_not_healthy_are_labelled(faulty_report: SweepReport) -> None:
    labelled = re.findall(
        r'^ncdiag_sweep_link_efficiency_ratio{source="(\w+)",target="(\w+)"',
        prometheus.render(faulty_report),
        re.MULTILINE,
    )
    assert len(labelled) == 7
    assert {source for source, _ in labelled} == {"h3", "h5"}


def test_a_fleet_that_is_slow_everywhere_does_not_flood_prometheus(make_report: MakeReport) -> None:
    names = [f"h{number}" for number in range(40)]
    text = prometheus.render(make_report(names, slow_senders=dict.fromkeys(names, 0.3)))
    assert text.count("\nncdiag_sweep_link_efficiency_ratio{") == 1000
    assert 'ncdiag_sweep_links{status="faulty"} 1560\n' in text


def test_a_label_cannot_end_early(make_report: MakeReport) -> None:
    report = make_report(['a"} 1\n\\', "b"])
    assert r'{host="a\"} 1\n\\"} 0' in prometheus.render(report)


def test_an_unreadable_start_leaves_out_the_end(make_report: MakeReport) -> None:
    text = prometheus.render(replace(make_report(2), started="yesterday"))
    assert "finished" not in text
    assert "ncdiag_sweep_duration_seconds" in text


def test_an_end_beyond_the_calendar_is_left_out(make_report: MakeReport) -> None:
    for report in (
        replace(make_report(2), seconds=1e300),
        replace(make_report(2), started="9999-12-31T23:59:59Z", seconds=9.0),
    ):
        assert "finished_timestamp" not in prometheus.render(report)
