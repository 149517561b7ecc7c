"""Writes the report directory of a burn-in: each file whole, or not at all."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ncdiag.model.burn_in import BurnInReport, Outcome
from ncdiag.model.errors import UndecidedError
from ncdiag.model.text import visible
from ncdiag.model.verdict import SweepReport
from ncdiag.report.burn_in import describe
from ncdiag.report.burn_in.presentable import presentable
from ncdiag.report.write import write_file


def write_all(report: BurnInReport, directory: Path) -> None:
    """Write every file of the report into ``directory``, which is made where it is missing.

    Lists of hosts, which other programs wait for, come first, pictures last. Files of an earlier
    report are replaced one by one, and those that this one has nothing for are removed. Raises
    :class:`UndecidedError` with one line where a file cannot be written.
    """
    report = presentable(report)
    for name, render in _renderers().items():
        write_file(directory / name, render(report))
    for name, of_sweep in _of_sweep().items():
        if report.sweep is not None:
            write_file(directory / name, of_sweep(report.sweep))
        else:
            _remove(directory / name)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UndecidedError(
            f"cannot remove {visible(str(path))}: {error.strerror or error}"
        ) from error


def _renderers() -> Mapping[str, Callable[[BurnInReport], str | bytes]]:
    # Some of these import jinja2 or matplotlib, which only the writing command needs.
    from ncdiag.report.burn_in import html_report, json_report, prometheus, summary
    from ncdiag.report.node_lists import render as listed

    return {
        "hosts.isolate.txt": lambda report: listed(report.isolate),
        "hosts.good.txt": lambda report: listed((*report.chosen, *report.spares)),
        "hosts.spare.txt": lambda report: listed(report.spares),
        "hosts.undecided.txt": lambda report: listed(
            one.name for one in describe.hosts_of(report, Outcome.UNDECIDED)
        ),
        "summary.txt": summary.render,
        "report.json": json_report.render,
        "metrics.prom": prometheus.render,
        "report.html": html_report.render,
    }


def _of_sweep() -> Mapping[str, Callable[[SweepReport], str | bytes]]:
    from ncdiag.report import heatmap, links_csv

    return {"links.csv": links_csv.render, "heatmap.png": heatmap.render}
