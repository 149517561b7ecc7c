"""Puts a sweep into the tables of a store, within a transaction of its caller."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncdiag.model.verdict import HostVerdict, LinkStatus, LinkVerdict, SweepReport
from ncdiag.store.numbering import Numbering
from ncdiag.store.packing import COLUMNS, STATUSES, pack

_SLOW: Final = tuple(
    STATUSES.index(status) for status in (LinkStatus.FAULTY, LinkStatus.DEGRADED, LinkStatus.ERROR)
)
_UNTESTED: Final = STATUSES.index(LinkStatus.UNTESTED)
_FIGURES: Final = (
    "measured_gbit_per_s",
    "min_gbit_per_s",
    "expected_gbit_per_s",
    "fleet_gbit_per_s",
    "idle",
)
# The most that fits; what foreign files count may be anything.
_COUNTS: Final = {"bytes": 2**63 - 1, "tests": 2**32 - 1}
_MAX_ROUND: Final = 2**31 - 1

Column = NDArray[Any]


def add_sweep(database: sqlite3.Connection, run: int, report: SweepReport) -> None:
    """Add all that ``report`` says of hosts, links and culprits to the run numbered ``run``."""
    diagnosis = report.diagnosis
    names = Numbering(database, "names")
    texts = Numbering(database, "texts")
    links = _link_columns(diagnosis.links, names, texts)
    database.executemany(
        "INSERT INTO links (run, source, rail, count, packed) VALUES (?, ?, ?, ?, ?)",
        _link_rows(run, links),
    )
    database.executemany(
        "INSERT OR REPLACE INTO hosts (host, run, status, efficiency, reason, send_gbit_per_s,"
        " receive_gbit_per_s, expected_gbit_per_s, fleet_ratio, worst_window, links, slow_links)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        _host_rows(run, diagnosis.hosts, links, names, texts),
    )
    database.executemany(
        "INSERT INTO culprits (run, place, kind, name, direction, status, confidence, efficiency)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                run,
                place,
                one.kind.value,
                names.number(one.name),
                one.direction.value,
                one.status.value,
                one.confidence,
                one.efficiency,
            )
            for place, one in enumerate(diagnosis.culprits)
        ),
    )


def _link_columns(
    links: Sequence[LinkVerdict], names: Numbering, texts: Numbering
) -> dict[str, Column]:
    """All links as columns, those of :data:`COLUMNS` and source and rail, sorted by these."""
    count = len(links)
    statuses = {status: place for place, status in enumerate(STATUSES)}

    def column(kind: str, values: Iterable[Any]) -> Column:
        return np.fromiter(values, kind, count)

    columns = {
        "source": column("<i8", (names.number(link.source) for link in links)),
        "rail": column("<i8", (link.rail for link in links)),
        "target": column("<u4", (names.number(link.target) for link in links)),
        "status": column("<u1", (statuses[link.status] for link in links)),
        "round": column("<i4", (_round(link) for link in links)),
        "expected_from": column("<u4", (texts.number(link.expected_from) for link in links)),
        "error": column("<u4", (texts.number(link.error) for link in links)),
    }
    for name in _FIGURES:
        columns[name] = _figures(column("<f8", (_known(getattr(link, name)) for link in links)))
    for name, most in _COUNTS.items():
        counts = map(attrgetter(name), links)
        columns[name] = column(COLUMNS[name], (min(max(one, 0), most) for one in counts))
    order = np.lexsort((columns["target"], columns["rail"], columns["source"]))
    return {name: values[order] for name, values in columns.items()}


def _known(figure: float | None) -> float:
    return float("nan") if figure is None else figure


def _figures(values: Column) -> Column:
    """The values in the digits that are kept; what is not finite is no figure."""
    with np.errstate(over="ignore"):
        kept = values.astype("<f4")
    kept[~np.isfinite(kept)] = np.nan
    return kept


def _round(link: LinkVerdict) -> int:
    return -1 if link.round is None else min(max(link.round, -1), _MAX_ROUND)


def _link_rows(run: int, links: dict[str, Column]) -> Iterator[tuple[object, ...]]:
    source, rail = links["source"], links["rail"]
    if not len(source):
        return
    changes = np.flatnonzero((np.diff(source) != 0) | (np.diff(rail) != 0)) + 1
    bounds = [0, *changes.tolist(), len(source)]
    for start, end in pairwise(bounds):
        packed = pack({name: links[name][start:end] for name in COLUMNS})
        yield run, int(source[start]), int(rail[start]), end - start, packed


def _host_rows(
    run: int,
    hosts: Sequence[HostVerdict],
    links: dict[str, Column],
    names: Numbering,
    texts: Numbering,
) -> Iterator[tuple[object, ...]]:
    sends = _by_value(links["source"])
    receives = _by_value(links["target"])
    nobody = np.empty(0, np.intp)
    for host in hosts:
        number = names.number(host.name)
        ends = sends.get(number, nobody), receives.get(number, nobody)
        about = texts.number(host.reason) or None
        yield (number, run, host.status.value, host.efficiency, about, *_summary(links, *ends))


def _summary(links: dict[str, Column], sending: Column, receiving: Column) -> tuple[object, ...]:
    """Medians over the links of a host, as the table of hosts has them."""
    own = np.concatenate((sending, receiving))
    statuses = links["status"][own]
    measured, fleet = links["measured_gbit_per_s"], links["fleet_gbit_per_s"]
    with np.errstate(all="ignore"):  # what is not finite is no figure, and has no median
        ratios = [_median(measured[ends] / fleet[ends]) for ends in (sending, receiving)]
        windows = links["min_gbit_per_s"][own] / measured[own]
    return (
        _median(measured[sending]),
        _median(measured[receiving]),
        _median(links["expected_gbit_per_s"][own]),
        min((ratio for ratio in ratios if ratio is not None), default=None),
        _median(windows),
        int((statuses != _UNTESTED).sum()),
        int(np.isin(statuses, _SLOW).sum()),
    )


def _median(figures: Column) -> float | None:
    known = figures[np.isfinite(figures)]
    return float(np.median(known.astype(float))) if len(known) else None


def _by_value(values: Column) -> dict[int, Column]:
    """The places of each value."""
    order = np.argsort(values, kind="stable")
    found, starts = np.unique(values[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True)) if len(found) else {}
