"""Histories and recorded runs as CSV: a row a run."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ncdiag.report.csv_cells import as_text
from ncdiag.report.history.records import History, Value
from ncdiag.store.records import Run

_RUN: Final = (
    "run",
    "kind",
    "started",
    "seconds",
    "verdict",
    "interrupted",
    "engine",
    "launcher",
    "mode",
    "hosts",
    "collective",
    "culprits",
    "directory",
)


def render_histories(histories: Sequence[History]) -> str:
    """A row for each run of each history; an empty cell is a figure that is not there."""
    rows = [{**history.about, **row.values} for history in histories for row in history.rows]
    first = [name for history in histories for name in history.about]
    names = dict.fromkeys([*first, *(name for row in rows for name in row)])
    return _render(list(names), rows)


def render_runs(runs: Iterable[Run]) -> str:
    """A row for each recorded run; several culprits are separated by semicolons."""
    return _render(
        _RUN,
        [
            {name: getattr(run, name, None) for name in _RUN}
            | {"run": run.number, "culprits": "; ".join(run.culprits)}
            for run in runs
        ],
    )


def cell(value: Value) -> Value:
    """``value`` as it may stand in a table that is opened as a spreadsheet."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float(f"{value:.7g}")
    return as_text(value) if isinstance(value, str) else value


def _render(names: Sequence[str], rows: Iterable[Mapping[str, Value]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()
