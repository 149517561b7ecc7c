"""Boxes, lines and words at places in inches, painted by matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ncdiag.report.plotting import Axes, FancyBboxPatch, Figure, drawable

MARGIN: Final = 0.35
_TITLE: Final = 0.45
_CHARS: Final = 200

INK: Final = "#1a1f2b"
QUIET: Final = "#6b7280"
ALARM: Final = "#c0261a"
# Fill colours that stay apart with any kind of colour blindness (after Okabe and Ito).
FILLS: Final = {
    "cpu": "#d9dce3",
    "switch": "#f2f3f6",
    "gpu": "#c9e3c4",
    "adapter": "#c6dcf0",
    "nvswitch": "#e6d8ef",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A labelled box around ``x``, ``y``; ``alarm`` rings it in red."""

    x: float
    y: float
    width: float
    height: float
    lines: Sequence[str]
    fill: str
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; its label stands in the middle of the part before ``label_at``."""

    points: Sequence[tuple[float, float]]
    width: float = 1.0
    colour: str = QUIET
    label: str = ""
    label_at: int = -1


@dataclass(frozen=True, slots=True)
class Words:
    """Text around ``x``, ``y``."""

    x: float
    y: float
    text: str
    size: float = 8.0
    colour: str = INK
    align: str = "center"


@dataclass(slots=True)
class Canvas:
    """What a picture is made of; y grows upwards, the title stands above everything."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)
    _title: str = ""
    least_width: float = 6.0

    def title(self, text: str) -> None:
        """What the picture shows."""
        self._title = text

    @property
    def size_inches(self) -> tuple[float, float]:
        """Width and height."""
        left, right, bottom, top = self._edges()
        return max(right - left, self.least_width), top - bottom + _TITLE

    def paint(self, figure: Figure) -> None:
        """Draw everything on ``figure``, which has the size of this."""
        left, _, bottom, _ = self._edges()
        width, height = self.size_inches
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(left, left + width)
        axes.set_ylim(bottom, bottom + height)
        for line in self.lines:
            _paint_line(axes, line)
        for box in self.boxes:
            _paint_box(axes, box)
        for one in self.words:
            _write(axes, one)
        place = left + MARGIN, bottom + height - _TITLE / 2
        _write(axes, Words(*place, self._title, 10, align="left"))

    def _edges(self) -> tuple[float, float, float, float]:
        xs = [x for line in self.lines for x, _ in line.points]
        ys = [y for line in self.lines for _, y in line.points]
        xs += [box.x + side * box.width / 2 for box in self.boxes for side in (-1, 1)]
        ys += [box.y + side * box.height / 2 for box in self.boxes for side in (-1, 1)]
        xs += [one.x for one in self.words]
        ys += [one.y for one in self.words]
        return (
            min(xs, default=0) - MARGIN,
            max(xs, default=0) + MARGIN,
            min(ys, default=0) - MARGIN,
            max(ys, default=0) + MARGIN,
        )


def cut(text: str, chars: int) -> str:
    """``text`` for a small box."""
    return text if len(text) <= chars else f"{text[: chars - 2]}.."


def _paint_line(axes: Axes, line: Line) -> None:
    xs, ys = zip(*line.points, strict=True)
    axes.plot(xs, ys, color=line.colour, linewidth=line.width, zorder=1, solid_capstyle="round")
    if line.label:
        (x0, y0), (x1, y1) = line.points[line.label_at - 1], line.points[line.label_at]
        middle = (x0 + x1) / 2, (y0 + y1) / 2
        _write(axes, Words(*middle, line.label, 6.5, line.colour), backed=True)


def _paint_box(axes: Axes, box: Box) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (box.x - box.width / 2, box.y - box.height / 2),
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=box.fill,
            edgecolor=ALARM if box.alarm else QUIET,
            linewidth=2.0 if box.alarm else 0.6,
            zorder=2,
        )
    )
    step = 0.135
    top = box.y + step * (len(box.lines) - 1) / 2
    for number, line in enumerate(box.lines):
        size = 7.5 if number == 0 else 6.5
        _write(axes, Words(box.x, top - step * number, line, size))


def _write(axes: Axes, words: Words, *, backed: bool = False) -> None:
    axes.text(
        words.x,
        words.y,
        drawable(cut(words.text, _CHARS)),
        fontsize=words.size,
        color=words.colour,
        ha=words.align,
        va="center",
        zorder=3,
        parse_math=False,  # a "$" in a name is no formula
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6} if backed else None,
    )
