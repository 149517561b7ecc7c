"""perftest's two units of bandwidth, told apart by the heading or by the rate of messages."""

import math

_BITS = 8e-9
# What the program calls MB/sec is 2**20 bytes; newer ones print MiB/sec (perftest --help,
# --report_gbits).
_GBIT = {
    "Gb/sec": 1.0,
    "MB/sec": 2**20 * _BITS,
    "MiB/sec": 2**20 * _BITS,
}
# The units differ by a factor of 119. The rate of messages is printed to one a second, so with
# large messages on a slow link it is coarse: anything nearer to one unit than to the other counts.
_FACTOR = 1 / (2**20 * _BITS)
_NEAR = math.sqrt(_FACTOR)


def gbit_per_s(figure: float, unit: str | None) -> float | None:
    """``figure`` in Gbit/s; ``None`` for a unit that is not one of perftest's."""
    factor = _GBIT.get(unit or "")
    return None if factor is None or not _sane(figure) else figure * factor


def unit_by_messages(
    figure: float, size_bytes: int | None, messages_per_s: float | None
) -> str | None:
    """The unit of a figure that stands without one, as in JSON; ``None`` if nothing tells.

    Messages a second times their size is the same bandwidth in bytes a second.
    """
    if not size_bytes or not messages_per_s or not _sane(figure) or figure <= 0:
        return None
    ratio = figure / (messages_per_s * size_bytes * _BITS)
    if 1 / _NEAR < ratio < _NEAR:
        return "Gb/sec"
    if _FACTOR / _NEAR < ratio < _FACTOR * _NEAR:
        return "MiB/sec"
    return None


def peak(figure: float | None) -> float | None:
    """A peak of zero was not measured: it is left out of long runs and of timed ones."""
    return figure or None


def _sane(figure: float) -> bool:
    return math.isfinite(figure) and 0 <= figure < 1e12
