import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from ncdiag.model.verdict import SweepReport
from ncdiag.report import heatmap

MakeReport = Callable[..., SweepReport]


def pixels(report: SweepReport) -> np.ndarray[Any, Any]:
    return imread(io.BytesIO(heatmap.render(report)), format="png")


@pytest.mark.parametrize("hosts", [0, 1, 2, 8, 65])
def test_a_fleet_of_any_size_makes_a_picture(hosts: int, make_report: MakeReport) -> None:
    height, width, _ = pixels(make_report(hosts)).shape
    assert height > 500
    assert width > 500


def test_the_same_report_makes_the_same_bytes(faulty_report: SweepReport) -> None:
    assert heatmap.render(faulty_report) == heatmap.render(faulty_report)


def test_odd_names_are_text_and_draw_without_a_warning(make_report: MakeReport) -> None:
    names = ["$x^", "a_b", "\\frac{", "日本", "😀", "x" * 200, "%s"]
    assert len(heatmap.render(make_report(names))) > 0


def test_a_slow_host_shows(make_report: MakeReport) -> None:
    healthy, faulty = pixels(make_report(8)), pixels(make_report(8, slow_senders={"h3": 0.1}))
    red = [np.count_nonzero((one[..., 0] > 0.4) & (one[..., 2] < 0.1)) for one in (healthy, faulty)]
    assert red[1] - red[0] > 50_000


def test_a_cell_holds_the_worst_of_its_rails_and_hosts(make_report: MakeReport) -> None:
    report = make_report(4, rails=2, slow_links={("h1", "h4"): 0.25}, errors={("h4", "h1"): "hung"})
    names = [host.name for host in report.diagnosis.hosts]
    shares, failed = heatmap._cells(names, report.diagnosis.links, block=2)
    assert shares.shape == (2, 2)
    assert shares[0, 1] == pytest.approx(0.25, rel=0.05)
    assert shares[0, 0] > 0.9
    assert failed.tolist() == [[False, False], [True, False]]


def test_a_link_to_a_host_nobody_listed_is_left_out(make_report: MakeReport) -> None:
    report = make_report(3)
    shares, _ = heatmap._cells(["h1", "h2"], report.diagnosis.links, block=1)
    assert np.isfinite(shares).sum() == 2
