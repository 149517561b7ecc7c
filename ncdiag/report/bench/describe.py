"""A benchmark's findings in words, the same in every format."""

from collections import defaultdict
from collections.abc import Iterator

from ncdiag.model.bench import BenchCurve, BenchFindingKind, BenchPoint, BenchReport, BenchSeverity
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_bytes, format_count, format_duration, format_share
from ncdiag.model.verdict import Verdict

_KINDS = {
    BenchFindingKind.WRONG_DATA: "wrong data",
    BenchFindingKind.BELOW_EXPECTATION: "below expectation",
    BenchFindingKind.BELOW_HISTORY: "below its history",
    BenchFindingKind.CLIFF: "cliff",
    BenchFindingKind.SLOW_RANK: "slow rank",
    BenchFindingKind.SCALING_BREAK: "scaling breaks",
    BenchFindingKind.NOISE: "noise",
    BenchFindingKind.INCOMPLETE: "incomplete",
}

# Fewer show no level, however they are judged.
_LEAST_SIZES = 3
# Hosts that were measured alike, one at a time, are compared with each other from so many on.
_FEW_ALIKE = 3
_UNCOMPARED = "NO FAULT FOUND"


def kind(kind_: BenchFindingKind) -> str:
    """The kind of a finding in words."""
    return _KINDS[kind_]


def largest(report: BenchReport) -> BenchCurve | None:
    """The curve of the most hosts that has any points, else of the most hosts."""
    measured = [curve for curve in report.curves if curve.points] or list(report.curves)
    return measured[-1] if measured else None


def headline(report: BenchReport) -> str:
    """The verdict in capitals; nobody can call healthy what nothing was compared with."""
    if report.verdict is Verdict.HEALTHY and not _is_compared(report):
        return _UNCOMPARED
    return report.verdict.upper()


def _is_compared(report: BenchReport) -> bool:
    """Whether anything besides the measurement itself said what to reach."""
    curve = largest(report)
    if curve is None:
        return False
    if curve.expected_busbw_gb_per_s is not None or curve.history_plateau_gb_per_s is not None:
        return True
    return len(_alike(report, curve)) >= _FEW_ALIKE


def _alike(report: BenchReport, curve: BenchCurve) -> list[BenchCurve]:
    """The curves of single hosts with as many ranks, which are compared with each other."""
    return [one for one in report.curves if len(one.hosts) == 1 and one.ranks == curve.ranks]


def apart(report: BenchReport) -> bool:
    """Whether several curves are of other hosts, and not of more of them."""
    return len({len(one.hosts) for one in report.curves}) < len(report.curves)


def verdict(report: BenchReport) -> str:
    """One line: what was found, or why nothing could be."""
    stopped = " (interrupted: as known so far)" if report.interrupted else ""
    return _found(report) + stopped


def _found(report: BenchReport) -> str:
    if report.verdict is Verdict.FAULTY:
        faults = [one.kind for one in report.findings if one.severity is BenchSeverity.FAULT]
        counts = {kind_: faults.count(kind_) for kind_ in dict.fromkeys(faults)}
        return ", ".join(
            kind(kind_) if number == 1 else f"{kind(kind_)} ({number})"
            for kind_, number in counts.items()
        )
    curve = largest(report)
    if report.verdict is Verdict.HEALTHY and curve is not None:
        compared = "" if _is_compared(report) else ", nothing to compare with"
        return f"{plateau(curve)}{compared}"
    return next(_unknowns(report, curve))


def _unknowns(report: BenchReport, curve: BenchCurve | None) -> Iterator[str]:
    """Why it could not be decided, the most important reason first."""
    if curve is None or not curve.points:
        why = next((one.error for one in report.curves if one.error), None)
        if why is None and report.curves:
            why = "no size was large enough for so many ranks"
        why = why or next(iter(report.notes), None)
        yield f"nothing was measured: {why}" if why else "nothing was measured"
    if any(one.kind is BenchFindingKind.INCOMPLETE for one in report.findings):
        yield "not every run gave a whole result"
    if curve is not None and curve.plateau_busbw_gb_per_s is None:
        few = sum(point.busbw_gb_per_s is not None for point in curve.points) < _LEAST_SIZES
        why = "too few sizes were measured" if few else "the curve still rises at its largest sizes"
        yield f"{why}, so nothing could be judged"
    if report.unreachable:
        yield f"{format_count(len(report.unreachable), 'host')} unreachable"
    yield "too little was measured to decide"


def what(report: BenchReport) -> str:
    """``all_reduce over 16 GPUs on 2 hosts``."""
    curve = report.curves[-1] if report.curves else None
    if curve is None:
        return report.collective
    ranks = format_count(curve.ranks, "rank")
    if apart(report) and len(_alike(report, curve)) == len(report.curves):
        return f"{report.collective} over {ranks} on each of {len(report.curves)} hosts"
    return f"{report.collective} over {ranks} on {format_count(len(curve.hosts), 'host')}"


def plateau(curve: BenchCurve) -> str:
    """What the largest sizes reach, and what they should."""
    rate = curve.plateau_busbw_gb_per_s
    if rate is None or curve.plateau_from_bytes is None:
        reached = "no plateau reached"
    else:
        reached = f"{rate:.4g} GB/s from {format_bytes(curve.plateau_from_bytes)} on"
    if curve.expected_busbw_gb_per_s is None:
        return reached
    should = f"{curve.expected_busbw_gb_per_s:.4g} GB/s expected"
    if curve.efficiency is None:
        return f"{reached}; {should}"
    return f"{reached}, {percent(curve.efficiency)} of {should}"


def measured(report: BenchReport) -> str:
    """One line: when, how long, and with what."""
    when = report.started.replace("T", " ").removesuffix("Z")
    return (
        f"{when} UTC, {format_duration(report.seconds)}; {what(report)} "
        f"({report.engine}, {report.launcher})"
    )


def yardstick(report: BenchReport) -> str:
    """One line: what the figures were compared with."""
    curve = largest(report)
    parts = []
    if curve is not None and curve.expected_from:
        parts.append(curve.expected_from[0])
    if curve is not None and curve.history_plateau_gb_per_s is not None:
        parts.append(
            f"median of {curve.history_runs} earlier benchmarks "
            f"{curve.history_plateau_gb_per_s:.4g} GB/s"
        )
    if curve is not None and len(alike := _alike(report, curve)) >= _FEW_ALIKE:
        parts.append(f"each other: {len(alike)} hosts that were measured alike")
    return "; ".join(parts) or "none: cliffs, wrong data and slow ranks were looked for alone"


def unreachable(report: BenchReport) -> list[tuple[str, str]]:
    """Folded hosts and the reason they share, the most frequent reason first."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for host, reason in report.unreachable.items():
        groups[reason.replace(host, "HOST")].append(host)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [
        (fold(names), report.unreachable[names[0]] if len(names) == 1 else reason)
        for reason, names in ordered
    ]


def time(microseconds: float | None) -> str:
    """``12.3 us``, ``4.56 ms``; ``-`` for nothing."""
    if microseconds is None:
        return "-"
    for unit, scale in (("us", 1.0), ("ms", 1e3), ("s", 1e6)):
        if microseconds < 1000 * scale or unit == "s":
            break
    return f"{microseconds / scale:.3g} {unit}" if microseconds < 1e9 else f"{microseconds:.3g} us"


def rate(gb_per_s: float | None) -> str:
    """Three digits that matter; ``-`` for nothing."""
    if gb_per_s is None:
        return "-"
    if gb_per_s >= 100:
        return f"{gb_per_s:,.0f}"
    return f"{gb_per_s:.1f}" if gb_per_s >= 10 else f"{gb_per_s:.3g}"


def percent(share: float | None) -> str:
    """``98 %``, or ``-`` where there is no figure."""
    return "-" if share is None else format_share(share)


def share(point: BenchPoint) -> float | None:
    """Measured over expected."""
    if point.busbw_gb_per_s is None or not point.expected_busbw_gb_per_s:
        return None
    return point.busbw_gb_per_s / point.expected_busbw_gb_per_s


def spread(point: BenchPoint) -> str:
    """Least and most over the repeats; ``-`` without repeats."""
    if point.repeats < 2:
        return "-"
    return f"{rate(point.min_busbw_gb_per_s)}-{rate(point.max_busbw_gb_per_s)}"


def remarks(point: BenchPoint) -> str:
    """What is odd about a size."""
    odd = []
    if point.wrong:
        odd.append(f"{point.wrong:,} wrong")
    if point.cliff:
        odd.append("cliff")
    return ", ".join(odd)
