"""Runs of perftest become figures of directions between two endpoints."""

from collections.abc import Sequence
from pathlib import PurePath
from statistics import median

from ncdiag.model.imported import ForeignResults, PairFigure
from ncdiag.read.perftest.records import BandwidthRow, Run, Side

FORMAT = "perftest"
_SUM_ONLY = "bidirectional: only the sum of both directions was printed (--report-both tells them)"
_ONE_OF_THREE = (
    "bidirectional: its JSON holds one of three reports and does not say which of them "
    "(the text output does)"
)
_NO_UNIT = "the unit of its figures cannot be told: JSON has none, and no rate of messages"


def results_of(runs: Sequence[Run], path: str, *, loose: bool) -> ForeignResults:
    """What ``runs`` say about links; ``loose`` tells that they were read from JSON."""
    results = ForeignResults(format=FORMAT, path=path)
    for number, run in enumerate(runs, start=1):
        name = PurePath(path).name or FORMAT
        stem = name if len(runs) == 1 else f"{name}.{number}"
        own, other = run.local or f"{stem}.own", run.remote or f"{stem}.other"
        results.pairs += _pairs(run, own, other, loose=loose)
        results.notes += _notes(run, f"{own} with {other}")
        results.cut |= not run.complete
    for pair in results.pairs:
        for name in (pair.source, pair.target):
            if name not in results.endpoints:
                results.endpoints.append(name)
    return results


def figures(rows: Sequence[BandwidthRow]) -> tuple[float, float | None, int | None] | None:
    """Figure and worst figure in Gbit/s, and the size in bytes, of reports about one direction.

    Of several sizes the one with the best figure counts: smaller messages are bound by their
    number, not by the link. Of several reports of that size, as of a run that goes on, the median
    is the figure and the least the worst.
    """
    known = [row for row in rows if row.gbit_per_s is not None]
    if not known:
        return None
    best = max(known, key=lambda row: row.gbit_per_s or 0.0)
    alike = [row.gbit_per_s or 0.0 for row in known if row.size_bytes == best.size_bytes]
    return median(alike), min(alike) if len(alike) > 1 else None, best.size_bytes


def _pairs(run: Run, own: str, other: str, *, loose: bool) -> list[PairFigure]:
    """The directions of which a run tells.

    Payload goes from the side that connected to the one that waited, unless it is read from there.
    """
    if run.latency and not run.bandwidth:
        return []
    away = run.listening is run.reads
    forth, back = ((own, other), (other, own)) if away else ((other, own), (own, other))
    by_side = {side: [row for row in run.bandwidth if row.side is side] for side in Side}
    if not run.bidirectional:
        rows = by_side[Side.WHOLE] or by_side[Side.LOCAL]
        return [_pair(*forth, rows, run)]
    if by_side[Side.LOCAL] and by_side[Side.REMOTE]:
        # What each side has moved: away from itself, or towards itself where it reads.
        near = (other, own) if run.reads else (own, other)
        return [
            _pair(*near, by_side[Side.LOCAL], run),
            _pair(*near[::-1], by_side[Side.REMOTE], run),
        ]
    if not run.bandwidth:
        return [_pair(*forth, [], run), _pair(*back, [], run)]
    why = _ONE_OF_THREE if loose else _SUM_ONLY
    return [
        PairFigure(source=source, target=target, gbit_per_s=None, error=why)
        for source, target in (forth, back)
    ]


def _pair(source: str, target: str, rows: Sequence[BandwidthRow], run: Run) -> PairFigure:
    found = figures(rows)
    if found is None:
        why = _NO_UNIT if rows else why_nothing(run)
        return PairFigure(source=source, target=target, gbit_per_s=None, error=why)
    figure, worst, size = found
    return PairFigure(
        source=source,
        target=target,
        gbit_per_s=figure,
        min_gbit_per_s=worst,
        size_bytes=size,
        largest_bytes=max((row.size_bytes or 0 for row in rows), default=0) or None,
        kind=_kind(run),
    )


def _kind(run: Run) -> str:
    """What of a run its figures depend on: one queue pair may reach less than several do."""
    several = run.queue_pairs is not None and run.queue_pairs > 1
    return f"{run.test or ''}{f' on {run.queue_pairs} queue pairs' if several else ''}"


def why_nothing(run: Run) -> str:
    """Why a run has no figure, in one line, as far as it says so."""
    if run.complaints:
        return run.complaints[0]
    if run.damaged:
        return "its rows are damaged"
    return "it ended without a report"


def _notes(run: Run, who: str) -> list[str]:
    notes = []
    if run.damaged and run.has_rows:
        notes.append(f"{who}: {run.damaged} rows are damaged and left out")
    for row in run.latency:
        usual = row.average_us if row.typical_us is None else row.typical_us
        size = "" if row.size_bytes is None else f" at {row.size_bytes} bytes"
        notes.append(f"{who}: latency {usual:.2f} us{size}, which is not judged")
    return notes
