"""Histories and recorded runs on a terminal: a table, and one line that says it all."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.model.text import visible
from ncdiag.model.units import format_duration
from ncdiag.report.describe import percent
from ncdiag.report.history import describe
from ncdiag.report.history.records import History, Row
from ncdiag.store.records import Run

_STATUS_STYLES: Final = {
    "healthy": "green",
    "faulty": "red",
    "error": "red",
    "degraded": "yellow",
    "inconclusive": "yellow",
    "unreachable": "yellow",
}
_BLAMED: Final = 3

Column = tuple[str, str]
_COLUMNS: Final[dict[str, Sequence[Column]]] = {
    "host": (("sends", "send_gbit_per_s"), ("receives", "receive_gbit_per_s")),
    "link": (("measured", "measured_gbit_per_s"), ("worst", "min_gbit_per_s")),
    "bench": (("plateau", "plateau_busbw_gb_per_s"),),
}
_EXPECTED: Final = {
    "host": "expected_gbit_per_s",
    "link": "expected_gbit_per_s",
    "bench": "expected_busbw_gb_per_s",
}


def render_histories(histories: Iterable[History], console: Console) -> None:
    """Print each history: its runs, then the line on a line of its own that is never wrapped."""
    for history in histories:
        console.print(_table(history))
        for note in _notes(history):
            console.print(note, soft_wrap=True)
        style = _line_style(history)
        line = Text(f"{describe.standing(history)}: ", style=style)
        line.append(describe.line(history), style="default")
        console.print(line, soft_wrap=True)


def render_runs(runs: Sequence[Run], console: Console) -> None:
    """Print the recorded runs, a line each."""
    table = _new_table()
    for heading in ("run", "started (UTC)", "kind", "verdict"):
        table.add_column(heading, no_wrap=True, justify="right" if heading == "run" else "left")
    table.add_column("hosts", justify="right", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for run in runs:
        table.add_row(
            f"{run.number}",
            visible(describe.moment(run.started)),
            visible(run.kind),
            _status(run.verdict),
            f"{run.hosts:,}",
            format_duration(run.seconds),
            _what(run),
        )
    console.print(table)


def _what(run: Run) -> str:
    if run.interrupted:
        return "interrupted"
    blamed = [visible(one) for one in run.culprits[:_BLAMED]]
    if len(run.culprits) > _BLAMED:
        blamed.append(f"+{len(run.culprits) - _BLAMED} more")
    what = [visible(run.collective)] if run.collective else []
    if run.kind == "import":
        what = [f"{what[0] if what else 'links'}, by {visible(run.engine)}"]
    return "; ".join([*what, ", ".join(blamed)] if blamed else what)


def _table(history: History) -> Table:
    engines = {row.sample.engine for row in history.rows}
    table = _new_table()
    table.add_column("run", justify="right", no_wrap=True)
    table.add_column("started (UTC)", no_wrap=True)
    if len(engines) > 1:
        table.add_column("engine", overflow="fold")
    table.add_column("status", no_wrap=True)
    columns = list(_COLUMNS[history.kind])
    if _expectation(history) is None:
        columns.append(("expected", _EXPECTED[history.kind]))
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reaches", justify="right", no_wrap=True)
    figure: Callable[[Row, str], str] = lambda row, name: describe.figure(  # noqa: E731
        history, _number(row.values[name])
    )
    for row in history.rows:
        engine = [visible(row.sample.engine)] if len(engines) > 1 else []
        table.add_row(
            f"{row.values['run']}",
            describe.moment(f"{row.values['started']}"),
            *engine,
            _status(row.sample.status),
            *(figure(row, name) for _, name in columns),
            percent(_number(row.values["efficiency"])),
        )
    return table


def _notes(history: History) -> Iterable[str]:
    """What was expected all the time, and why the newest run said what it said."""
    expected = _expectation(history)
    if expected:
        yield f"expected: {expected}"
    newest = history.rows[-1].values
    why = newest.get("error") or (newest["status"] != "healthy" and newest.get("reason"))
    if why:
        yield f"newest: {why}"


def _expectation(history: History) -> str | None:
    """What was expected in every run alike, empty where nothing was; ``None`` where they differ."""
    name = _EXPECTED[history.kind]
    told = {describe.figure(history, _number(row.values[name])) for row in history.rows}
    return told.pop().removeprefix("-") if len(told) == 1 else None


def _new_table() -> Table:
    return Table(box=None, expand=False, pad_edge=False, padding=(0, 2, 0, 0))


def _status(status: str) -> Text:
    return Text(visible(status), style=_STATUS_STYLES.get(status, "default"))


def _line_style(history: History) -> str:
    standing = history.over_time.standing
    if standing.is_wrong:
        return "bold red"
    return "bold yellow" if standing.is_open else "bold green"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
