"""The findings of hosts as a table: a row a finding, and a row for each host that has none."""

import csv
import io
from typing import Final

from ncdiag.model.health import HealthReport
from ncdiag.model.text import visible
from ncdiag.report.csv_cells import as_text

COLUMNS: Final = (
    "host",
    "fitness",
    "check",
    "severity",
    "device",
    "measured",
    "limit",
    "text",
    "next",
)


def render_health_csv(report: HealthReport) -> str:
    """The table; of a host that gave no facts ``text`` is the reason."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for host in report.hosts:
        who = (host.host, host.fitness.value)
        for one in host.findings:
            what = (one.check, one.severity.value, one.device, one.measured, one.limit)
            writer.writerow(map(_cell, (*who, *what, one.text, one.next)))
        if not host.findings:
            writer.writerow(map(_cell, (*who, *[""] * 5, host.error, "")))
    return table.getvalue()


def _cell(value: str | None) -> str:
    return as_text(visible(value or ""))
