"""Histories as a picture: what was measured in each run, beside what was expected."""

from collections.abc import Sequence
from typing import Final

from ncdiag.report.history import describe
from ncdiag.report.history.records import History, Row
from ncdiag.report.palette import LIGHT
from ncdiag.report.plotting import Axes, drawable, encoded, new_figure

_DOTS_PER_INCH: Final = 100
_WIDTH_INCHES: Final = 9.0
_HEIGHT_INCHES: Final = 3.2
# More would be an image that nothing can show; the text has them all.
_MAX_HISTORIES: Final = 16
_MAX_LABELS: Final = 12
_LINES: Final = {
    "host": (("sends", "send_gbit_per_s"), ("receives", "receive_gbit_per_s")),
    "link": (("measured", "measured_gbit_per_s"), ("worst window", "min_gbit_per_s")),
    "bench": (("plateau", "plateau_busbw_gb_per_s"),),
}
_EXPECTED: Final = {
    "host": "expected_gbit_per_s",
    "link": "expected_gbit_per_s",
    "bench": "expected_busbw_gb_per_s",
}
_COLOURS: Final = ("#2c6ea8", "#e58426")
_BAD: Final = "#b8390e"


def render(histories: Sequence[History]) -> bytes:
    """The picture as PNG, a panel each history; runs stand side by side in order of time."""
    shown = histories[:_MAX_HISTORIES]
    height = _HEIGHT_INCHES * len(shown)
    figure = new_figure((_WIDTH_INCHES, height), _DOTS_PER_INCH, layout="constrained")
    panels = figure.subplots(len(shown), squeeze=False)
    for panel, history in zip(panels.ravel(), shown, strict=True):
        _draw(panel, history)
    return encoded(figure, "png")


def _draw(axes: Axes, history: History) -> None:
    rows = history.rows
    places = list(range(len(rows)))
    for (label, name), colour in zip(_LINES[history.kind], _COLOURS, strict=False):
        axes.plot(places, _figures(rows, name), "o-", label=label, color=colour, markersize=3)
    expected = _figures(rows, _EXPECTED[history.kind])
    axes.plot(places, expected, ":", label="expected", color=LIGHT.ink, linewidth=1)
    bad = [place for place, row in enumerate(rows) if row.sample.status in ("faulty", "degraded")]
    figures = [row.sample.figure for row in rows]
    axes.plot(
        bad,
        [float("nan") if (one := figures[place]) is None else one for place in bad],
        "o",
        label="faulty or degraded",
        markerfacecolor="none",
        markeredgecolor=_BAD,
        markersize=9,
    )
    step = max(1, -(-len(rows) // _MAX_LABELS))
    axes.set_xticks(
        places[::step],
        [drawable(row.sample.started[:10]) for row in rows[::step]],
        rotation=30,
        ha="right",
        fontsize=8,
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("bus bandwidth, GB/s" if history.kind == "bench" else "Gbit/s")
    axes.grid(color=LIGHT.empty)
    axes.legend(fontsize=8, loc="lower left")
    title = f"{describe.standing(history)}: {describe.line(history)}"
    axes.set_title(drawable(title[:120]), loc="left", fontsize=9, parse_math=False)


def _figures(rows: Sequence[Row], name: str) -> list[float]:
    values = (row.values[name] for row in rows)
    return [float(one) if isinstance(one, (int, float)) else float("nan") for one in values]
