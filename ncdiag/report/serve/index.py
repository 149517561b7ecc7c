"""The index: the last reports, each with its kind, time, verdict and files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

from ncdiag.model.text import visible
from ncdiag.report import page
from ncdiag.report.serve.head import ReportHead

_TONES: Final = {
    "healthy": "healthy",
    "met": "healthy",
    "faulty": "faulty",
    "short": "faulty",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A report in the folder ``name``, which may be below another, and its files that are there."""

    name: str
    head: ReportHead
    files: Sequence[str]


def render_index(reports: Sequence[Shown], *, left_out: int = 0) -> str:
    """The page; names come from a folder, and are escaped."""
    style = page.read("page.css")
    text: str = (
        page.environment()
        .get_template("reports_index.html.j2")
        .render(
            reports=[_row(one) for one in reports],
            left_out=left_out,
            style=Markup(style),  # noqa: S704 -- our own file
            style_hash=page.sha256(style),
        )
    )
    return text


def _row(one: Shown) -> dict[str, object]:
    pages = [name for name in one.files if name.endswith(".html")]
    return {
        "name": visible(one.name),
        "page": _link(one.name, pages[0]) if pages else None,
        "kind": visible(one.head.kind) or "unknown",
        "started": visible(one.head.started).replace("T", " ").removesuffix("Z"),
        "verdict": visible(one.head.verdict) or "unknown",
        "tone": _TONES.get(one.head.verdict, "degraded"),
        "files": [(name, _link(one.name, name)) for name in one.files if name not in pages],
    }


def _link(report: str, file: str) -> str:
    return f"/reports/{quote(report)}/{quote(file)}"
