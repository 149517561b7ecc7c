"""Hosts that were benchmarked one at a time, each compared with the others."""

from collections.abc import Collection, Sequence
from statistics import median

from ncdiag.model.bench import BenchCurve, BenchFinding, BenchFindingKind, BenchSeverity
from ncdiag.model.units import format_share

# Hosts measured alike, one at a time, that are enough for a median to be a yardstick.
_FEW_ALIKE = 3


def odd_hosts(curves: Sequence[BenchCurve], faulty_below: float) -> tuple[BenchFinding, ...]:
    """Hosts measured one at a time that fall behind the median of all that were, the worst first.

    They are compared at the sizes of a host's own plateau: larger messages, which it did not
    send, may reach more. Of two that differ nobody can tell which one is odd: that is a note.
    """
    alone = [curve for curve in curves if len(curve.hosts) == 1]
    findings = []
    for curve in alone:
        sizes = _plateau_sizes(curve)
        level = _level(curve, sizes)
        others = [_level(one, sizes) for one in alone if one.ranks == curve.ranks]
        alike = [one for one in others if one is not None]
        if level is None or len(alike) < 2:
            continue
        usual = max(alike) if len(alike) < _FEW_ALIKE else median(alike)
        if level < faulty_below * usual:
            findings.append((level / usual, _finding(curve.hosts[0], level, usual, len(alike))))
    return tuple(finding for _, finding in sorted(findings, key=lambda one: one[0]))


def _plateau_sizes(curve: BenchCurve) -> set[int]:
    if curve.plateau_from_bytes is None:
        return set()
    least = curve.plateau_from_bytes
    return {one.size_bytes for one in curve.points if one.size_bytes >= least}


def _level(curve: BenchCurve, sizes: Collection[int]) -> float | None:
    """The bus bandwidth of a host at ``sizes`` in GB/s, as far as it was measured there."""
    rates = [
        one.busbw_gb_per_s
        for one in curve.points
        if one.size_bytes in sizes and one.busbw_gb_per_s is not None
    ]
    return median(rates) if rates else None


def _finding(host: str, level: float, usual: float, count: int) -> BenchFinding:
    share = format_share(level / usual)
    reached = f"{host} by itself reaches {level:.4g} GB/s, {share} of {usual:.4g} GB/s"
    if count < _FEW_ALIKE:
        return BenchFinding(
            kind=BenchFindingKind.INCOMPLETE,
            severity=BenchSeverity.NOTE,
            text=f"{reached} that the other one reaches: of two nobody can tell which is odd",
            next="measure a third host alike, or give --machine",
        )
    return BenchFinding(
        kind=BenchFindingKind.BELOW_EXPECTATION,
        severity=BenchSeverity.FAULT,
        text=f"{reached}, the median of {count} hosts measured alike",
        next=f"on {host}: GPUs, NVLinks and PCIe (nvidia-smi nvlink -s, dmesg)",
        host=host,
    )
