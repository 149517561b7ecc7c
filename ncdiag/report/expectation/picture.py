"""The curve of a collective as a picture: time and bus bandwidth over size."""

from ncdiag.expect.collective import CollectiveExpectation
from ncdiag.report.palette import LIGHT
from ncdiag.report.plotting import FuncFormatter, LogLocator, drawable, encoded, new_figure

_DOTS_PER_INCH = 100
_BUS, _TIME = "#2c6ea8", "#e58426"
_UNITS = ("B", "KiB", "MiB", "GiB")


def render(expected: CollectiveExpectation) -> bytes:
    """The picture as PNG; small messages are read off the time, large ones off the bandwidth."""
    figure = new_figure((9, 5.5), _DOTS_PER_INCH, layout="constrained")
    bandwidth = figure.add_subplot()
    sizes = [point.size_bytes for point in expected.curve]
    bandwidth.plot(sizes, [point.busbw_gb_per_s for point in expected.curve], color=_BUS)
    bandwidth.axhline(expected.busbw_gb_per_s, color=_BUS, linestyle=":", linewidth=1)
    bandwidth.set_xscale("log", base=2)
    bandwidth.xaxis.set_major_locator(LogLocator(base=8, numticks=20))
    bandwidth.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _size(size)))
    bandwidth.set_xlabel("size")
    bandwidth.set_ylabel("bus bandwidth, GB/s", color=_BUS)
    bandwidth.set_ylim(bottom=0)
    bandwidth.grid(color=LIGHT.empty)
    time = bandwidth.twinx()
    time.plot(sizes, [point.time_us for point in expected.curve], color=_TIME, linestyle="--")
    time.set_yscale("log")
    time.set_ylabel("time, us", color=_TIME)
    title = (
        f"{expected.collective} over {expected.ranks} GPUs, {expected.nodes} x {expected.machine}: "
        f"{expected.busbw_gb_per_s:.4g} GB/s, bound by {expected.binding}"
    )
    bandwidth.set_title(drawable(title), loc="left", fontsize=10, parse_math=False)
    return encoded(figure, "png")


def _size(size_bytes: float) -> str:
    for unit in _UNITS:
        if size_bytes < 1024 or unit == _UNITS[-1]:
            break
        size_bytes /= 1024
    return f"{size_bytes:g} {unit}"
