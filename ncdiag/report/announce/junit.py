"""JUnit XML, as GitLab, Jenkins and GitHub's test reporters read it."""

import re
from collections.abc import Iterator
from typing import Final

from ncdiag.report.announce.announcement import Announcement, Item, Status
from ncdiag.report.page import environment

# XML 1.0 has no form for these, escaped or not (W3C, "Extensible Markup Language", 2.2).
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(announcement: Announcement) -> str:
    """A test case for the verdict, and one for each host and check.

    What failed is a failure, what could not be decided is skipped, a warning passes with its text.
    """
    cases = [_verdict(announcement), *announcement.items]
    statuses = [case.status for case in cases]
    text: str = (
        environment()
        .get_template("junit.xml.j2")
        .render(
            suite=f"ncdiag {announcement.command}",
            started=announcement.started.removesuffix("Z"),
            seconds=f"{announcement.seconds:.3f}",
            tests=len(cases),
            failures=statuses.count(Status.FAILED),
            skipped=statuses.count(Status.UNDECIDED),
            cases=[_Case(announcement, case) for case in cases],
            properties=dict(_properties(announcement)),
        )
    )
    return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), f"{text}\n")


class _Case:
    """One test case as the template wants it."""

    def __init__(self, announcement: Announcement, item: Item) -> None:
        self.status = item.status
        self.classname = f"ncdiag.{announcement.command}.{item.about}"
        on_host = item.host is not None and item.host not in item.name
        self.name = f"{item.name} on {item.host}" if on_host else item.name
        self.seconds = f"{announcement.seconds:.3f}" if item.about == "verdict" else "0"
        self.text = item.text or f"{item.status}"
        self.details = "\n".join(part for part in (item.text, _next(item)) if part)


def _next(item: Item) -> str:
    return f"next: {item.next}" if item.next else ""


def _verdict(announcement: Announcement) -> Item:
    return Item(
        about="verdict",
        name=announcement.command,
        status=announcement.status,
        text=f"{announcement.verdict}: {announcement.headline}",
    )


def _properties(announcement: Announcement) -> Iterator[tuple[str, str]]:
    yield "verdict", announcement.verdict
    yield "interrupted", f"{announcement.interrupted}".lower()
    yield "isolate", ",".join(announcement.isolate)
    if announcement.report is not None:
        yield "report", announcement.report
