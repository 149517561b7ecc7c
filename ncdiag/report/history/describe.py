"""What a history says, in one line that every format has."""

from ncdiag.diagnose.drift import MIN_RUNS, Drift, Standing
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_rate
from ncdiag.report.describe import percent
from ncdiag.report.history.records import History

_WORDS = {
    "unreachable": "it could not be reached",
    "error": "it could not be measured",
    "untested": "it was not measured",
    "inconclusive": "it could not be told",
}

_CHANGES = (Standing.DRIFTING, Standing.CHANGED)


def standing(history: History) -> str:
    """The one word: ``STEADY``, ``TOO FEW``."""
    return history.over_time.standing.value.replace("_", " ").upper()


def line(history: History) -> str:
    """The history in one line, after its word."""
    judged = history.over_time
    said = [_first(history)]
    if judged.drift is not None and judged.standing not in _CHANGES:
        said.append(_drift(history, judged.drift))
    if judged.flaps > 1 and judged.standing is not Standing.FLAPPING:
        said.append(f"its status changed {judged.flaps} times")
    if judged.unsteady_runs:
        said.append(
            f"in {format_count(judged.unsteady_runs, 'run')} its worst window was under half of "
            "its figure"
        )
    if judged.others:
        said.append(f"{format_count(judged.others, 'run')} by other engines left out")
    return "; ".join(said)


def _first(history: History) -> str:
    judged = history.over_time
    title = history.title
    runs = f"{format_count(len(history.rows) - judged.others, 'run')} since {_day(history)}"
    match judged.standing:
        case Standing.FAULTY | Standing.DEGRADED:
            return f"{title} was {judged.now} in the newest of {runs}"
        case Standing.FLAPPING:
            return f"{title} changed its status {judged.flaps} times in {runs}"
        case Standing.DRIFTING | Standing.CHANGED if judged.drift is not None:
            return f"{title} {_drift(history, judged.drift)}"
        case Standing.UNDECIDED:
            why = _WORDS.get(judged.now, f"it was {judged.now}")
            return f"{title}: in the newest of {runs} {why}"
        case Standing.TOO_FEW:
            figures = format_count(judged.runs, "run")
            return f"{title}: {figures} with a figure; a trend takes {MIN_RUNS}"
    return f"{title} is as it was in {runs}"


def _drift(history: History, drift: Drift) -> str:
    verb = "fell" if drift.change < 0 else "rose"
    by = percent(abs(drift.change))
    figures = f"{figure(history, drift.before)} to {figure(history, drift.after)}"
    if drift.stepped is None:
        text = f"{verb} by {by} over {format_count(drift.runs, 'run')}, from {figures}"
    else:
        text = f"{verb} by {by} at once on {_date(drift.stepped)}, from {figures}"
    if drift.fleet_alike:
        text += ", and so did the whole fleet"
    return text


def figure(history: History, value: float | None) -> str:
    """A figure of the history with its unit."""
    if history.kind != "bench":
        return format_rate(value)
    return "-" if value is None else f"{value:.4g} GB/s"


def _day(history: History) -> str:
    return _date(history.rows[0].sample.started)


def _date(started: str) -> str:
    return visible(started[:10])


def moment(started: str) -> str:
    """``2026-11-29 03:12`` of a time in ISO 8601."""
    return started[:16].replace("T", " ")
