"""At how many hosts bandwidth breaks."""

from collections.abc import Callable, Iterator, Sequence

from ncdiag.diagnose.bench.thresholds import (
    SCALING_SHARE,
    SCALING_SHARE_ALONE,
    WITHIN_THEORY,
)
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchCurve, BenchFinding, BenchFindingKind, BenchSeverity
from ncdiag.model.units import format_count, format_share


def find_break(curves: Sequence[BenchCurve], collective: Collective) -> BenchFinding | None:
    """The first number of hosts that reaches less than fewer hosts did; ``curves`` rise in hosts.

    Each is compared by the share of its expectation where all are expected, else by bandwidth. A
    break that is a fault goes before one that may be by design.
    """
    known = [curve for curve in curves if curve.plateau_busbw_gb_per_s is not None]
    if all(curve.efficiency is not None for curve in known):
        shares = [curve.efficiency or 0.0 for curve in known]
        breaks = _breaks(known, shares, SCALING_SHARE, lambda _, broken: _within_theory(broken))
    else:
        known = [curve for curve in known if len(curve.hosts) > 1]
        rates = [curve.plateau_busbw_gb_per_s or 0.0 for curve in known]
        breaks = _breaks(
            known, rates, SCALING_SHARE_ALONE, lambda best, _: _by_design(best, collective)
        )
    return min(breaks, key=lambda one: one.severity is BenchSeverity.NOTE, default=None)


def _within_theory(broken: BenchCurve) -> str:
    """Why a break by the share of the expectation is no fault; empty if it is one."""
    if broken.expectation_unreliable:
        return "published runs miss this expectation too"
    if (broken.efficiency or 0.0) >= WITHIN_THEORY:
        return "published runs fall short of theory by as much"
    return ""


def _by_design(best: BenchCurve, collective: Collective) -> str:
    """The same by bandwidth: theory is flat with one GPU a host.

    Trees help all-reduce on two hosts, so it takes more of them to compare with.
    """
    one_gpu = best.ranks == len(best.hosts)
    if one_gpu and (collective is not Collective.ALL_REDUCE or len(best.hosts) > 2):
        return ""
    return "some of it may be by design, as nothing is known of what should be reached"


def _breaks(
    curves: Sequence[BenchCurve],
    values: Sequence[float],
    least: float,
    excuse: Callable[[BenchCurve, BenchCurve], str],
) -> Iterator[BenchFinding]:
    for number in range(1, len(curves)):
        best = max(range(number), key=lambda place: values[place])
        if values[number] < least * values[best]:
            broken = curves[number]
            yield _finding(curves[best], broken, excuse(curves[best], broken))


def _finding(best: BenchCurve, broken: BenchCurve, excuse: str) -> BenchFinding:
    added = [host for host in broken.hosts if host not in best.hosts]
    text = (
        f"bandwidth breaks at {format_count(len(broken.hosts), 'host')}: "
        f"{broken.plateau_busbw_gb_per_s:.4g} GB/s{_share(broken)} against "
        f"{best.plateau_busbw_gb_per_s:.4g} GB/s{_share(best)} on {len(best.hosts)}"
    )
    return BenchFinding(
        kind=BenchFindingKind.SCALING_BREAK,
        severity=BenchSeverity.NOTE if excuse else BenchSeverity.FAULT,
        text=f"{text}; {excuse}" if excuse else text,
        next=(
            f"ncdiag sweep over all of them; the {format_count(len(added), 'host')} added, or the "
            "switches that join them, are slow"
        ),
    )


def _share(curve: BenchCurve) -> str:
    if curve.efficiency is None:
        return ""
    return f" ({format_share(curve.efficiency)} of expected)"
