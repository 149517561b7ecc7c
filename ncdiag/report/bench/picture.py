"""``bench.png``: bus bandwidth over size with theory as a line; with scaling, over hosts too."""

from collections.abc import Sequence

from ncdiag.model.bench import BenchCurve, BenchPoint, BenchReport
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_bytes
from ncdiag.report.bench import describe
from ncdiag.report.palette import LIGHT
from ncdiag.report.plotting import (
    Axes,
    FuncFormatter,
    LogLocator,
    drawable,
    encoded,
    new_figure,
)

_DOTS_PER_INCH = 100
_MEASURED, _THEORY, _HISTORY, _FAULT, _OTHER = (
    "#2c6ea8",
    "#c2690c",
    "#8a8f9c",
    "#b3261e",
    "#9cc3e2",
)
_MOST_HOST_LABELS = 16
_FEWER = "fewer hosts"
# Of the height of the picture: lines that end closer than this share a label.
_LABEL_SHARE = 0.04


def render(report: BenchReport) -> bytes:
    """The picture as PNG."""
    scaling = [curve for curve in report.curves if curve.plateau_busbw_gb_per_s is not None]
    two = len({len(curve.hosts) for curve in scaling}) > 1
    figure = new_figure((9, 9.5 if two else 5.6), _DOTS_PER_INCH, layout="constrained")
    axes = figure.add_subplot(2, 1, 1) if two else figure.add_subplot()
    curve = describe.largest(report)
    if curve is None or not curve.points:
        axes.text(0.5, 0.5, "nothing was measured", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
    else:
        others = [one for one in report.curves if one is not curve and one.points]
        _draw(axes, curve, others, "other hosts" if describe.apart(report) else _FEWER)
    if two:
        _draw_scaling(figure.add_subplot(2, 1, 2), scaling)
    title = f"{describe.headline(report)}: {describe.verdict(report)}"
    figure.suptitle(drawable(title), x=0.01, ha="left", fontsize=12, parse_math=False)
    axes.set_title(drawable(describe.measured(report)), loc="left", fontsize=8, parse_math=False)
    return encoded(figure, "png")


def _rated(curve: BenchCurve) -> list[tuple[BenchPoint, float]]:
    return [(one, one.busbw_gb_per_s) for one in curve.points if one.busbw_gb_per_s is not None]


def _draw(axes: Axes, curve: BenchCurve, others: Sequence[BenchCurve], whose: str) -> None:
    for number, one in enumerate(others):
        known = _rated(one)
        axes.plot(
            [point.size_bytes for point, _ in known],
            [rate for _, rate in known],
            color=_OTHER,
            linewidth=1,
            label=None if number else whose,
        )
    if whose == _FEWER:
        _label_ends(axes, others)
    _draw_bands(axes, curve)
    known = _rated(curve)
    label = "measured"
    if others:
        label += (
            f", {len(curve.hosts)} hosts"
            if whose == _FEWER
            else f", {drawable(fold(curve.hosts))}".replace("$", r"\$")
        )
    axes.plot(
        [point.size_bytes for point, _ in known],
        [rate for _, rate in known],
        color=_MEASURED,
        marker="o",
        markersize=4,
        label=label,
    )
    _draw_level(axes, curve)
    _ring_cliffs(axes, known)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=8, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: format_bytes(size)))
    axes.set_xlabel("size")
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_ylim(bottom=0)
    axes.grid(color=LIGHT.empty)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", fontsize=8, frameon=False)


def _label_ends(axes: Axes, others: Sequence[BenchCurve]) -> None:
    """The number of hosts at the end of each line, side by side where lines end close by."""
    ends = [(_rated(one)[-1], len(one.hosts)) for one in others if _rated(one)]
    top = max((rate for (_, rate), _ in ends), default=0.0)
    groups: list[tuple[float, float, list[int]]] = []
    for (point, rate), hosts in sorted(ends, key=lambda one: one[0][1]):
        if groups and rate - groups[-1][1] < _LABEL_SHARE * top:
            groups[-1][2].append(hosts)
        else:
            groups.append((point.size_bytes, rate, [hosts]))
    for size, rate, numbers in groups:
        label = " " + ", ".join(map(str, sorted(numbers)))
        axes.annotate(label, (size, rate), fontsize=8, color=_MEASURED, va="center")


def _draw_bands(axes: Axes, curve: BenchCurve) -> None:
    """Theory as a line, the spread of the repeats and of the history as bands."""
    theory = [
        (one.size_bytes, one.expected_busbw_gb_per_s)
        for one in curve.points
        if one.expected_busbw_gb_per_s is not None
    ]
    if theory:
        sizes, rates = zip(*theory, strict=True)
        axes.plot(sizes, rates, color=_THEORY, linestyle="--", label="expected")
    for low, high, colour, label in (
        ("history_min_busbw_gb_per_s", "history_max_busbw_gb_per_s", _HISTORY, "earlier runs"),
        ("min_busbw_gb_per_s", "max_busbw_gb_per_s", _MEASURED, "all repeats"),
    ):
        band = [
            (one.size_bytes, getattr(one, low), getattr(one, high))
            for one in curve.points
            if getattr(one, low) is not None and getattr(one, high) is not None
        ]
        if any(least < most for _, least, most in band):
            sizes, lows, highs = zip(*band, strict=True)
            axes.fill_between(sizes, lows, highs, color=colour, alpha=0.22, lw=0, label=label)


def _draw_level(axes: Axes, curve: BenchCurve) -> None:
    level, start = curve.plateau_busbw_gb_per_s, curve.plateau_from_bytes
    if level is None or start is None:
        return
    end = curve.points[-1].size_bytes
    axes.plot([start, end], [level, level], color=_MEASURED, lw=5, alpha=0.3, label="plateau")


def _ring_cliffs(axes: Axes, known: Sequence[tuple[BenchPoint, float]]) -> None:
    fallen = [(point.size_bytes, rate) for point, rate in known if point.cliff]
    if not fallen:
        return
    sizes, rates = zip(*fallen, strict=True)
    axes.scatter(
        sizes, rates, s=150, facecolors="none", edgecolors=_FAULT, linewidths=2, label="cliff"
    )
    for size, rate in fallen[:8]:
        axes.annotate(
            f"{format_bytes(size)}: {describe.rate(rate)}",
            (size, rate),
            xytext=(0, -16),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=_FAULT,
        )


def _draw_scaling(axes: Axes, curves: Sequence[BenchCurve]) -> None:
    hosts = [len(curve.hosts) for curve in curves]
    levels = [curve.plateau_busbw_gb_per_s or 0.0 for curve in curves]
    expected = [
        (len(curve.hosts), curve.expected_busbw_gb_per_s)
        for curve in curves
        if curve.expected_busbw_gb_per_s is not None
    ]
    if expected:
        numbers, rates = zip(*expected, strict=True)
        axes.plot(numbers, rates, color=_THEORY, linestyle="--", marker=".", label="expected")
    axes.plot(hosts, levels, color=_MEASURED, marker="o", label="plateau")
    axes.set_xscale("log", base=2)
    shown = hosts if len(hosts) <= _MOST_HOST_LABELS else hosts[:: len(hosts) // _MOST_HOST_LABELS]
    axes.set_xticks(shown, [f"{number}" for number in shown])
    axes.minorticks_off()
    axes.set_xlabel("hosts")
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_ylim(bottom=0)
    axes.grid(color=LIGHT.empty)
    axes.set_axisbelow(True)
    axes.legend(loc="lower left", fontsize=8, frameon=False)
