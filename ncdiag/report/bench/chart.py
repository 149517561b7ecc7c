"""Where lines, marks and ticks of the page's charts stand, in px of a drawing 1100 wide."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ncdiag.model.bench import BenchCurve, BenchPoint
from ncdiag.model.units import format_bytes, format_count
from ncdiag.report.bench import describe

WIDTH, HEIGHT = 1100, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 1078, 14, 360
_MOST_X_TICKS = 12
_Y_TICKS = 6
_HEADROOM = 1.06
_LABEL_HEIGHT = 13


class Tick(NamedTuple):
    """A place on an axis."""

    at: float
    label: str


class Mark(NamedTuple):
    """A measured point; ``odd`` marks a cliff or wrong data."""

    x: float
    y: float
    text: str
    odd: bool


class Chart(NamedTuple):
    """Everything of a chart; lines and bands are points of SVG polylines and polygons."""

    name: str
    measured: str
    marks: Sequence[Mark]
    theory: str
    spread: str
    history: str
    others: Sequence[tuple[str, float, float, str]]
    level: tuple[float, float, float] | None
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    x_title: str


class _Scale(NamedTuple):
    """Maps sizes or hosts (logarithmic) and rates (from 0) into the drawing."""

    least: float
    most: float
    top: float

    def x(self, value: float) -> float:
        wide = math.log2(self.most / self.least)
        share = math.log2(value / self.least) / wide if wide else 0.5
        return round(_LEFT + (_RIGHT - _LEFT) * share, 1)

    def y(self, rate: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * rate / self.top, 1)

    def line(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)


def sizes_chart(curve: BenchCurve, others: Sequence[BenchCurve]) -> Chart | None:
    """Bandwidth over size; ``None`` where nothing was measured."""
    known = _rated(curve)
    if not known:
        return None
    sizes = [point.size_bytes for one in (curve, *others) for point, _ in _rated(one)]
    theory = [
        (one.size_bytes, one.expected_busbw_gb_per_s)
        for one in curve.points
        if one.expected_busbw_gb_per_s is not None
    ]
    rates = [rate for one in (curve, *others) for _, rate in _rated(one)]
    bands = [band for point in curve.points for band in (_spread(point), _history(point)) if band]
    tops = [*rates, *(rate for _, rate in theory), *(most for _, most in bands)]
    scale = _Scale(min(sizes), max(sizes), max(tops, default=0.0) * _HEADROOM or 1.0)
    level = None
    if curve.plateau_busbw_gb_per_s is not None and curve.plateau_from_bytes is not None:
        level = (
            scale.x(curve.plateau_from_bytes),
            scale.x(curve.points[-1].size_bytes),
            scale.y(curve.plateau_busbw_gb_per_s),
        )
    return Chart(
        name="Bus bandwidth over size",
        measured=scale.line([(point.size_bytes, rate) for point, rate in known]),
        marks=[_mark(scale, point, rate) for point, rate in known],
        theory=scale.line(theory),
        spread=_band(scale, curve.points, _spread),
        history=_band(scale, curve.points, _history),
        others=_apart([_other(scale, one) for one in others if _rated(one)]),
        level=level,
        x_ticks=_size_ticks(scale),
        y_ticks=_rate_ticks(scale),
        x_title="size",
    )


def hosts_chart(curves: Sequence[BenchCurve]) -> Chart | None:
    """Plateaus over the number of hosts; ``None`` for fewer than two numbers."""
    known = [(one, one.plateau_busbw_gb_per_s) for one in curves if one.plateau_busbw_gb_per_s]
    if len({len(one.hosts) for one, _ in known}) < 2:
        return None
    theory = [
        (len(one.hosts), one.expected_busbw_gb_per_s)
        for one, _ in known
        if one.expected_busbw_gb_per_s is not None
    ]
    top = max([rate for _, rate in known] + [rate for _, rate in theory]) * _HEADROOM
    scale = _Scale(len(known[0][0].hosts), len(known[-1][0].hosts), top)
    return Chart(
        name="Bus bandwidth over hosts",
        measured=scale.line([(len(one.hosts), rate) for one, rate in known]),
        marks=[
            Mark(
                scale.x(len(one.hosts)),
                scale.y(rate),
                f"{format_count(len(one.hosts), 'host')}: {describe.plateau(one)}",
                odd=False,
            )
            for one, rate in known
        ],
        theory=scale.line(theory),
        spread="",
        history="",
        others=(),
        level=None,
        x_ticks=[Tick(scale.x(len(one.hosts)), f"{len(one.hosts)}") for one, _ in known],
        y_ticks=_rate_ticks(scale),
        x_title="hosts",
    )


def _rated(curve: BenchCurve) -> list[tuple[BenchPoint, float]]:
    return [(one, one.busbw_gb_per_s) for one in curve.points if one.busbw_gb_per_s is not None]


def _spread(point: BenchPoint) -> tuple[float, float] | None:
    low, high = point.min_busbw_gb_per_s, point.max_busbw_gb_per_s
    return None if low is None or high is None or point.repeats < 2 else (low, high)


def _history(point: BenchPoint) -> tuple[float, float] | None:
    low, high = point.history_min_busbw_gb_per_s, point.history_max_busbw_gb_per_s
    return None if low is None or high is None else (low, high)


def _band(
    scale: _Scale,
    points: Sequence[BenchPoint],
    of: Callable[[BenchPoint], tuple[float, float] | None],
) -> str:
    ends = [(point.size_bytes, band) for point in points if (band := of(point))]
    if len(ends) < 2:
        return ""
    there = [(size, band[0]) for size, band in ends]
    back = [(size, band[1]) for size, band in reversed(ends)]
    return scale.line([*there, *back])


def _mark(scale: _Scale, point: BenchPoint, rate: float) -> Mark:
    parts = [f"{format_bytes(point.size_bytes)}: {describe.rate(rate)} GB/s"]
    if point.expected_busbw_gb_per_s is not None:
        parts.append(
            f"{describe.percent(describe.share(point))} of "
            f"{describe.rate(point.expected_busbw_gb_per_s)} expected"
        )
    if odd := describe.remarks(point):
        parts.append(odd)
    return Mark(scale.x(point.size_bytes), scale.y(rate), ", ".join(parts), odd=bool(odd))


def _other(scale: _Scale, curve: BenchCurve) -> tuple[str, float, float, str]:
    known = _rated(curve)
    line = scale.line([(point.size_bytes, rate) for point, rate in known])
    last, rate = known[-1]
    return line, scale.x(last.size_bytes), scale.y(rate), f"{len(curve.hosts)}"


def _apart(
    others: Sequence[tuple[str, float, float, str]],
) -> list[tuple[str, float, float, str]]:
    """The same with labels moved down where they would cover each other."""
    placed: list[tuple[str, float, float, str]] = []
    for line, x, y, label in sorted(others, key=lambda one: one[2]):
        least = placed[-1][2] + _LABEL_HEIGHT if placed else y
        placed.append((line, x, max(y, least), label))
    return placed


def _size_ticks(scale: _Scale) -> list[Tick]:
    first = math.ceil(math.log2(scale.least))
    last = math.floor(math.log2(scale.most))
    step = max(1, -(-(last - first + 1) // _MOST_X_TICKS))
    return [
        Tick(scale.x(2**power), format_bytes(2**power)) for power in range(first, last + 1, step)
    ]


def _rate_ticks(scale: _Scale) -> list[Tick]:
    raw = scale.top / _Y_TICKS
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * nice for nice in (1, 2, 5, 10) if unit * nice >= raw)
    return [
        Tick(scale.y(step * number), f"{step * number:.4g}")
        for number in range(int(scale.top / step) + 1)
    ]
