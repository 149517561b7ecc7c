import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from ncdiag.model.verdict import LinkStatus, LinkVerdict, SweepReport
from ncdiag.report import json_report

MakeReport = Callable[..., SweepReport]

CONTRACT = {
    None: "schema verdict started seconds plan hosts links culprits contention untested isolate "
    "good",
    "plan": "mode hosts rounds pairs engine launcher",
    "hosts": "name status efficiency reason",
    "links": "source target rail status measured_gbit_per_s expected_gbit_per_s expected_from "
    "efficiency fleet_gbit_per_s fleet_ratio bytes tests min_gbit_per_s idle error",
    "culprits": "kind name direction status confidence efficiency explains contradicts reason next",
    "contention": "name alone_gbit_per_s together_gbit_per_s pairs",
}


@pytest.mark.parametrize("part", CONTRACT)
def test_every_key_of_the_contract_is_there(part: str | None, faulty_report: SweepReport) -> None:
    document = json.loads(json_report.render(faulty_report))
    record = document if part is None else document[part]
    first = record[0] if isinstance(record, list) else record
    assert set(CONTRACT[part].split()) <= set(first)


def test_the_document_says_what_was_found(faulty_report: SweepReport) -> None:
    document = json.loads(json_report.render(faulty_report))
    assert document["schema"] == "ncdiag/sweep/1"
    assert document["verdict"] == "faulty"
    assert document["isolate"] == ["h3"]
    assert document["good"] == ["h1", "h2", "h4", "h5", "h6", "h7"]
    assert [one["name"] for one in document["culprits"]] == ["h3", "h5->h6"]
    assert len(document["links"]) == len(faulty_report.diagnosis.links)


def test_figures_are_cut_to_six_decimals(make_report: MakeReport) -> None:
    document = json.loads(json_report.render(make_report(2)))
    assert document["seconds"] == 42.424
    for link in document["links"]:
        assert link["measured_gbit_per_s"] == round(link["measured_gbit_per_s"], 6)


def test_a_figure_that_is_no_number_becomes_null(make_report: MakeReport) -> None:
    report = make_report(2)
    odd = LinkVerdict(
        source="a",
        target="b",
        rail=0,
        status=LinkStatus.INCONCLUSIVE,
        measured_gbit_per_s=math.inf,
        efficiency=math.nan,
    )
    report = replace(report, diagnosis=replace(report.diagnosis, links=(odd,)))
    link = json.loads(json_report.render(report))["links"][0]
    assert link["efficiency"] is None
    assert link["measured_gbit_per_s"] is None


def test_lists_have_a_line_an_item(make_report: MakeReport) -> None:
    report = make_report(3)
    lines = json_report.render(report).decode().splitlines()
    assert sum('"source"' in line for line in lines) == len(report.diagnosis.links)
