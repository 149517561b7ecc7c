"""``bench.csv``: a row for each size of each number of hosts."""

import csv
import io

from ncdiag.model.bench import BenchCurve, BenchPoint, BenchReport
from ncdiag.report.bench import describe

COLUMNS = (
    "collective",
    "hosts",
    "ranks",
    "size_bytes",
    "time_us",
    "algbw_gb_per_s",
    "busbw_gb_per_s",
    "min_busbw_gb_per_s",
    "max_busbw_gb_per_s",
    "repeats",
    "wrong",
    "expected_time_us",
    "expected_busbw_gb_per_s",
    "efficiency",
    "cliff",
)


def render(report: BenchReport) -> str:
    """The table; a figure that is not known is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for curve in report.curves:
        for point in curve.points:
            writer.writerow(_row(report.collective, curve, point))
    return text.getvalue()


def _row(collective: str, curve: BenchCurve, point: BenchPoint) -> list[str | int]:
    return [
        collective,
        len(curve.hosts),
        curve.ranks,
        point.size_bytes,
        _figure(point.time_us),
        _figure(point.algbw_gb_per_s),
        _figure(point.busbw_gb_per_s),
        _figure(point.min_busbw_gb_per_s),
        _figure(point.max_busbw_gb_per_s),
        point.repeats,
        "" if point.wrong is None else point.wrong,
        _figure(point.expected_time_us),
        _figure(point.expected_busbw_gb_per_s),
        _figure(describe.share(point)),
        str(point.cliff).lower(),
    ]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
