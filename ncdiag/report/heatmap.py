"""``heatmap.png``: host by host, how much of what it should reach each link reaches."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ncdiag.model.units import format_share
from ncdiag.model.verdict import Culprit, CulpritKind, LinkStatus, LinkVerdict, SweepReport
from ncdiag.report import describe
from ncdiag.report.palette import LIGHT
from ncdiag.report.plotting import (
    Axes,
    Colormap,
    Figure,
    LinearSegmentedColormap,
    Normalize,
    Patch,
    ScalarMappable,
    drawable,
    encoded,
    new_figure,
    to_rgba,
)

_DOTS_PER_INCH = 100
_MAP_DOTS = 900
# Larger fleets share cells: a picture with more dots is slow to open and no easier to read.
_MAX_CELLS = 2048
_MAX_LABELS = 40
_NUMBERS_UP_TO = 16
_LABEL_CHARS = 24

Shares = NDArray[np.float32]


def render(report: SweepReport) -> bytes:
    """The picture as PNG; of several rails, or hosts that share a cell, it shows the worst."""
    names = [host.name for host in report.diagnosis.hosts]
    block = max(1, -(-len(names) // _MAX_CELLS))
    shares, failed = _cells(names, report.diagnosis.links, block)
    side = len(shares)
    # Whole dots a cell, so that no row looks wider than its neighbour.
    map_dots = side * max(1, round(_MAP_DOTS / side))
    figure, axes = _figure(map_dots, names)
    _draw(axes, shares, failed)
    _label(axes, names, block, report.plan.endpoint)
    if side <= _NUMBERS_UP_TO:
        _write_numbers(axes, shares)
    else:
        _ring_links(axes, names, block, report.diagnosis.culprits)
    _explain(figure, axes, report)
    return encoded(figure, "png")


def _cells(
    names: Sequence[str], links: Sequence[LinkVerdict], block: int
) -> tuple[Shares, NDArray[np.bool_]]:
    """The worst share of each cell (NaN: none), and which cells hold a failed measurement."""
    index = {name: place // block for place, name in enumerate(names)}
    side = max(1, -(-len(names) // block))
    shares = np.full((side, side), np.nan, np.float32)
    failed = np.zeros((side, side), np.bool_)
    for link in links:
        cell = index.get(link.source), index.get(link.target)
        if None in cell:
            continue
        share = describe.share(link)
        if share is not None:
            shares[cell] = np.fmin(shares[cell], share)
        failed[cell] |= link.status is LinkStatus.ERROR
    return shares, failed


def _figure(map_dots: int, names: Sequence[str]) -> tuple[Figure, Axes]:
    label_dots = 7 * max((len(_short(name)) for name in names), default=0)
    left, right, top, bottom = 60 + label_dots, 150, 70 + label_dots, 90
    width, height = left + map_dots + right, top + map_dots + bottom
    figure = new_figure((width / _DOTS_PER_INCH, height / _DOTS_PER_INCH), _DOTS_PER_INCH)
    axes = figure.add_axes((left / width, bottom / height, map_dots / width, map_dots / height))
    return figure, axes


def _colours() -> Colormap:
    colours = LinearSegmentedColormap.from_list("share", list(LIGHT.scale))
    return colours.with_extremes(bad=LIGHT.empty)


def _draw(axes: Axes, shares: Shares, failed: NDArray[np.bool_]) -> None:
    axes.imshow(shares, cmap=_colours(), vmin=0, vmax=1, interpolation="nearest")
    overlay = np.zeros((*failed.shape, 4), np.float32)
    overlay[failed] = to_rgba(LIGHT.error)
    axes.imshow(overlay, interpolation="nearest")


def _label(axes: Axes, names: Sequence[str], block: int, endpoint: str) -> None:
    side = max(1, -(-len(names) // block))
    places = list(range(0, side, max(1, -(-side // _MAX_LABELS))))
    labels = [_short(names[place * block]) if names else "" for place in places]
    # A "$" in a name is no formula.
    axes.set_xticks(places, labels, rotation=90, parse_math=False)
    axes.set_yticks(places, labels, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(labelsize=8, length=2)
    axes.set_xlabel(f"receiving {endpoint}")
    axes.set_ylabel(f"sending {endpoint}")
    axes.xaxis.set_label_position("bottom")


def _short(name: str) -> str:
    name = drawable(name)
    return name if len(name) <= _LABEL_CHARS else name[: _LABEL_CHARS - 3] + "..."


def _write_numbers(axes: Axes, shares: Shares) -> None:
    for (row, column), share in np.ndenumerate(shares):
        if not np.isnan(share):
            axes.text(
                column,
                row,
                format_share(float(share)),
                ha="center",
                va="center",
                fontsize=9,
                color="white" if share < 0.45 else "black",
                parse_math=False,
            )


def _ring_links(axes: Axes, names: Sequence[str], block: int, culprits: Sequence[Culprit]) -> None:
    """Ring each link that is blamed alone: its cell may be a few dots wide."""
    index = {name: place // block for place, name in enumerate(names)}
    for culprit in culprits:
        source, _, target = culprit.name.partition("->")
        if culprit.kind is CulpritKind.LINK and source in index and target in index:
            axes.scatter(
                index[target], index[source], s=120, facecolors="none", edgecolors=LIGHT.error
            )


def _explain(figure: Figure, axes: Axes, report: SweepReport) -> None:
    verdict = f"{report.diagnosis.verdict.upper()}: {describe.verdict(report)}"
    figure.suptitle(drawable(verdict), x=0.02, y=0.985, ha="left", fontsize=13, parse_math=False)
    figure.text(0.02, 0.012, drawable(describe.measured(report)), fontsize=8, parse_math=False)
    place = axes.get_position()
    bar = figure.colorbar(
        ScalarMappable(Normalize(0, 1), _colours()),
        cax=figure.add_axes((place.x1 + 0.02, place.y0, 0.02, place.height)),
    )
    bar.set_label("share of what the link should reach")
    bar.ax.yaxis.set_major_formatter(lambda value, _: format_share(value))
    axes.legend(
        handles=[
            Patch(facecolor=LIGHT.error, label="failed"),
            Patch(facecolor=LIGHT.empty, edgecolor="#999999", label="not measured"),
        ],
        loc="upper right",
        bbox_to_anchor=(1, -0.015),
        ncols=2,
        fontsize=8,
        frameon=False,
    )
