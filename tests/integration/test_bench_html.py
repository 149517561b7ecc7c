"""The page of a benchmark in a real browser: Chromium, without a network."""

from pathlib import Path
from typing import Any

import pytest
from bench_cases import run

from ncdiag.diagnose.bench import judge
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchReport
from ncdiag.report.bench import html_report

HOSTILE = "<script>alert(1)</script>"


def report() -> BenchReport:
    runs = [
        run((HOSTILE, "b"), shares={2**28: 0.4}, slow_process=3, seed=1),
        run((HOSTILE, "b"), shares={2**28: 0.4}, seed=2),
    ]
    judged = judge(runs, Collective.ALL_REDUCE)
    return BenchReport(
        started="2026-11-30T10:00:00Z",
        seconds=12.5,
        collective="all_reduce",
        engine="nccl-tests",
        launcher="ssh",
        verdict=judged.verdict,
        curves=judged.curves,
        findings=judged.findings,
        notes=(HOSTILE,),
        unreachable={HOSTILE: HOSTILE},
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_errors_or_requests(browser: Any, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "bench.html"
    file.write_text(html_report.render(report()), encoding="utf-8")
    troubles: list[str] = []
    requests: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    try:
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        assert page.locator("h1").inner_text().endswith("Faulty")
        assert page.locator("article.finding").count() == 2
        assert page.locator("svg.chart .ring").count() == 1
        line = page.locator("svg.chart .measured").bounding_box()
        assert line["height"] > 100
        assert page.locator("svg.chart .measured").evaluate(
            "line => getComputedStyle(line).stroke"
        ) != page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        assert HOSTILE in page.locator("main").inner_text()
        assert page.locator("script").count() == 0
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
    finally:
        context.close()
    assert troubles == []
    assert requests == [file.as_uri()]
