"""``metrics.prom``: a Prometheus textfile, as node_exporter's textfile collector reads it."""

from collections.abc import Iterable, Iterator

from ncdiag.model.bench import BenchCurve, BenchFindingKind, BenchReport, BenchSeverity
from ncdiag.model.verdict import Verdict
from ncdiag.report.exposition import Sample, finished, gauge


def render(report: BenchReport) -> str:
    """Verdict, findings, and what each number of hosts reached."""
    return "".join(
        line
        for name, text, samples in _families(report)
        for line in gauge(f"ncdiag_bench_{name}", text, samples)
    )


def _families(report: BenchReport) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    which = {"collective": report.collective}
    yield (
        "verdict",
        "The verdict of the last benchmark: 1 on the one that holds.",
        [({**which, "verdict": one}, float(one is report.verdict)) for one in Verdict],
    )
    yield (
        "finished_timestamp_seconds",
        "When it ended, since 1970.",
        finished(report.started, report.seconds, which),
    )
    yield "duration_seconds", "How long it took.", [(which, report.seconds)]
    faults = [one.kind for one in report.findings if one.severity is BenchSeverity.FAULT]
    yield (
        "faults",
        "What is wrong, by kind.",
        [({**which, "kind": one}, float(faults.count(one))) for one in BenchFindingKind],
    )
    last = _by_ranks(report)
    yield (
        "plateau_busbw_bytes_per_second",
        "Bus bandwidth where large messages level off.",
        [
            ({**which, "ranks": one.ranks}, one.plateau_busbw_gb_per_s * 1e9)
            for one in last
            if one.plateau_busbw_gb_per_s is not None
        ],
    )
    yield (
        "efficiency_ratio",
        "That over what it should reach.",
        [
            ({**which, "ranks": one.ranks}, one.efficiency)
            for one in last
            if one.efficiency is not None
        ],
    )


def _by_ranks(report: BenchReport) -> list[BenchCurve]:
    """Of curves with as many ranks, as those of single hosts have, the slowest."""
    found: dict[int, BenchCurve] = {}
    for one in report.curves:
        other = found.get(one.ranks)
        if other is None or _plateau(one) < _plateau(other):
            found[one.ranks] = one
    return list(found.values())


def _plateau(curve: BenchCurve) -> float:
    return float("inf") if curve.plateau_busbw_gb_per_s is None else curve.plateau_busbw_gb_per_s
