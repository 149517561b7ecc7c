"""The page in a real browser: Chromium, without a network."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ncdiag.model.verdict import SweepReport
from ncdiag.report import html_report

MakeReport = Callable[..., SweepReport]

HOSTILE = "<script>alert(1)</script>"


class Visit:
    """An open page, and everything that it complained about or asked for."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=120_000)

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def column(self, table: str, number: int) -> list[str]:
        return self.page.locator(f"{table} tbody tr td:nth-child({number})").all_inner_texts()

    def found(self, table: str) -> str:
        return self.page.locator(f"{table} .found-rows").inner_text()


OpenPage = Callable[..., Visit]


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[OpenPage]:
    visits: list[Visit] = []

    def open_page(report: SweepReport, **options: Any) -> Visit:
        file = tmp_path / "report.html"
        file.write_text(html_report.render(report), encoding="utf-8")
        visits.append(Visit(browser, file, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.context.close()
        assert one.troubles == []
        assert one.requests == [(tmp_path / "report.html").as_uri()]


def test_the_worst_links_stand_first(visit: OpenPage, faulty_report: SweepReport) -> None:
    opened = visit(faulty_report)
    assert opened.page.locator("h1").inner_text().endswith("Faulty")
    assert opened.page.locator("#isolate").inner_text() == "h3"
    sources = opened.column("#links", 1)
    assert sources[0] == "h5"
    assert set(sources[1:7]) == {"h3"}
    assert opened.column("#links", 6)[:2] == ["9.9 %", "20 %"]


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_round(
    visit: OpenPage, make_report: MakeReport
) -> None:
    opened = visit(make_report(12, errors={("h1", "h2"): "hung"}))
    head = opened.page.locator("#links thead th", has_text="Source")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert opened.column("#links", 1)[:22] == ["h1"] * 11 + ["h2"] * 11
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert opened.column("#links", 1)[0] == "h12"
    measured = opened.page.locator("#links thead th", has_text="Measured").get_by_role("button")
    for _ in range(2):
        measured.click()
        assert "hung" not in " ".join(opened.column("#links", 11))
    opened.page.locator("#links").get_by_role("button", name="Last").click()
    assert opened.column("#links", 11)[-1] == "hung"


def test_the_filter_finds_hosts_directions_and_errors(
    visit: OpenPage, make_report: MakeReport
) -> None:
    opened = visit(make_report(12, errors={("h1", "h2"): "did not cross eth0"}))
    box = opened.page.get_by_label("Filter links")
    for text, rows in (("h12", 22), ("h1->h2", 1), ("h3->", 11), ("->h3", 11), ("crOSS", 1)):
        box.fill(text)
        assert opened.found("#links") == f"{rows} of 132 links"
    box.fill("h3 ->h4")
    assert opened.column("#links", 1) == ["h3"]
    box.fill("nowhere")
    assert opened.found("#links") == "0 of 132 links"


def test_the_status_filter_leaves_what_was_chosen(
    visit: OpenPage, faulty_report: SweepReport
) -> None:
    opened = visit(faulty_report)
    opened.page.locator("#links").get_by_role("button", name="faulty 7", exact=True).click()
    assert opened.column("#links", 3) == ["faulty"] * 7
    opened.page.locator("#hosts").get_by_role("button", name="not healthy 2").click()
    assert opened.column("#hosts", 1) == ["h3", "h8"]


def test_pages_follow_one_another(visit: OpenPage, make_report: MakeReport) -> None:
    opened = visit(make_report(12))
    links = opened.page.locator("#links")
    assert "1 to 25 of 132" in links.inner_text()
    first = opened.column("#links", 2)
    links.get_by_role("button", name="Next").click()
    assert "26 to 50 of 132" in links.inner_text()
    assert opened.column("#links", 2) != first
    links.get_by_role("button", name="Last").click()
    assert "126 to 132 of 132" in links.inner_text()
    assert links.get_by_role("button", name="Next").is_disabled()


def test_a_cell_of_the_map_tells_its_figures_and_leads_to_its_link(
    visit: OpenPage, make_report: MakeReport
) -> None:
    opened = visit(make_report(2, slow_links={("h1", "h2"): 0.25}, rails=2))
    canvas = opened.page.locator("#map canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 20, "y": box["height"] / 2 - 10})
    tip = opened.page.locator("#map .tip").inner_text()
    assert tip.startswith("h1 → h2 · rail ")
    assert "of 478 Mbit/s expected (2" in tip
    canvas.click(position={"x": box["width"] - 20, "y": box["height"] / 2 - 10})
    assert opened.column("#links", 1) == ["h1", "h1"]


def test_the_map_can_be_walked_with_the_keyboard(visit: OpenPage, make_report: MakeReport) -> None:
    opened = visit(make_report(3))
    canvas = opened.page.locator("#map canvas")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        canvas.press(key)
    assert opened.page.locator("#map .tip").inner_text().startswith("h2 → h3")
    canvas.press("Enter")
    assert opened.column("#links", 2) == ["h3"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_has_its_own_colours_in_the_dark(
    scheme: str, visit: OpenPage, make_report: MakeReport
) -> None:
    opened = visit(make_report(2), color_scheme=scheme)
    pixel = opened.page.locator("#map canvas").evaluate(
        "canvas => [...canvas.getContext('2d').getImageData(canvas.width - 16, 36, 1, 1).data]"
    )
    assert (sum(pixel[:3]) > 3 * 128) == (scheme == "light")


def test_a_host_that_is_a_script_does_nothing(visit: OpenPage, make_report: MakeReport) -> None:
    opened = visit(
        make_report(
            [HOSTILE, "<img src=x onerror=alert(2)>", "c", "d"],
            slow_senders={HOSTILE: 0.2},
            unreachable={"d": HOSTILE},
            errors={("c", HOSTILE): HOSTILE},
            notes=[HOSTILE],
        )
    )
    assert opened.page.locator("#isolate").inner_text() == HOSTILE
    assert HOSTILE in opened.column("#links", 1)
    assert HOSTILE in opened.column("#hosts", 1)
    assert opened.page.locator("script").count() == 2
    assert opened.page.locator("img").count() == 0


@pytest.mark.parametrize("hosts", [0, 1])
def test_a_sweep_without_links_still_opens(
    hosts: int, visit: OpenPage, make_report: MakeReport
) -> None:
    opened = visit(make_report(hosts))
    assert opened.column("#links", 1) == []


def test_512_hosts_stay_small_and_usable(
    visit: OpenPage, make_report: MakeReport, tmp_path: Path
) -> None:
    names = [f"gpu{number:03d}" for number in range(1, 513)]
    opened = visit(make_report(names, slow_links={("gpu010", "gpu200"): 0.4}))
    assert (tmp_path / "report.html").stat().st_size < 10_000_000
    assert opened.column("#links", 1)[0] == "gpu010"
    opened.page.get_by_label("Filter links").fill("gpu007->")
    assert opened.found("#links") == "511 of 261,632 links"
    opened.page.locator("#links thead").get_by_role("button", name="Target").click()
    assert opened.column("#links", 2)[0] == "gpu001"
    canvas = opened.page.locator("#map canvas").bounding_box()
    assert canvas["width"] <= 1280
