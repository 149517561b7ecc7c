"""What the end of a program means, and what two ends mean for a direction; pure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from ncdiag.cluster.processes import Ended
from ncdiag.measure.engines.base import Endpoint, PairOrder
from ncdiag.measure.engines.perftest.messages import Figures, Side
from ncdiag.model.measurement import Measurement
from ncdiag.model.text import visible
from ncdiag.model.units import format_share
from ncdiag.read.perftest import read_runs
from ncdiag.read.perftest.records import Run
from ncdiag.read.perftest.records import Side as RowSide
from ncdiag.read.perftest.results import figures, why_nothing

# The share of the payload that a port's own counters must account for, as in the torch engine.
CROSSED_SHARE = 0.98
_MAX_REASON = 300
# What perftest says of a connection that the other side has dropped, or never made.
_CONSEQUENCES = ("Couldn't connect", "exchange", "read remote", "to socket")


def judge(ended: Ended, *, reports: bool) -> Side:
    """How one side went; ``reports`` tells the side whose report is the figure."""
    if ended.code is None:
        return Side(problem=f"cannot start {ended.error}")
    runs = read_runs(ended.stdout + b"\n" + "\n".join(ended.said).encode() + b"\n")
    name = PurePath(ended.launch.argv[0]).name
    if ended.timed_out or ended.stopped:
        how = f"was killed after {ended.seconds:.0f} s"
        return Side(problem=_reason(name, how, runs), by_itself=False)
    if ended.code != 0:
        how = f"ended by signal {-ended.code}" if ended.code < 0 else f"ended with {ended.code}"
        return Side(problem=_reason(name, how, runs))
    if not reports:
        return Side()
    found = _figures(runs)
    if found is None:
        why = why_nothing(runs[-1]) if runs else "it printed nothing"
        return Side(problem=f"{name} gave no figure: {visible(why)[:_MAX_REASON]}")
    return Side(figures=found)


def direction(
    order: PairOrder,
    source: tuple[Endpoint, Side],
    target: tuple[Endpoint, Side],
    engine: str,
) -> Measurement:
    """The measurement of payload that went from ``source`` to ``target``."""
    result = Measurement(
        source=source[0].host,
        target=target[0].host,
        rail=order.rail,
        round=order.round,
        purpose=order.purpose,
        engine=engine,
    )
    found = source[1].figures or target[1].figures
    error = _most_telling(source, target)
    if error is None and found is None:
        error = "neither host gave a figure"
    if error is None and found is not None:
        error = _not_crossed(source[0], source[1].tx_bytes, found) or _not_crossed(
            target[0], target[1].rx_bytes, found
        )
    if error is not None or found is None:
        return replace(result, error=error)
    idle = [share for share in (source[1].idle, target[1].idle) if share is not None]
    return replace(
        result,
        bytes=found.payload_bytes,
        seconds=found.payload_bytes * 8e-9 / found.gbit_per_s,
        measured_gbit_per_s=found.gbit_per_s,
        min_gbit_per_s=found.min_gbit_per_s,
        idle=min(idle, default=None),
    )


def of_host(host: str, problem: str) -> str:
    """A problem with the name of the host it is of."""
    joint = " was " if problem.startswith("lost") else ": "
    return visible(f"{host}{joint}{problem}")


def _figures(runs: Sequence[Run]) -> Figures | None:
    rows = [row for run in runs for row in run.bandwidth if row.side is RowSide.WHOLE]
    found = figures(rows)
    payload = sum((row.size_bytes or 0) * (row.iterations or 0) for row in rows)
    if found is None or found[0] <= 0 or not payload:
        return None
    figure, worst, _ = found
    return Figures(gbit_per_s=figure, min_gbit_per_s=worst, payload_bytes=payload)


def _reason(name: str, how: str, runs: Sequence[Run]) -> str:
    said = next((line for run in runs for line in run.complaints), "")
    text = f"{name} {how}" + (f": {said}" if said else "")
    return visible(text)[:_MAX_REASON]


def _most_telling(*ends: tuple[Endpoint, Side]) -> str | None:
    """Why a direction failed: who ended by itself knows more than who was left waiting."""
    failed = [(end, side) for end, side in ends if side.problem is not None]
    if not failed:
        return None
    end, side = min(failed, key=lambda one: (_is_consequence(one[1]), not one[1].by_itself))
    return of_host(end.host, side.problem or "")


def _is_consequence(side: Side) -> bool:
    """Whether a side tells only that the other one was gone."""
    text = side.problem or ""
    return any(
        word in text for word in ("Couldn't connect", "exchange", "read remote", "to socket")
    )


def _not_crossed(end: Endpoint, moved_bytes: int | None, found: Figures) -> str | None:
    """Whether the port's own counters account for the payload."""
    if moved_bytes is None:
        return f"{end.host}: the counters of {end.nic.name} cannot be read"
    if moved_bytes >= found.payload_bytes * CROSSED_SHARE:
        return None
    share = moved_bytes / found.payload_bytes
    return (
        f"did not cross {end.nic.name} of {end.host}: its counters show "
        f"{format_share(share)} of the payload"
    )
