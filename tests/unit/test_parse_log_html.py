import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ncdiag.model.finding import Postmortem
from ncdiag.model.log import LogEvidence, NcclProcess, Speaker
from ncdiag.model.place import Clock, Moment, Place
from ncdiag.report.postmortem import html_report
from ncdiag.report.postmortem.timeline import draw

Case = tuple[Postmortem, LogEvidence]
MakeCase = Callable[..., Case]

HOSTILE = "<script>alert(1)</script>{{ 7 * 7 }}{% raw %}<img src=x onerror=alert(2)>\x1b[2J"


def test_the_page_is_one_file_that_asks_for_nothing(make_case: MakeCase) -> None:
    page = html_report.render(*make_case(2))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy[1]
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert not re.search(r'\sstyle="', page)


def test_verdict_story_findings_timeline_and_tables_follow_one_another(
    make_case: MakeCase,
) -> None:
    page = html_report.render(*make_case(2))
    titles = re.findall(r"<h[12][^>]*>(?:<span.*?</span>)?([^<]+)<", page)
    assert titles == [
        "Findings",
        "Isolate",
        "What happened",
        "Findings",
        "When and where",
        "Hosts",
        "Environment that differs",
        "Benchmarks",
        "Read",
    ]


def test_markup_templates_and_escapes_of_a_log_are_text(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2, quote=HOSTILE)
    first = replace(
        postmortem.findings[0],
        suspects=[replace(postmortem.findings[0].suspects[0], name=HOSTILE)],
        attributes={HOSTILE: HOSTILE},
        victims=[HOSTILE],
        explanation=HOSTILE,
        actions=[HOSTILE],
    )
    evidence.events[0].text = HOSTILE
    evidence.processes[0].environment[HOSTILE] = HOSTILE
    hostile = replace(
        postmortem,
        findings=[first, *postmortem.findings[1:]],
        story=[HOSTILE],
        isolate=[replace(postmortem.isolate[0], host=HOSTILE, because=HOSTILE)],
    )
    page = html_report.render(hostile, evidence)
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("{{ 7 * 7 }}") > 8


def test_of_many_findings_and_rows_a_page_holds_the_first(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    many = replace(postmortem, findings=[postmortem.findings[0]] * 1000)
    page = html_report.render(many, evidence)
    assert page.count('<article class="finding') == 200
    assert "And 800 more." in page


def test_long_lines_and_many_marks_keep_the_page_small(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2, quote="x" * 65_536)
    echo = evidence.events[1]
    root, other, warning = postmortem.findings
    attributes = [{"status": f"{number}"} for number in range(3000)]
    findings = [replace(other, attributes=one, evidence=[]) for one in attributes]
    evidence.events += [replace(echo, attributes=one) for one in attributes] * 2
    page = html_report.render(
        replace(postmortem, findings=[root, other, *findings, warning]), evidence
    )
    assert len(page) < 4_000_000
    assert draw(postmortem, evidence, {}).rows[0].marks[-1].role == "root"


def test_hosts_that_are_alike_share_a_row(make_case: MakeCase) -> None:
    page = html_report.render(*make_case(200))
    assert "<td>gpu[001-200]</td>" in page
    assert len(page) < 600_000


def test_a_row_of_the_timeline_is_a_host_and_roots_stand_first(make_case: MakeCase) -> None:
    picture = draw(*make_case(4), {})
    assert [row.name for row in picture.rows] == ["gpu004", "gpu001", "gpu002", "gpu003"]
    (root,) = picture.rows[0].marks
    assert (root.role, root.finding, root.times) == ("root", 1, 8)
    assert root.start is not None
    assert root.end is not None
    assert 0 < root.start < root.end < 1
    assert {mark.role for mark in picture.rows[1].marks} == {"consequence", "warning"}
    assert picture.rows[1].first == 0.0
    assert picture.rows[1].last == 1.0
    assert not picture.untimed


def test_ticks_are_round_times_within_the_axis(make_case: MakeCase) -> None:
    ticks = draw(*make_case(2), {}).ticks
    assert [tick.label for tick in ticks] == [
        "22:14:00", "22:16:00", "22:18:00", "22:20:00", "22:22:00",
    ]  # fmt: skip
    assert all(0 <= tick.at <= 1 for tick in ticks)


def test_without_a_clock_a_mark_stands_at_its_line_and_the_page_says_so(
    make_case: MakeCase,
) -> None:
    picture = draw(*make_case(3, clock=False), {})
    assert picture.rows[0].marks[0].start == 0.4
    assert "share no clock" in picture.note
    assert [tick.label for tick in picture.ticks] == ["first line", "half", "last line"]


def test_what_has_no_time_beside_what_has_stands_apart(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(6)
    evidence.events[0].place = evidence.events[0].place._replace(time=None)
    picture = draw(postmortem, evidence, {})
    assert picture.rows[0].marks[0].start is None
    assert picture.untimed
    assert "no time" in html_report.render(postmortem, evidence)


@pytest.mark.parametrize("seconds", [float("1e300"), -1e300, 0.0, float("inf"), float("nan")])
def test_any_time_makes_a_page(seconds: float, make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    place = Place("logs/gpu001.log", 3, Moment("odd", seconds, Clock.WALL))
    evidence.events[0].place = place
    assert html_report.render(postmortem, evidence)


def test_a_finding_that_no_event_tells_of_is_on_the_timeline(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2, clock=False)
    evidence.events.clear()
    rows = {row.name: row.marks for row in draw(postmortem, evidence, {}).rows}
    assert [mark.finding for mark in rows["gpu002"]] == [2, 1]
    assert [mark.finding for mark in rows["gpu001"]] == [3]


def test_a_line_without_a_host_belongs_to_the_only_one_that_speaks_in_its_file(
    make_case: MakeCase,
) -> None:
    postmortem, evidence = make_case(2)
    evidence.events[0].speaker = Speaker(rank=9)
    assert draw(postmortem, evidence, {}).rows[0].name == "gpu002"
    evidence.processes.append(NcclProcess(host="gpu009", pid="1", first=evidence.events[0].place))
    assert draw(postmortem, evidence, {}).rows[0].name == "logs/gpu002.log"


def test_a_time_without_a_year_is_one_of_the_year_of_the_others(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(2)
    before = draw(postmortem, evidence, {})
    first_of_year = datetime(2023, 1, 1, tzinfo=UTC).timestamp()
    place = evidence.events[0].place
    seconds = place.time.seconds - first_of_year if place.time else 0.0
    evidence.events[0].place = place._replace(time=Moment("no year", seconds, Clock.WALL))
    after = draw(postmortem, evidence, {})
    assert after.rows[0].marks[0].start == pytest.approx(before.rows[0].marks[0].start)


def test_hosts_that_show_nothing_are_named_together(make_case: MakeCase) -> None:
    postmortem, evidence = make_case(5)
    evidence.events = [event for event in evidence.events if event.speaker.host != "gpu003"]
    picture = draw(postmortem, evidence, {})
    assert picture.quiet == ["gpu003"]
    assert "Nothing was found on: gpu003." in html_report.render(postmortem, evidence)


def test_names_of_the_operator_go_into_the_timeline(make_case: MakeCase) -> None:
    picture = draw(*make_case(2), {"gpu002": "rack7-2"})
    assert picture.rows[0].name == "rack7-2"


def test_a_log_without_anything_makes_a_page() -> None:
    from ncdiag.diagnose.postmortem import diagnose

    page = html_report.render(diagnose(LogEvidence()), LogEvidence())
    assert "<svg" not in page
    assert page.endswith("</html>")
