"""What a benchmark ends with on the terminal: sizes, findings, and one line of verdict."""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.model.bench import BenchCurve, BenchFinding, BenchPoint, BenchReport, BenchSeverity
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_bytes
from ncdiag.model.verdict import Verdict
from ncdiag.report.bench import describe
from ncdiag.report.bench.presentable import presentable
from ncdiag.report.labelled import say, say_whole

_STYLES = {
    Verdict.HEALTHY: "bold green",
    Verdict.FAULTY: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}
_MOST_SIZES = 12
_MOST_FINDINGS = 8


def render_terminal(report: BenchReport, console: Console, directory: Path | None) -> None:
    """Print the result; everything else is in the report under ``directory``."""
    report = presentable(report)
    curve = describe.largest(report)
    if len(report.curves) > 1:
        console.print(_scaling(report.curves, named=describe.apart(report)))
    if curve is not None and curve.points:
        if describe.apart(report):
            console.print(Text(fold(curve.hosts), style="bold"))
        console.print(_sizes(curve))
    for finding in report.findings[:_MOST_FINDINGS]:
        _finding(console, finding)
    if len(report.findings) > _MOST_FINDINGS:
        say(console, "and", f"{len(report.findings) - _MOST_FINDINGS} more in the report")
    for nodes, reason in describe.unreachable(report):
        say(console, "unreachable", f"{nodes}: {reason}")
    for note in report.notes:
        say(console, "note", note)
    say(console, "measured", describe.measured(report))
    if curve is not None and curve.points:
        whose = f"{fold(curve.hosts)}: " if describe.apart(report) else ""
        say(console, "plateau", whose + describe.plateau(curve))
    say(console, "yardstick", describe.yardstick(report))
    if directory is not None:
        say_whole(console, "report", visible(str(directory / "bench.html")))
    line = Text(f"{describe.headline(report)}: ", style=_STYLES[report.verdict])
    line.append(describe.verdict(report), style="default")
    console.print(line, soft_wrap=True)


def shown_sizes(points: Sequence[BenchPoint]) -> list[BenchPoint]:
    """The sizes that show the shape, and every odd one with its neighbours."""
    if len(points) <= _MOST_SIZES:
        return list(points)
    step = -(-len(points) // _MOST_SIZES)
    kept = set(range(len(points) - 1, -1, -step))
    for number, point in enumerate(points):
        if describe.remarks(point):
            kept |= {number - 1, number, number + 1}
    return [point for number, point in enumerate(points) if number in kept]


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    return table


def _sizes(curve: BenchCurve) -> Table:
    table = _table("size", "time", "busbw GB/s", "repeats", "expected", "share", "")
    shown = shown_sizes(curve.points)
    for point in shown:
        odd = describe.remarks(point)
        table.add_row(
            format_bytes(point.size_bytes),
            describe.time(point.time_us),
            _rate(point.busbw_gb_per_s),
            _spread(point),
            _rate(point.expected_busbw_gb_per_s),
            describe.percent(describe.share(point)),
            odd,
            style="bold red" if odd else None,
        )
    if len(shown) < len(curve.points):
        table.caption = f"+{len(curve.points) - len(shown)} more sizes in bench.csv"
        table.caption_justify = "left"
    return table


def _rate(gb_per_s: float | None) -> str:
    """A bandwidth that latency decides is of no interest here, and has many digits."""
    return "<0.01" if gb_per_s is not None and 0 < gb_per_s < 0.01 else describe.rate(gb_per_s)


def _spread(point: BenchPoint) -> str:
    if point.repeats < 2:
        return "-"
    low, high = _rate(point.min_busbw_gb_per_s), _rate(point.max_busbw_gb_per_s)
    return low if low == high else f"{low}-{high}"


def _scaling(curves: Sequence[BenchCurve], *, named: bool) -> Table:
    """A row for each curve; ``named`` says whose they are, where their number does not."""
    table = _table("hosts", "ranks", "plateau GB/s", "expected", "share", "")
    for curve in curves:
        table.add_row(
            Text(_cut(fold(curve.hosts))) if named else f"{len(curve.hosts)}",
            f"{curve.ranks}",
            describe.rate(curve.plateau_busbw_gb_per_s),
            describe.rate(curve.expected_busbw_gb_per_s),
            describe.percent(curve.efficiency),
            Text(_cut(curve.error or "")),
        )
    return table


def _cut(text: str) -> str:
    return text if len(text) <= 28 else text[:25] + "..."


def _finding(console: Console, finding: BenchFinding) -> None:
    fault = finding.severity is BenchSeverity.FAULT
    say(console, "fault" if fault else "note", finding.text, style="bold red" if fault else "bold")
    say(console, "", f"-> {finding.next}", body="dim")
