import csv
import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from ncdiag.model.verdict import LinkStatus, LinkVerdict, SweepReport
from ncdiag.report import links_csv

MakeReport = Callable[..., SweepReport]

HEADER = (
    "source,target,rail,round,engine,bytes,measured_gbit_per_s,expected_gbit_per_s,efficiency,"
    "fleet_ratio,idle,status,error"
)


def rows(report: SweepReport) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(links_csv.render(report))))


def with_links(report: SweepReport, *links: LinkVerdict) -> SweepReport:
    return replace(report, diagnosis=replace(report.diagnosis, links=links))


def test_the_columns_are_those_of_the_contract(faulty_report: SweepReport) -> None:
    assert links_csv.render(faulty_report).splitlines()[0] == HEADER


def test_each_direction_has_a_row_with_its_figures(make_report: MakeReport) -> None:
    report = make_report(2)
    forth, back = rows(report)
    assert (forth["source"], forth["target"], back["source"]) == ("h1", "h2", "h2")
    measured = report.diagnosis.links[0].measured_gbit_per_s
    assert float(forth["measured_gbit_per_s"]) == pytest.approx(measured, abs=1e-6)
    assert forth["status"] == "healthy"


def test_a_failed_measurement_has_a_row_and_an_untested_one_none(make_report: MakeReport) -> None:
    error = LinkVerdict(source="a", target="b", rail=0, status=LinkStatus.ERROR, error="hung")
    untested = LinkVerdict(source="b", target="a", rail=0, status=LinkStatus.UNTESTED)
    (row,) = rows(with_links(make_report(2), error, untested))
    assert (row["status"], row["error"], row["measured_gbit_per_s"]) == ("error", "hung", "")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_an_error_is_never_a_formula(start: str, make_report: MakeReport) -> None:
    text = f'{start}HYPERLINK("http://example.org")'
    link = LinkVerdict(source="a", target="b", rail=0, status=LinkStatus.ERROR, error=text)
    (row,) = rows(with_links(make_report(2), link))
    assert row["error"] == f"'{text}"
