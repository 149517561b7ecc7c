"""Sizes that fall out of the curve, and figures that do not repeat."""

from collections.abc import Mapping, Sequence

from ncdiag.diagnose.bench.points import Looks, rated
from ncdiag.diagnose.bench.thresholds import (
    BANDWIDTH_SHARE,
    CLIFF_LOOKS,
    CLIFF_NEIGHBOURS,
    CLIFF_SHARE,
    NOISE_SHARE,
)
from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchPoint, BenchSeverity
from ncdiag.model.units import format_bytes, format_share


def find_cliffs(curve: Sequence[BenchPoint], found: Mapping[int, Looks]) -> list[BenchFinding]:
    """A finding for each size below its neighbours on both sides, which larger sizes exceed.

    It is a fault where bandwidth counts and several measurements agree, else a note.
    """
    known = list(rated(curve))
    best = max((rate for _, rate in known), default=0.0)
    cliffs = []
    for number, (point, rate) in enumerate(known):
        before = known[max(0, number - CLIFF_NEIGHBOURS) : number]
        after = known[number + 1 : number + 1 + CLIFF_NEIGHBOURS]
        if not before or not after:
            continue
        beside = min(max(r for _, r in before), max(r for _, r in after))
        if rate < CLIFF_SHARE * beside:
            agree = _agree(found[point.size_bytes], CLIFF_SHARE * beside)
            counts = beside >= BANDWIDTH_SHARE * best
            cliffs.append(_cliff(point, rate, beside, fault=agree and counts, agree=agree))
    return cliffs


def _agree(one: Looks, bound: float) -> bool:
    """Whether several measurements are below ``bound``, and none is not."""
    return len(one.rates) >= CLIFF_LOOKS and all(rate < bound for rate in one.rates)


def _cliff(
    point: BenchPoint, rate: float, beside: float, *, fault: bool, agree: bool
) -> BenchFinding:
    size = format_bytes(point.size_bytes)
    text = (
        f"at {size} the bus bandwidth falls to {rate:.4g} GB/s, "
        f"{format_share(rate / beside)} of its neighbours' {beside:.4g} GB/s"
    )
    if not agree:
        text += "; not every measurement agrees"
    return BenchFinding(
        kind=BenchFindingKind.CLIFF,
        severity=BenchSeverity.FAULT if fault else BenchSeverity.NOTE,
        text=text,
        next=(
            f"run {size} alone with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING and compare algorithm "
            "and protocol with those of the sizes beside it"
            if agree
            else "measure again with --repeat 5"
        ),
        size_bytes=point.size_bytes,
    )


def find_drop(curve: Sequence[BenchPoint]) -> BenchFinding | None:
    """A note where the largest sizes fall and stay low: nothing larger can say what that is."""
    known = list(rated(curve))
    best = max((rate for _, rate in known), default=0.0)
    for number in range(CLIFF_NEIGHBOURS, len(known)):
        beside = min(rate for _, rate in known[number - CLIFF_NEIGHBOURS : number])
        most = max(rate for _, rate in known[number:])
        if most < CLIFF_SHARE * beside and beside >= BANDWIDTH_SHARE * best:
            return _drop(known[number][0], most / beside, last=number == len(known) - 1)
    return None


def _drop(point: BenchPoint, share: float, *, last: bool) -> BenchFinding:
    size, percent = format_bytes(point.size_bytes), format_share(share)
    return BenchFinding(
        kind=BenchFindingKind.CLIFF,
        severity=BenchSeverity.NOTE,
        text=(
            f"{size}, the largest size, reaches {percent} of the sizes before it"
            if last
            else f"from {size} on, no size reaches more than {percent} of those before"
        ),
        next=(
            "measure beyond it with --sizes, to see whether larger sizes stay slow"
            if last
            else f"run {size} alone with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING and compare "
            "algorithm and protocol with those of smaller sizes"
        ),
        size_bytes=point.size_bytes,
    )


def find_noise(curve: Sequence[BenchPoint]) -> BenchFinding | None:
    """One note on the sizes that do not repeat, where bandwidth counts."""
    best = max((rate for _, rate in rated(curve)), default=0.0)
    noisy = []
    for point, rate in rated(curve):
        low, high = point.min_busbw_gb_per_s, point.max_busbw_gb_per_s
        if low is None or high is None or point.repeats < 2 or rate < BANDWIDTH_SHARE * best:
            continue
        if (high - low) / rate > NOISE_SHARE:
            noisy.append(((high - low) / rate, point, low, high))
    if not noisy:
        return None
    spread, worst, low, high = max(noisy, key=lambda one: one[0])
    share = format_share(spread)
    others = f", and {len(noisy) - 1} more sizes do" if len(noisy) > 1 else ""
    return BenchFinding(
        kind=BenchFindingKind.NOISE,
        severity=BenchSeverity.NOTE,
        text=(
            f"at {format_bytes(worst.size_bytes)} the repeats differ by {share} "
            f"({low:.4g} to {high:.4g} GB/s){others}"
        ),
        next="see that nothing else uses the hosts and the fabric, and measure again",
        size_bytes=worst.size_bytes,
    )
