"""``report.html``: the whole sweep as one page that asks nobody for anything."""

from typing import Any

from markupsafe import Markup

from ncdiag.model.json_text import encode
from ncdiag.model.nodes import fold
from ncdiag.model.verdict import SweepReport, Verdict
from ncdiag.report import describe, page
from ncdiag.report.columns import pack
from ncdiag.report.palette import DARK, LIGHT

# In the order in which each uses what the ones before it define.
_SCRIPTS = ("links.js", "grid.js", "heatmap.js", "page.js")
_MAX_CULPRITS = 200

# Inside a script element only these could end it, or start something else (HTML standard,
# "Restrictions for contents of script elements"); the last two were line ends in JavaScript.
_JSON_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
}


def render(report: SweepReport) -> str:
    """The page. Its content security policy allows its own style and script, by hash, only."""
    style = page.read("page.css")
    script = "\n".join(page.read(name) for name in _SCRIPTS)
    return (
        page.environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            diagnosis=report.diagnosis,
            describe=describe,
            fold=fold,
            symbol={Verdict.HEALTHY: "✓", Verdict.FAULTY: "!", Verdict.INCONCLUSIVE: "?"},
            culprits=report.diagnosis.culprits[:_MAX_CULPRITS],
            more_culprits=max(0, len(report.diagnosis.culprits) - _MAX_CULPRITS),
            expectations=describe.expectations(report.diagnosis.links)[:20],
            style=Markup(style),  # noqa: S704 -- our own file
            style_hash=page.sha256(style),
            script=Markup(script),  # noqa: S704 -- our own files
            script_hash=page.sha256(script),
            data=Markup(_json(_data(report))),  # noqa: S704 -- escaped for its place by _json
        )
    )


def _data(report: SweepReport) -> dict[str, Any]:
    return {
        **pack(report),
        "good": report.diagnosis.good,
        "isolate": report.diagnosis.isolate,
        "palettes": {"light": LIGHT._asdict(), "dark": DARK._asdict()},
    }


def _json(value: object) -> str:
    text = encode(value).decode()
    for char, escape in _JSON_ESCAPES.items():
        text = text.replace(char, escape)
    return text
