"""A message for a chat: the JSON that Slack's incoming webhooks take, and those made after them."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ncdiag.model.json_text import encode
from ncdiag.model.nodes import fold
from ncdiag.report.announce.announcement import Announcement, Item, Status, one_line

# Of Slack's reference of blocks: a header takes 150 characters, the text of a section 3000.
_HEADER_CHARS: Final = 150
_SECTION_CHARS: Final = 2900
_LINE_CHARS: Final = 300
_FINDINGS: Final = 10
_WORDS: Final = {
    Status.PASSED: "OK",
    Status.FAILED: "FAILED",
    Status.UNDECIDED: "UNDECIDED",
    Status.WARNING: "WARNING",
}
# Slack's three control characters; all else of its markup needs one of them to reach anybody.
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def render_slack(announcement: Announcement, *, sender: str | None = None) -> bytes:
    """The message; ``sender`` is the host that says so."""
    head = f"ncdiag {announcement.command}: {announcement.verdict.upper()}"
    headline = cut(announcement.headline, _LINE_CHARS) or "-"
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": cut(head, _HEADER_CHARS)}},
        _section(headline),
    ]
    if lines := list(_lines(announcement)):
        blocks.append(_section("\n".join(lines)))
    if context := list(_context(announcement, sender)):
        elements = [{"type": "plain_text", "text": cut(one, _LINE_CHARS)} for one in context]
        blocks.append({"type": "context", "elements": elements})
    return encode({"text": escaped(f"{head}: {headline}"), "blocks": blocks})


def escaped(text: str) -> str:
    """``text`` so that it is no markup: no mention, no link."""
    return text.translate(_ESCAPES)


def cut(text: str, most: int) -> str:
    """``text`` on one line, of ``most`` characters at most."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _section(text: str) -> dict[str, Any]:
    shown = escaped(text)
    while len(shown) > _SECTION_CHARS:
        text = text.rpartition("\n")[0] or text[:_LINE_CHARS]
        shown = escaped(f"{text}\n...")
    return {"type": "section", "text": {"type": "mrkdwn", "text": shown, "verbatim": True}}


def _lines(announcement: Announcement) -> Iterator[str]:
    if announcement.isolate:
        yield cut(f"isolate: {fold(announcement.isolate)}", _LINE_CHARS)
    findings = announcement.findings
    for item in islice(findings, _FINDINGS):
        yield f"• {cut(_told(item), _LINE_CHARS)}"
    if len(findings) > _FINDINGS:
        yield f"and {len(findings) - _FINDINGS} more"


def _told(item: Item) -> str:
    named = item.host is None or item.host in item.name
    where = item.name if named else f"{item.host} {item.name}"
    return f"{_WORDS[item.status]} {where}: {item.text}" if item.text else f"{where}: {item.status}"


def _context(announcement: Announcement, sender: str | None) -> Iterator[str]:
    if sender is not None:
        yield f"from {sender}"
    yield f"ended {announcement.ended}"
    if announcement.report is not None:
        yield f"report: {announcement.report}"
