"""At how many hosts bandwidth breaks."""

from collections.abc import Callable, Sequence

from ncdiag.diagnose.bench.thresholds import SCALING_SHARE, SCALING_SHARE_ALONE
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchCurve, BenchFinding, BenchFindingKind, BenchSeverity
from ncdiag.model.units import format_count


def find_break(curves: Sequence[BenchCurve], collective: Collective) -> BenchFinding | None:
    """The first number of hosts that reaches less than fewer hosts did; ``curves`` rise in hosts.

    Each is compared by the share of its expectation where all are expected, else by bandwidth. By
    bandwidth alone a break is a fault only where the theory is flat: one GPU a host, and, as trees
    help all-reduce on two hosts, more than two hosts to compare with.
    """
    known = [curve for curve in curves if curve.plateau_busbw_gb_per_s is not None]
    if all(curve.efficiency is not None for curve in known):
        return _first(known, [curve.efficiency or 0.0 for curve in known], SCALING_SHARE)
    known = [curve for curve in known if len(curve.hosts) > 1]
    rates = [curve.plateau_busbw_gb_per_s or 0.0 for curve in known]
    return _first(known, rates, SCALING_SHARE_ALONE, flat=lambda best: _flat(best, collective))


def _flat(best: BenchCurve, collective: Collective) -> bool:
    one_gpu = best.ranks == len(best.hosts)
    return one_gpu and (collective is not Collective.ALL_REDUCE or len(best.hosts) > 2)


def _first(
    curves: Sequence[BenchCurve],
    values: Sequence[float],
    least: float,
    flat: Callable[[BenchCurve], bool] = lambda _: True,
) -> BenchFinding | None:
    for number in range(1, len(curves)):
        best = max(range(number), key=lambda place: values[place])
        if values[number] < least * values[best]:
            return _finding(curves[best], curves[number], fault=flat(curves[best]))
    return None


def _finding(best: BenchCurve, broken: BenchCurve, *, fault: bool) -> BenchFinding:
    added = [host for host in broken.hosts if host not in best.hosts]
    text = (
        f"bandwidth breaks at {format_count(len(broken.hosts), 'host')}: "
        f"{broken.plateau_busbw_gb_per_s:.4g} GB/s{_share(broken)} against "
        f"{best.plateau_busbw_gb_per_s:.4g} GB/s{_share(best)} on {len(best.hosts)}"
    )
    if not fault:
        text += "; some of it may be by design, as nothing is known of what should be reached"
    return BenchFinding(
        kind=BenchFindingKind.SCALING_BREAK,
        severity=BenchSeverity.FAULT if fault else BenchSeverity.NOTE,
        text=text,
        next=(
            f"ncdiag sweep over all of them; the {format_count(len(added), 'host')} added, or the "
            "switches that join them, are slow"
        ),
    )


def _share(curve: BenchCurve) -> str:
    if curve.efficiency is None:
        return ""
    return f" ({curve.efficiency:.0%} of expected)".replace("%", " %")
