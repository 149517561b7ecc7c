"""``links.csv``: a row per measured direction of a pair."""

import csv
import io
import math
from operator import attrgetter

from ncdiag.model.verdict import LinkStatus, SweepReport
from ncdiag.report.csv_cells import as_text
from ncdiag.report.json_report import DECIMALS

COLUMNS = (
    "source",
    "target",
    "rail",
    "round",
    "engine",
    "bytes",
    "measured_gbit_per_s",
    "expected_gbit_per_s",
    "efficiency",
    "fleet_ratio",
    "idle",
    "status",
    "error",
)


def render(report: SweepReport) -> str:
    """The table as CSV; an empty cell is a figure that is not there."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    values = attrgetter(*COLUMNS)
    writer.writerows(
        map(_cell, values(link))
        for link in report.diagnosis.links
        if link.status is not LinkStatus.UNTESTED
    )
    return table.getvalue()


def _cell(value: float | str | None) -> float | str | None:
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    return as_text(value) if isinstance(value, str) else value
