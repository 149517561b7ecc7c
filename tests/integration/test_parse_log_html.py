"""The page of a post-mortem in a real browser: Chromium, without a network."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ncdiag.model.finding import Postmortem
from ncdiag.model.log import LogEvidence
from ncdiag.report.postmortem import html_report

Case = tuple[Postmortem, LogEvidence]
MakeCase = Callable[..., Case]

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> {{ 7*7 }} </svg></style>"

OpenPage = Callable[..., Any]


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    """Opens the page of a case; at the end nothing may have been complained about or asked for."""
    contexts: list[Any] = []
    troubles: list[str] = []
    requests: list[str] = []
    file = tmp_path / "page.html"

    def open_page(case: Case, *, width: int = 1280, **options: Any) -> Any:
        file.write_text(html_report.render(*case), encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
    assert requests == [file.as_uri()] * len(contexts)


def test_verdict_and_whom_to_isolate_are_seen_at_once(visit: OpenPage, make_case: MakeCase) -> None:
    page = visit(make_case(2))
    assert page.locator("h1").inner_text().endswith("Findings")
    assert page.locator("#isolate").inner_text() == "gpu002"
    box = page.locator("#isolate").bounding_box()
    assert box["y"] + box["height"] < 400


def test_markup_in_a_log_shows_as_text(visit: OpenPage, make_case: MakeCase) -> None:
    page = visit(make_case(2, quote=HOSTILE))
    assert HOSTILE in page.locator("#finding-2 .lines").inner_text()
    assert HOSTILE in page.locator("svg .consequence title").text_content()
    assert page.locator("script").count() == 0
    assert page.locator("img").count() == 0


def test_a_mark_leads_to_its_finding(visit: OpenPage, make_case: MakeCase) -> None:
    page = visit(make_case(2))
    page.locator("svg a.consequence").first.click()
    assert page.url.endswith("#finding-2")
    assert page.locator("#finding-2").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_systems_colours(
    scheme: str, visit: OpenPage, make_case: MakeCase
) -> None:
    page = visit(make_case(2), color_scheme=scheme)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in colour[4:-1].split(",")]
    assert (sum(channels) > 3 * 128) == (scheme == "light")


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_but_tables_and_the_timeline_is_wider_than_the_window(
    width: int, visit: OpenPage, make_case: MakeCase
) -> None:
    page = visit(make_case(3, quote="x" * 2000), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("hosts", [2, 200])
def test_names_and_marks_of_the_timeline_do_not_run_into_one_another(
    hosts: int, visit: OpenPage, make_case: MakeCase
) -> None:
    page = visit(make_case(hosts))
    names = [one.bounding_box() for one in page.locator("svg .host").all()]
    assert len(names) == hosts
    left = min(one.bounding_box()["x"] for one in page.locator("svg .base").all()[:1])
    assert all(name["x"] + name["width"] < left for name in names)
    bottoms = [name["y"] + name["height"] for name in names]
    tops = [name["y"] for name in names]
    assert all(top >= bottom - 2 for bottom, top in zip(bottoms, tops[1:], strict=False))
    assert min(name["height"] for name in names) >= 9
