"""The page of a burn-in in a real browser: Chromium, without a network."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "importable"))

from burn_in_reports import HOSTILE, burn_in_report

from ncdiag.model.burn_in import BurnInReport
from ncdiag.model.verdict import SweepReport
from ncdiag.report.burn_in import html_report
from ncdiag.report.burn_in.presentable import presentable

OpenPage = Callable[..., Any]


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    """Open a report's page; at the end it must have complained of nothing and asked for nothing."""
    file = tmp_path / "report.html"
    troubles: list[str] = []
    requests: list[str] = []
    contexts: list[Any] = []

    def open_page(report: BurnInReport, width: int = 1280) -> Any:
        file.write_text(html_report.render(presentable(report)), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    assert [url for url in requests if not url.startswith("data:image/png")] == [file.as_uri()] * (
        len(contexts)
    )


def test_the_page_shows_verdict_lists_stages_and_map_and_takes_no_markup_from_outside(
    visit: OpenPage, make_report: Callable[..., SweepReport]
) -> None:
    page = visit(burn_in_report(make_report(12, slow_senders={"h3": 0.2}), hosts=13, text=HOSTILE))
    assert page.locator("h1").inner_text().endswith("Met")
    assert page.locator("#chosen").inner_text() == "h[1-2,4,6-7,9-10,12]"
    assert page.locator("#spares").inner_text() == "h13"
    assert page.locator("#isolate").inner_text() == "h[3,5]"
    stages = page.locator(".stages tbody tr td:first-child").all_inner_texts()
    assert stages == ["reach", "health", "local", "pairs", "collective", "load"]
    bars = page.locator(".stages .bar").evaluate_all(
        "bars => bars.map(bar => bar.getBoundingClientRect()).map(box => [box.left, box.width])"
    )
    assert [left for left, _ in bars] == sorted(left for left, _ in bars)
    assert max(width for _, width in bars) == bars[3][1]  # pairs took longest
    hosts = page.locator(".hosts tbody th").all_inner_texts()
    assert hosts[:4] == ["h3", "h5", "h8", "h11"]
    assert page.locator("img.heatmap").evaluate("image => image.naturalWidth") > 100
    assert page.locator("script").count() == 0
    assert "<script>alert(1)</script>" in page.locator("main").inner_text()
    narrow = visit(burn_in_report(), width=400)
    assert narrow.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
