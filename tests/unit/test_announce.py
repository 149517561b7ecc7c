import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import announced_reports
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.cli.announcing import announcement_of
from ncdiag.model.burn_in import StageState
from ncdiag.model.verdict import SweepReport
from ncdiag.report.announce.announcement import Announcement, Item, Status, together
from ncdiag.report.announce.events import render_events
from ncdiag.report.announce.junit import render_junit
from ncdiag.report.announce.slack import render_slack

MakeReport = Callable[..., SweepReport]
HOSTILE = "<!channel> ]]> & \"'\x00\x1b[31m\x9b\u202e\ufffe\U0001f600\nnext line"


@pytest.fixture
def announced(
    make_report: MakeReport, make_case: Callable[..., Any]
) -> Callable[[str], list[Announcement]]:
    """An announcement of every kind, with ``text`` from outside in it."""

    def make(text: str) -> list[Announcement]:
        postmortem = make_case(quote=f"vendor err 129{text}")[0]
        reports = [
            make_report([f"h1{text}", "h2", "h3"], slow_senders={f"h1{text}": 0.2}),
            announced_reports.bench(text),
            announced_reports.health(text),
            announced_reports.burn_in(text),
            announced_reports.stragglers(text),
            postmortem,
        ]
        return [announcement_of(report) for report in reports]

    return make


def parsed(text: str) -> ET.Element:
    suite = ET.fromstring(text.encode()).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    return suite


def events_of(announcement: Announcement) -> list[Any]:
    return [json.loads(line) for line in render_events(announcement).splitlines()]


def test_every_report_says_its_command_and_that_something_is_wrong(
    announced: Callable[[str], list[Announcement]],
) -> None:
    found = announced("")
    assert [one.command for one in found] == [
        "sweep",
        "bench",
        "health",
        "burn-in",
        "stragglers",
        "parse-log",
    ]
    # The gate is met though hosts are out.
    passed = [one.command for one in found if one.status is not Status.FAILED]
    assert passed == ["burn-in"]
    assert all(one.headline and one.started.endswith("Z") for one in found)
    assert all(Status.FAILED in {item.status for item in one.findings} for one in found)


def test_a_healthy_sweep_passes_with_a_case_for_each_host(make_report: MakeReport) -> None:
    suite = parsed(render_junit(announcement_of(make_report(3))))
    assert suite.attrib["tests"] == "4"
    assert suite.attrib["failures"] == suite.attrib["skipped"] == "0"
    assert [case.get("name") for case in suite.findall("testcase")] == ["sweep", "h1", "h2", "h3"]


def test_junit_counts_what_failed_and_what_could_not_be_decided(
    faulty_report: SweepReport,
) -> None:
    suite = parsed(render_junit(announcement_of(faulty_report)))
    failed = [case.get("name") for case in suite.findall("testcase[failure]")]
    skipped = [case.get("name") for case in suite.findall("testcase[skipped]")]
    assert failed == ["sweep", "host h3 (sending)", "link h5->h6", "h3"]
    assert skipped == ["h8"]
    assert (suite.get("failures"), suite.get("skipped")) == ("4", "1")
    failure = suite.find("testcase[@name='host h3 (sending)']/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.endswith("next: ssh h3 ethtool -S eth0")


def test_outside_text_stays_text_in_junit(
    announced: Callable[[str], list[Announcement]],
) -> None:
    for one in announced(HOSTILE):
        suite = parsed(render_junit(one))
        assert {child.tag for case in suite.findall("testcase") for child in case} <= {
            "failure",
            "skipped",
            "system-out",
        }


@given(st.text(), st.text(), st.sampled_from(Status))
def test_any_text_makes_xml_json_and_a_message(name: str, text: str, status: Status) -> None:
    item = Item(about="check", name=name, status=status, text=text, next=text, host=text)
    one = Announcement(
        command="sweep", verdict="faulty", status=status, headline=text, isolate=(name,),
        started="2026-01-01T00:00:00Z", items=(item,) * 30, report=text,
    )  # fmt: skip
    parsed(render_junit(one))
    events_of(one)
    blocks = json.loads(render_slack(one, sender=text))["blocks"]
    for block in blocks:
        for element in block.get("elements", [block.get("text")]):
            assert 0 < len(element["text"]) <= 3000


def test_events_have_the_names_of_the_common_schema(faulty_report: SweepReport) -> None:
    verdict, *findings = events_of(announcement_of(faulty_report))
    assert verdict["@timestamp"] == "2026-11-29T03:13:27Z"
    assert verdict["event"] == {
        "kind": "alert",
        "module": "ncdiag",
        "dataset": "ncdiag.sweep",
        "action": "verdict",
        "outcome": "failure",
        "start": "2026-11-29T03:12:45Z",
        "duration": 42424242424,
    }
    assert verdict["ncdiag"]["hosts"] == {"passed": 6, "failed": 1, "undecided": 1, "warning": 0}
    assert verdict["ncdiag"]["isolate"] == ["h3"]
    # h3 itself is told of by its culprit.
    assert [(one.get("host", {}).get("name"), one["event"]["outcome"]) for one in findings] == [
        ("h3", "failure"),
        (None, "failure"),
        ("h8", "unknown"),
    ]
    assert findings[0]["message"].startswith("host h3 (sending): at 20 %: 6 of 6 links")


def test_nothing_hides_in_an_event(announced: Callable[[str], list[Announcement]]) -> None:
    for one in announced(HOSTILE):
        for line in render_events(one).decode().splitlines():
            assert not {unicodedata.category(char) for char in line} & {"Cc", "Cf", "Zl"}


def test_a_host_with_several_findings_counts_once_by_the_worst() -> None:
    one = announcement_of(announced_reports.health())
    counts = {status: one.count(status) for status in Status}
    assert counts == {
        Status.PASSED: 1, Status.FAILED: 1, Status.UNDECIDED: 0, Status.WARNING: 1
    }  # fmt: skip
    assert [(item.about, item.host) for item in one.findings] == [("check", "a"), ("check", "b")]
    assert one.isolate == ("a",)


def test_a_message_mentions_nobody_and_makes_no_link(
    announced: Callable[[str], list[Announcement]],
) -> None:
    for one in announced("<!channel> <http://x|y> & "):
        message = json.loads(render_slack(one, sender="head"))
        marked = [message["text"]]
        marked += [
            block["text"]["text"] for block in message["blocks"] if block["type"] == "section"
        ]
        text = "".join(marked)
        assert "<" not in text
        assert ">" not in text


def test_a_message_says_who_what_and_where(faulty_report: SweepReport) -> None:
    one = announcement_of(faulty_report, command="import")
    message = json.loads(render_slack(one, sender="head"))
    assert message["text"] == "ncdiag import: FAULTY: 2 culprits, isolate 1 of 8 hosts"
    header, headline, lines, context = message["blocks"]
    assert header["text"]["text"] == "ncdiag import: FAULTY"
    assert headline["text"]["text"] == "2 culprits, isolate 1 of 8 hosts"
    assert lines["text"]["text"].splitlines()[0] == "isolate: h3"
    assert lines["text"]["text"].splitlines()[1].startswith("• FAILED host h3 (sending): at 20 %")
    assert [one["text"] for one in context["elements"]] == [
        "from head",
        "ended 2026-11-29T03:13:27Z",
    ]


def test_a_long_message_is_cut_where_a_line_ends(make_report: MakeReport) -> None:
    names = [f"{'n' * 200}{number}" for number in range(30)]
    report = make_report(names, unreachable=dict.fromkeys(names, "<" * 400))
    message = json.loads(render_slack(announcement_of(report)))
    assert len(message["blocks"][2]["text"]["text"]) <= 3000
    assert message["blocks"][2]["text"]["text"].endswith("...")


def test_a_stage_that_ran_twice_is_one_case_as_it_went_worse() -> None:
    report = announced_reports.burn_in()
    first = report.stages[0]
    cut = replace(first, state=StageState.CUT, reason="no time")
    one = announcement_of(replace(report, stages=(first, cut, first)))
    stages = [(item.name, item.status) for item in one.items if item.about == "stage"]
    assert stages == [(first.stage, Status.WARNING)]


def test_several_reports_of_one_command_are_one_announcement(
    make_report: MakeReport, faulty_report: SweepReport
) -> None:
    healthy, faulty = announcement_of(make_report(2)), announcement_of(faulty_report)
    both = together([healthy, faulty])
    assert (both.status, both.verdict) == (Status.FAILED, "faulty")
    assert both.items == (*healthy.items, *faulty.items)
    assert both.headline == f"{healthy.headline}; {faulty.headline}"
    assert together([healthy]) is healthy
