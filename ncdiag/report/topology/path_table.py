"""A matrix of paths, in as many pieces as the terminal needs, with what each path can carry."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from ncdiag.expect.paths import Path, PathType
from ncdiag.report.topology.styles import heading, short

_GAP = 1
_STYLES = {
    PathType.PHB: "yellow",
    PathType.SYS: "red",
    PathType.NET: "red",
    PathType.DIS: "bold red",
}
_LOCAL = "X"


@dataclass(frozen=True, slots=True)
class PathTable:
    """``paths[row][column]`` between the two named ends; ``None`` where none is known."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    paths: Sequence[Sequence[Path | None]]


def render(one: PathTable, console: Console) -> None:
    """Print the matrix, and below it the bandwidth of each type of path."""
    console.print(heading(one.title))
    label = max((len(short(name)) for name in one.rows), default=0)
    names = [short(name) for name in one.columns]
    for first, last in _pieces(names, console.width - label):
        widths = [max(len(name), 3) for name in names[first:last]]
        head = Text(" " * label)
        for name, width in zip(names[first:last], widths, strict=True):
            head.append(f"{'':{_GAP}}{name:>{width}}", "bold")
        console.print(head, no_wrap=True, crop=False, overflow="ignore")
        for name, paths in zip(one.rows, one.paths, strict=True):
            line = Text(f"{short(name):<{label}}", "bold")
            for path, width in zip(paths[first:last], widths, strict=True):
                line.append(f"{'':{_GAP}}{_cell(path):>{width}}", _style(path))
            console.print(line, no_wrap=True, crop=False, overflow="ignore")
    for text in _bandwidths(one):
        console.print(Text(text, "dim"))


def _pieces(names: Sequence[str], room: int) -> list[tuple[int, int]]:
    """Which columns stand beside each other."""
    pieces, first, used = [], 0, 0
    for number, name in enumerate(names):
        width = max(len(name), 3) + _GAP
        if number > first and used + width > room:
            pieces.append((first, number))
            first, used = number, 0
        used += width
    if first < len(names):
        pieces.append((first, len(names)))
    return pieces


def _cell(path: Path | None) -> str:
    if path is None:
        return "-"
    return _LOCAL if path.type is PathType.LOC else path.type.name


def _style(path: Path | None) -> str:
    return _STYLES.get(path.type, "default") if path else "dim"


def _bandwidths(one: PathTable) -> list[str]:
    """``NVL 370.8 GB/s, SYS 10 to 22 GB/s``: what paths of each type carry each way."""
    found: dict[PathType, list[float]] = defaultdict(list)
    for row in one.paths:
        for path in row:
            if path and path.type not in {PathType.LOC, PathType.DIS} and path.gb_per_s:
                found[path.type].append(path.gb_per_s)
    parts = []
    for kind, rates in sorted(found.items()):
        low, high = min(rates), max(rates)
        span = f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"
        parts.append(f"{kind.name} {span} GB/s")
    return [", ".join(parts)] if parts else []
