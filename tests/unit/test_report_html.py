import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ncdiag.model.verdict import SweepReport
from ncdiag.report import columns, html_report

MakeReport = Callable[..., SweepReport]

HOSTILE = "<script>alert(1)</script>"


def data_of(page: str) -> dict[str, Any]:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def unpacked(packed: dict[str, Any]) -> dict[str, Any]:
    raw, arrays = zlib.decompress(base64.b64decode(packed["data"])), {}
    for name, kind in packed["columns"]:
        array = np.frombuffer(raw, columns._TYPES[kind], packed["count"])
        arrays[name], raw = array, raw[array.nbytes :]
    assert raw == b""
    return arrays


def test_the_page_names_verdict_culprits_and_hosts_to_isolate(faulty_report: SweepReport) -> None:
    page = html_report.render(faulty_report)
    assert "Faulty</h1>" in page
    assert '<code id="isolate">h3</code>' in page
    assert "host h3 (sending)" in page
    assert "link h5-&gt;h6" in page
    assert "ssh: connect to host h8 port 22: Connection refused" in page


def test_the_policy_allows_exactly_the_pages_own_script_and_style(
    faulty_report: SweepReport,
) -> None:
    page = html_report.render(faulty_report)
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_the_page_asks_nobody_for_anything(faulty_report: SweepReport) -> None:
    page = html_report.render(faulty_report)
    assert re.findall(r"""(?:src|href)=["'](?!data:)[^"']*""", page) == []
    assert "://" not in page
    assert "url(" not in page


def test_text_from_outside_is_never_markup(make_report: MakeReport) -> None:
    report = make_report(
        [HOSTILE, "b", "c"],
        slow_senders={HOSTILE: 0.2},
        unreachable={"c": "</script><img src=x onerror=alert(2)>\u2028"},
        errors={("b", HOSTILE): "--><!--<script>"},
        notes=["<b>&amp;"],
    )
    page = html_report.render(replace(report, settings={HOSTILE: HOSTILE}))
    assert page.lower().count("<script") == 2
    assert page.lower().count("</script") == 2
    assert "<img" not in page
    assert "&lt;b&gt;&amp;amp;" in page
    assert data_of(page)["names"][0] == HOSTILE


def test_the_packed_columns_hold_every_figure(make_report: MakeReport) -> None:
    report = make_report(
        5, slow_links={("h2", "h4"): 0.5}, errors={("h1", "h2"): "hung", ("h1", "h3"): "hung"}
    )
    data = data_of(html_report.render(report))
    packed, table = data["links"], unpacked(data["links"])
    for place, link in enumerate(report.diagnosis.links):
        assert data["names"][table["source"][place]] == link.source
        assert data["names"][table["target"][place]] == link.target
        assert packed["statuses"][table["status"][place]] == link.status
        assert packed["error_texts"][table["error"][place]] == (link.error or "")
        if link.error:
            assert np.isnan(table["measured"][place])
            assert table["efficiency"][place] == 0xFFFF
            continue
        assert table["measured"][place] == pytest.approx(link.measured_gbit_per_s, rel=1e-3)
        assert table["efficiency"][place] / 10_000 == pytest.approx(link.efficiency, abs=1e-4)
        assert packed["expected_rates"][table["expected"][place]] == link.expected_gbit_per_s
        assert table["idle"][place] == pytest.approx(link.idle * 100, abs=0.51)


def test_too_many_different_errors_are_told_apart_in_the_csv_only(
    make_report: MakeReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_MAX_ERRORS", 4)
    report = make_report(4, errors={("h1", f"h{number}"): f"e{number}" for number in (2, 3, 4)})
    packed = data_of(html_report.render(report))["links"]
    texts = [packed["error_texts"][number] for number in unpacked(packed)["error"][:3]]
    assert texts == ["e2", "e3", "see links.csv for the error"]


def test_of_too_many_links_the_worst_are_kept(
    make_report: MakeReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_MAX_LINKS", 2)
    report = make_report(4, slow_links={("h4", "h1"): 0.5, ("h3", "h1"): 0.5})
    packed = data_of(html_report.render(report))["links"]
    assert (packed["count"], packed["total"]) == (2, 12)
    assert set(unpacked(packed)["status"]) == {packed["statuses"].index("faulty")}


def test_an_empty_sweep_still_makes_a_page(make_report: MakeReport) -> None:
    page = html_report.render(make_report(0))
    assert data_of(page)["links"]["count"] == 0


def test_figures_that_are_no_numbers_do_not_stop_the_page(make_report: MakeReport) -> None:
    report = make_report(2)
    odd = replace(report.diagnosis.links[0], efficiency=float("nan"), idle=float("inf"))
    report = replace(report, diagnosis=replace(report.diagnosis, links=(odd,)))
    table = unpacked(data_of(html_report.render(report))["links"])
    assert (table["efficiency"][0], table["idle"][0]) == (0xFFFF, 0xFF)


def test_figures_beyond_a_column_are_cut_to_it(make_report: MakeReport) -> None:
    report = make_report(2)
    odd = replace(report.diagnosis.links[0], efficiency=-1.0, fleet_ratio=1e308, rail=70_000)
    report = replace(report, diagnosis=replace(report.diagnosis, links=(odd,)))
    table = unpacked(data_of(html_report.render(report))["links"])
    assert (table["efficiency"][0], table["fleet"][0], table["rail"][0]) == (0, 0xFFFE, 0xFFFF)
