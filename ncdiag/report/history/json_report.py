"""Histories and recorded runs as JSON, schema ``ncdiag/history/1``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from ncdiag.report.history import describe
from ncdiag.report.history.records import History
from ncdiag.report.json_document import layout
from ncdiag.store.records import Run

SCHEMA: Final = "ncdiag/history/1"
# A recorded figure has seven digits.
_DIGITS: Final = 7


def render_histories(histories: Sequence[History], kind: str, name: str) -> bytes:
    """All histories of one name; a figure that is not known is ``null``."""
    return layout(
        {
            "schema": SCHEMA,
            "kind": kind,
            "name": name,
            "histories": [_history(history) for history in histories],
        }
    )


def render_runs(runs: Iterable[Run]) -> bytes:
    """The recorded runs."""
    return layout(
        {"schema": SCHEMA, "kind": "runs", "runs": [_rounded(asdict(run)) for run in runs]}
    )


def _history(history: History) -> dict[str, Any]:
    judged = history.over_time
    return {
        **history.about,
        "standing": judged.standing,
        "line": describe.line(history),
        "drift": None if judged.drift is None else _rounded(asdict(judged.drift)),
        "status_changes": judged.flaps,
        "unsteady_runs": judged.unsteady_runs,
        "runs": [_rounded(row.values) for row in history.rows],
    }


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
        for name, value in values.items()
    }
