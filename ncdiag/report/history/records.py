"""Histories as every format renders them: a host, a link on a rail, a collective on so many hosts.

Whatever the store has of it becomes rows of the same shape, made safe to print once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ncdiag.diagnose.drift import OverTime, Sample, over_time
from ncdiag.model.text import visible
from ncdiag.store.records import HostPoint, LinkPoint, PastCurve

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Row:
    """One run's word: what is published of it, and what trends are made from."""

    values: Mapping[str, Value]
    sample: Sample


@dataclass(frozen=True, slots=True)
class History:
    """All rows of one thing, the oldest first, and what they say together.

    ``kind`` is ``host``, ``link`` or ``bench``; ``name`` is what the operator asked for; ``about``
    tells histories of one name apart (``rail 1``, ``8 hosts, 64 ranks``), empty where one is all.
    """

    kind: str
    name: str
    about: Mapping[str, int]
    rows: Sequence[Row]
    over_time: OverTime

    @property
    def title(self) -> str:
        """``h3``, ``h3->h5 on rail 1``, ``all_reduce over 8 hosts, 64 ranks``."""
        if self.kind == "bench":
            return f"{self.name} over {self.about['hosts']} hosts, {self.about['ranks']} ranks"
        return f"{self.name} on rail {self.about['rail']}" if self.about else self.name


def of_host(name: str, points: Sequence[HostPoint]) -> list[History]:
    """The history of a host."""
    return _histories("host", name, {}, [_host_row(point) for point in points])


def of_link(source: str, target: str, points: Sequence[LinkPoint]) -> list[History]:
    """The history of a link, one for each rail."""
    rails = sorted({point.rail for point in points})
    return [
        history
        for rail in rails
        for history in _histories(
            "link",
            f"{source}->{target}",
            {"rail": rail} if len(rails) > 1 or rail else {},
            [_link_row(point) for point in points if point.rail == rail],
        )
    ]


def of_collective(name: str, curves: Sequence[PastCurve]) -> list[History]:
    """The history of a collective, one for each number of hosts and ranks."""

    def size(curve: PastCurve) -> tuple[int, int]:
        return len(curve.hosts), curve.ranks

    grouped = groupby(sorted(curves, key=size), key=size)  # which keeps the order in time
    return [
        history
        for (hosts, ranks), alike in grouped
        for history in _histories(
            "bench", name, {"hosts": hosts, "ranks": ranks}, [_curve_row(curve) for curve in alike]
        )
    ]


def _histories(
    kind: str, name: str, about: Mapping[str, int], rows: Iterable[Row]
) -> list[History]:
    rows = list(rows)
    if not rows:
        return []
    judged = over_time([row.sample for row in rows])
    return [History(kind, visible(name), about, rows, judged)]


def _host_row(point: HostPoint) -> Row:
    figures = [
        figure for figure in (point.send_gbit_per_s, point.receive_gbit_per_s) if figure is not None
    ]
    values: dict[str, Value] = {
        "run": point.run,
        "started": visible(point.started),
        "engine": visible(point.engine),
        "status": point.status.value,
        "send_gbit_per_s": point.send_gbit_per_s,
        "receive_gbit_per_s": point.receive_gbit_per_s,
        "expected_gbit_per_s": point.expected_gbit_per_s,
        "efficiency": point.efficiency,
        "fleet_ratio": point.fleet_ratio,
        "worst_window": point.worst_window,
        "links": point.links,
        "slow_links": point.slow_links,
        "reason": visible(point.reason),
    }
    return Row(
        values,
        Sample(
            started=point.started,
            engine=point.engine,
            status=point.status.value,
            figure=min(figures, default=None),
            fleet_ratio=point.fleet_ratio,
            worst_window=point.worst_window,
        ),
    )


def _link_row(point: LinkPoint) -> Row:
    values: dict[str, Value] = {
        "run": point.run,
        "started": visible(point.started),
        "engine": visible(point.engine),
        "status": point.status.value,
        "measured_gbit_per_s": point.measured_gbit_per_s,
        "min_gbit_per_s": point.min_gbit_per_s,
        "expected_gbit_per_s": point.expected_gbit_per_s,
        "efficiency": point.efficiency,
        "fleet_ratio": point.fleet_ratio,
        "tests": point.tests,
        "error": point.error and visible(point.error),
    }
    return Row(
        values,
        Sample(
            started=point.started,
            engine=point.engine,
            status=point.status.value,
            figure=point.measured_gbit_per_s,
            fleet_ratio=point.fleet_ratio,
            worst_window=point.worst_window,
        ),
    )


def _curve_row(curve: PastCurve) -> Row:
    values: dict[str, Value] = {
        "run": curve.run,
        "started": visible(curve.started),
        "engine": visible(curve.engine),
        "status": visible(curve.verdict),
        "plateau_busbw_gb_per_s": curve.plateau_busbw_gb_per_s,
        "expected_busbw_gb_per_s": curve.expected_busbw_gb_per_s,
        "efficiency": curve.efficiency,
        "error": curve.error and visible(curve.error),
    }
    return Row(
        values,
        Sample(
            started=curve.started,
            engine=curve.engine,
            status=curve.verdict,
            figure=curve.plateau_busbw_gb_per_s,
        ),
    )
