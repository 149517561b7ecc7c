"""All measurements of a sweep as columns, one row a link: what every later step looks at."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_high
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.measurement import Expectation, LinkKey, Measurement, Purpose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fabric:
    """Who is linked with whom: host numbers and rail of each row, leaf number of each host.

    A leaf of -1 is not known. ``nics`` are the NIC names of each host in rail order.
    """

    hosts: tuple[str, ...]
    leaves: tuple[str, ...]
    nics: tuple[tuple[str, ...], ...]
    leaf: Ints
    source: Ints
    target: Ints
    rail: Ints

    @property
    def links(self) -> int:
        """The number of rows."""
        return len(self.source)

    @property
    def rails(self) -> int:
        """The number of rails that were measured."""
        return int(self.rail.max(initial=0)) + 1

    def link_name(self, row: int) -> str:
        """``a->b``, for people."""
        return f"{self.hosts[self.source[row]]}->{self.hosts[self.target[row]]}"


@dataclass(frozen=True, slots=True)
class LinkTable:
    """What was measured of each link; figures in Gbit/s, ``nan`` where there is none.

    ``together`` was measured with the whole round and ``alone`` with the fabric quiet; ``judged``
    is the figure that counts, and ``shown`` the measurement it came from. ``busy`` links were
    measured beside a CPU too full to trust the figure. ``tries`` counts quiet measurements and
    ``wrong`` those in which data arrived damaged: such a link has no figure at all, since neither
    is it fast for being so at another time, nor does it say how fast its fleet is.
    """

    fabric: Fabric
    keys: tuple[LinkKey, ...]
    shown: tuple[Measurement, ...]
    expectations: tuple[Expectation | None, ...]
    expected: Floats
    together: Floats
    alone: Floats
    judged: Floats
    busy: Mask
    together_busy: Mask
    tests: Ints
    tries: Ints
    wrong: Ints

    @property
    def damaged(self) -> Mask:
        """Links on which data arrived wrong at least once."""
        found: Mask = self.wrong > 0
        return found


class _Row(NamedTuple):
    """The figures of one link; a tuple, since a hall has hundreds of thousands of them."""

    shown: Measurement
    together: float
    alone: float
    busy: bool
    together_busy: bool
    tests: int
    tries: int
    wrong: int = 0


def tabulate(evidence: SweepEvidence, thresholds: Thresholds) -> LinkTable:
    """Bring the measurements of ``evidence`` into columns; hosts it does not name are left out."""
    number = {host.name: place for place, host in enumerate(evidence.hosts)}
    by_link: dict[LinkKey, list[Measurement]] = defaultdict(list)
    for one in evidence.measurements:
        if one.source in number and one.target in number:
            by_link[one.link].append(one)
    keys = tuple(by_link)
    rows = [_row(found, thresholds.busy_below_idle) for found in by_link.values()]
    expectations = tuple(evidence.expectation(key) for key in keys)
    return LinkTable(
        fabric=_fabric(evidence, keys, number),
        keys=keys,
        shown=tuple(row.shown for row in rows),
        expectations=expectations,
        expected=_column([np.nan if one is None else one.gbit_per_s for one in expectations]),
        together=_column([row.together for row in rows]),
        alone=_column([row.alone for row in rows]),
        judged=_column([np.nan if row.wrong else _figure(row.shown) for row in rows]),
        busy=np.array([row.busy for row in rows], dtype=bool),
        together_busy=np.array([row.together_busy for row in rows], dtype=bool),
        tests=np.array([row.tests for row in rows], dtype=np.int64),
        tries=np.array([row.tries for row in rows], dtype=np.int64),
        wrong=np.array([row.wrong for row in rows], dtype=np.int64),
    )


def _fabric(evidence: SweepEvidence, keys: Sequence[LinkKey], number: dict[str, int]) -> Fabric:
    leaves = tuple(dict.fromkeys(host.leaf for host in evidence.hosts if host.leaf is not None))
    place = {leaf: index for index, leaf in enumerate(leaves)}
    return Fabric(
        hosts=tuple(number),
        leaves=leaves,
        nics=tuple(tuple(evidence.nics.get(name, ())) for name in number),
        leaf=np.array(
            [-1 if host.leaf is None else place[host.leaf] for host in evidence.hosts],
            dtype=np.int64,
        ),
        source=np.array([number[key.source] for key in keys], dtype=np.int64),
        target=np.array([number[key.target] for key in keys], dtype=np.int64),
        rail=np.array([key.rail for key in keys], dtype=np.int64),
    )


def _row(found: Sequence[Measurement], busy_below: float) -> _Row:
    """Choose the figure that counts: quiet before round, and an idle CPU before a busy one.

    Of several quiet ones the upper median counts, so that a fault must show each time. But data
    that arrived wrong once count whatever came later: contention damages nothing.
    """
    if wrong := [one for one in found if one.damaged]:
        tries = sum(one.purpose is Purpose.QUIET for one in found)
        nothing = np.nan, np.nan, False, False
        return _Row(wrong[-1], *nothing, len(found), tries, len(wrong))
    if len(found) == 1 and found[0].purpose is Purpose.ROUND:
        busy, figure = _is_busy(found[0], busy_below), _figure(found[0])
        return _Row(found[0], figure, np.nan, busy, busy, 1, 0)
    quiet = [one for one in found if one.purpose is Purpose.QUIET]
    rounds = [one for one in found if one.purpose is Purpose.ROUND and one.error is None]
    good = [one for one in quiet if one.error is None]
    alone = [one for one in good if not _is_busy(one, busy_below)] or good
    shown = _upper_median(alone) if alone else rounds[-1] if rounds else found[-1]
    return _Row(
        shown=shown,
        together=_figure(rounds[-1]) if rounds else np.nan,
        alone=_figure(shown) if alone else np.nan,
        busy=_is_busy(shown, busy_below),
        together_busy=bool(rounds) and _is_busy(rounds[-1], busy_below),
        tests=len(found),
        tries=len(quiet),
    )


def _upper_median(found: Sequence[Measurement]) -> Measurement:
    middle = median_high(_figure(one) for one in found)
    return next(one for one in found if _figure(one) == middle)


def _figure(one: Measurement) -> float:
    return np.nan if one.measured_gbit_per_s is None else one.measured_gbit_per_s


def _is_busy(one: Measurement, busy_below: float) -> bool:
    return one.error is None and one.idle is not None and one.idle < busy_below


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
