"""Slow ranks for programs: JSON of schema ``ncdiag/stragglers/1``, and CSV."""

import csv
import io
import math
from dataclasses import asdict
from typing import Any, Final

from ncdiag.model.straggler import StragglerReport
from ncdiag.model.text import visible
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/stragglers/1"
_DIGITS: Final = 7
_COLUMNS: Final = (
    "rank",
    "host",
    "place",
    "group",
    "ratio",
    "score",
    "windows",
    "windows_total",
    "rules",
)


def render_stragglers_json(report: StragglerReport, source: str) -> bytes:
    """Everything; a figure that is not known is ``null``."""
    values = {name: _rounded(value) for name, value in asdict(report).items()}
    return layout({"schema": SCHEMA, "source": source, **values})


def render_stragglers_csv(report: StragglerReport) -> bytes:
    """A row a slow rank, the slowest first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in report.slow:
        values = {name: _rounded(value) for name, value in asdict(one).items()}
        values["rules"] = " ".join(one.rules)
        writer.writerow(
            visible(value) if isinstance(value, str) else value
            for value in (values[name] for name in _COLUMNS)
        )
    return text.getvalue().encode(errors="backslashreplace")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
