"""What the text reports of topologies share: safe text, severities, tables."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.model.text import visible
from ncdiag.model.topology import TopologySeverity

SEVERITIES: Final = {
    TopologySeverity.FATAL: "bold red",
    TopologySeverity.DEGRADED: "red",
    TopologySeverity.INFO: "cyan",
}
# A name longer than this comes from a damaged or hostile dump.
_SHOWN_CHARS: Final = 64


def safe(value: object, style: str = "") -> Text:
    """``value`` as text without a meaning for a terminal or for rich; ``-`` for ``None``."""
    return Text(short(value), style)


def short(value: object) -> str:
    """The same as a string."""
    text = "-" if value is None else visible(f"{value}")
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


def gb_per_s(value: float | None) -> str:
    """``370.8 GB/s``, or ``-``."""
    return "-" if value is None else f"{value:g} GB/s"


def table(columns: Sequence[str], *, right: Iterable[str] = ()) -> Table:
    """An empty table; the columns of ``right`` hold figures."""
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    figures = set(right)
    for name in columns:
        grid.add_column(name, justify="right" if name in figures else "left", overflow="fold")
    return grid


def print_indented(text: Text, by: int, console: Console) -> None:
    """Print ``text`` in lines that fit, each after blanks, and none with blanks at its end."""
    for line in text.wrap(console, max(console.width - by, 1)):
        line.rstrip()
        console.print(Text(" " * by).append_text(line), no_wrap=True, crop=False)


def heading(text: str) -> Text:
    """The line above a part of a report."""
    return Text(text, "bold")


def indexes(numbers: Iterable[int]) -> str:
    """``0-3,5`` for 0, 1, 2, 3, 5."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
