"""Writes the report directory of a benchmark: each file whole, or not at all."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ncdiag.model.bench import BenchReport
from ncdiag.report.bench.presentable import presentable
from ncdiag.report.write import write_file


def write_all(report: BenchReport, directory: Path) -> None:
    """Write every file of the report into ``directory``, which is made where it is missing.

    Files of an earlier report are replaced one by one. Raises :class:`UndecidedError` with one line
    where a file cannot be written.
    """
    report = presentable(report)
    for name, render in _renderers().items():
        write_file(directory / name, render(report))


def _renderers() -> Mapping[str, Callable[[BenchReport], str | bytes]]:
    # Some of these import matplotlib or jinja2, which only the writing command needs.
    from ncdiag.report.bench import (
        csv_report,
        html_report,
        json_report,
        picture,
        prometheus,
        summary,
    )

    return {
        "summary.txt": summary.render,
        "bench.json": json_report.render,
        "bench.csv": csv_report.render,
        "metrics.prom": prometheus.render,
        "bench.html": html_report.render,
        "bench.png": picture.render,
    }
