"""``report.html``: the whole sweep as one page that asks nobody for anything."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ncdiag.model.nodes import fold
from ncdiag.model.verdict import SweepReport, Verdict
from ncdiag.report import describe
from ncdiag.report.columns import pack
from ncdiag.report.palette import DARK, LIGHT

_TEMPLATES = Path(__file__).parent / "templates"
# In the order in which each uses what the ones before it define.
_SCRIPTS = ("links.js", "grid.js", "heatmap.js", "page.js")
_MAX_CULPRITS = 200

# Inside a script element only these could end it, or start something else (HTML standard,
# "Restrictions for contents of script elements"); the last two were line ends in JavaScript.
_JSON_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render(report: SweepReport) -> str:
    """The page. Its content security policy allows its own style and script, by hash, only."""
    style = _read("page.css")
    script = "\n".join(_read(name) for name in _SCRIPTS)
    return (
        _environment()
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
            style_hash=_hash(style),
            script=Markup(script),  # noqa: S704 -- our own files
            script_hash=_hash(script),
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
    text = msgspec.json.encode(value).decode()
    for char, escape in _JSON_ESCAPES.items():
        text = text.replace(char, escape)
    return text


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
