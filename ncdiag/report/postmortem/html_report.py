"""A post-mortem as one page that asks nobody for anything."""

from collections.abc import Mapping
from types import MappingProxyType

from markupsafe import Markup

from ncdiag.model.finding import Postmortem, PostmortemVerdict, Role
from ncdiag.model.log import LogEvidence
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_count
from ncdiag.report import page
from ncdiag.report.describe import percent
from ncdiag.report.postmortem import describe
from ncdiag.report.postmortem.paths import ShortPaths
from ncdiag.report.postmortem.presentable import presentable
from ncdiag.report.postmortem.tables import tables
from ncdiag.report.postmortem.timeline import draw

_STYLES = ("page.css", "postmortem.css")
_MOST_FINDINGS = 200
_MOST_TABLE_ROWS = 1000
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


def render(
    postmortem: Postmortem, evidence: LogEvidence, names: Mapping[str, str] = _NO_NAMES
) -> str:
    """The page. It needs no script; its content security policy allows its own style only."""
    style = "\n".join(page.read(name) for name in _STYLES)
    shown = presentable(postmortem)
    return (
        page.environment()
        .get_template("postmortem.html.j2")
        .render(
            postmortem=shown,
            describe=describe,
            format_count=format_count,
            percent=percent,
            fold=fold,
            paths=ShortPaths(one.path for one in shown.inputs),
            tone={
                PostmortemVerdict.OK: "healthy",
                PostmortemVerdict.FINDINGS: "faulty",
                PostmortemVerdict.INCONCLUSIVE: "inconclusive",
                Role.ROOT: "faulty",
                Role.CONSEQUENCE: "degraded",
                Role.WARNING: "unknown",
            },
            symbol={
                PostmortemVerdict.OK: "✓",
                PostmortemVerdict.FINDINGS: "!",
                PostmortemVerdict.INCONCLUSIVE: "?",
            },
            findings=shown.findings[:_MOST_FINDINGS],
            more_findings=max(0, len(shown.findings) - _MOST_FINDINGS),
            picture=draw(postmortem, evidence, names),
            tables=tables(postmortem, evidence),
            most_rows=_MOST_TABLE_ROWS,
            style=Markup(style),  # noqa: S704 -- our own files
            style_hash=page.sha256(style),
        )
    )
