"""Packs a sweep for the HTML report: columns of numbers instead of one object a link.

A full sweep of 512 hosts is 261,632 links: 95 MB as JSON objects, a few MB as compressed columns,
which a browser turns back into typed arrays in a blink.
"""

import base64
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ncdiag.model.verdict import HostStatus, LinkStatus, LinkVerdict, SweepReport

# A table of more rows helps nobody, and a browser has to hold it: twice 512 hosts, all directions.
_MAX_LINKS = 600_000
# So many errors are told apart; then the report names the file that has them all.
_MAX_ERRORS = 2000
_ERROR_CHARS = 300
_MAX_EXPECTATIONS = 0xFFFF
_MORE_ERRORS = "see links.csv for the error"

# Severity first: the order in which both tables stand at the start.
LINK_STATUSES = (
    LinkStatus.FAULTY,
    LinkStatus.ERROR,
    LinkStatus.DEGRADED,
    LinkStatus.INCONCLUSIVE,
    LinkStatus.UNTESTED,
    LinkStatus.HEALTHY,
)
HOST_STATUSES = (
    HostStatus.FAULTY,
    HostStatus.UNREACHABLE,
    HostStatus.DEGRADED,
    HostStatus.INCONCLUSIVE,
    HostStatus.HEALTHY,
)
# The names that JavaScript has for them; longest items first keeps every column aligned.
_TYPES: dict[str, DTypeLike] = {"Float32": "<f4", "Uint32": "<u4", "Uint16": "<u2", "Uint8": "<u1"}
# Shares travel in ten-thousandths; the largest number stands for none.
_SHARE_SCALE, _NO_SHARE = 10_000, 0xFFFF
_NO_IDLE = 0xFF


def pack(report: SweepReport) -> dict[str, Any]:
    """Everything the page's script needs, ready for JSON."""
    diagnosis = report.diagnosis
    links = _worth_showing(diagnosis.links)
    names = [host.name for host in diagnosis.hosts]
    listed = set(names)  # a link's end need not be among the hosts judged
    names += sorted({end for link in links for end in (link.source, link.target)} - listed)
    errors = _Numbering(["", _MORE_ERRORS], limit=_MAX_ERRORS, beyond=1)
    expectations = _Numbering([None], limit=_MAX_EXPECTATIONS, beyond=0)
    columns = _columns(links, names, errors, expectations)
    return {
        "names": names,
        "hosts": {
            "status": [HOST_STATUSES.index(host.status) for host in diagnosis.hosts],
            "efficiency": [_short(host.efficiency) for host in diagnosis.hosts],
            "reason": [host.reason for host in diagnosis.hosts],
            "statuses": HOST_STATUSES,
        },
        "links": {
            "count": len(links),
            "total": len(diagnosis.links),
            "statuses": LINK_STATUSES,
            "error_texts": errors.values,
            "expected_rates": expectations.values,
            "columns": [[name, kind] for name, kind, _ in columns],
            "data": _compress(values for _, _, values in columns),
        },
    }


def _worth_showing(links: Sequence[LinkVerdict]) -> Sequence[LinkVerdict]:
    if len(links) <= _MAX_LINKS:
        return links
    worst_first = sorted(links, key=lambda link: LINK_STATUSES.index(link.status))
    return worst_first[:_MAX_LINKS]


class _Numbering:
    """Numbers equal values alike; new ones after ``limit`` all get the number ``beyond``."""

    def __init__(self, values: list[Any], *, limit: int, beyond: int) -> None:
        self.values = values
        self._limit = limit
        self._beyond = beyond
        self._numbers = {value: number for number, value in enumerate(values)}

    def number(self, value: object) -> int:
        number = self._numbers.get(value)
        if number is None:
            if len(self.values) >= self._limit:
                return self._beyond
            number = self._numbers[value] = len(self.values)
            self.values.append(value)
        return number


def _columns(
    links: Sequence[LinkVerdict], names: Sequence[str], errors: _Numbering, expected: _Numbering
) -> list[tuple[str, str, np.ndarray[Any, Any]]]:
    index = {name: place for place, name in enumerate(names)}
    statuses = {status: number for number, status in enumerate(LINK_STATUSES)}
    table: tuple[tuple[str, str, Callable[[LinkVerdict], float]], ...] = (
        ("measured", "Float32", lambda link: _rate(link.measured_gbit_per_s)),
        ("worst", "Float32", lambda link: _rate(link.min_gbit_per_s)),
        ("source", "Uint32", lambda link: index[link.source]),
        ("target", "Uint32", lambda link: index[link.target]),
        ("efficiency", "Uint16", lambda link: _scaled(link.efficiency, _SHARE_SCALE, _NO_SHARE)),
        ("fleet", "Uint16", lambda link: _scaled(link.fleet_ratio, _SHARE_SCALE, _NO_SHARE)),
        ("expected", "Uint16", lambda link: expected.number(_short(link.expected_gbit_per_s))),
        ("error", "Uint16", lambda link: errors.number((link.error or "")[:_ERROR_CHARS])),
        ("rail", "Uint16", lambda link: min(link.rail, 0xFFFF)),
        ("tests", "Uint16", lambda link: min(link.tests, 0xFFFF)),
        ("status", "Uint8", lambda link: statuses[link.status]),
        ("idle", "Uint8", lambda link: _scaled(link.idle, 100, _NO_IDLE)),
    )
    return [
        (name, kind, np.fromiter(map(value, links), _TYPES[kind], len(links)))
        for name, kind, value in table
    ]


def _rate(gbit_per_s: float | None) -> float:
    # Four digits are one more than is shown, and compress much better than a float's seven.
    return float("nan") if gbit_per_s is None else float(f"{gbit_per_s:.4g}")


def _scaled(share: float | None, scale: int, none: int) -> int:
    if share is None or not math.isfinite(share):
        return none
    return round(min(max(share, 0.0) * scale, none - 1))


def _short(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 6)


def _compress(columns: Iterable[np.ndarray[Any, Any]]) -> str:
    data = b"".join(column.tobytes() for column in columns)
    return base64.b64encode(zlib.compress(data, level=6)).decode()
