"""What was measured on the links of one host in one run, as columns in a few bytes a link."""

import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncdiag.model.verdict import LinkStatus

Columns = Mapping[str, NDArray[Any]]

# By name, and as what they are packed: floats of 4 bytes (7 digits), whose NaN stands for none.
# A link's status is a place in STATUSES, its texts are numbers of the table of texts (0 is none).
COLUMNS: Final[Mapping[str, str]] = {
    "target": "<u4",
    "status": "<u1",
    "measured_gbit_per_s": "<f4",
    "min_gbit_per_s": "<f4",
    "expected_gbit_per_s": "<f4",
    "fleet_gbit_per_s": "<f4",
    "idle": "<f4",
    "bytes": "<u8",
    "tests": "<u4",
    "round": "<i4",  # -1 is none
    "expected_from": "<u4",
    "error": "<u4",
}
# Their places are what is kept: add at the end, never move.
STATUSES: Final = (
    LinkStatus.HEALTHY,
    LinkStatus.FAULTY,
    LinkStatus.DEGRADED,
    LinkStatus.INCONCLUSIVE,
    LinkStatus.ERROR,
    LinkStatus.UNTESTED,
)
# A higher level takes three times as long and saves 3 %.
_LEVEL: Final = 1


def pack(columns: Columns) -> bytes:
    """All ``columns``, of one length and sorted by target, as one blob."""
    return zlib.compress(b"".join(_planes(name, columns[name]) for name in COLUMNS), _LEVEL)


def unpack(packed: bytes, count: int) -> dict[str, NDArray[Any]]:
    """The columns of ``count`` links; raises ValueError for anything but what :func:`pack` made."""
    sizes = {name: np.dtype(kind).itemsize * count for name, kind in COLUMNS.items()}
    total = sum(sizes.values())
    inflate = zlib.decompressobj()
    try:
        data = inflate.decompress(packed, total + 1)
    except zlib.error as error:
        raise ValueError(f"{error}") from error
    if len(data) != total:
        raise ValueError(f"{len(data)} bytes of {total}")
    columns = {}
    start = 0
    for name, kind in COLUMNS.items():
        planes = np.frombuffer(data, np.uint8, sizes[name], start)
        values = planes.reshape(np.dtype(kind).itemsize, count).T.copy().view(kind).ravel()
        columns[name] = np.cumsum(values, dtype="<u4") if name == "target" else values
        start += sizes[name]
    return columns


def _planes(name: str, values: NDArray[Any]) -> bytes:
    """All first bytes, then all second ones: alike beside alike, which is what compresses."""
    values = np.ascontiguousarray(values, COLUMNS[name])
    if name == "target":  # a full sweep's go up in equal steps
        values = np.diff(values, prepend=values.dtype.type(0))
    width = values.dtype.itemsize
    return values.view(np.uint8).reshape(len(values), width).T.tobytes()
