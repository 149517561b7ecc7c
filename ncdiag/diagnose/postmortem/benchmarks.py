"""The results of nccl-tests in a line each."""

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.finding import BenchmarkSummary
from ncdiag.model.log import LogEvidence


def benchmarks(evidence: LogEvidence) -> list[BenchmarkSummary]:
    """A summary of every run that announced itself or printed a table, in the order read."""
    return [_summary(benchmark) for benchmark in evidence.benchmarks]


def peak_busbw(benchmark: Benchmark) -> float | None:
    """The largest bus bandwidth of a table, out-of-place or in-place."""
    halves = (
        busbw for row in benchmark.rows for busbw in (row.out_of_place_busbw, row.in_place_busbw)
    )
    return max((busbw for busbw in halves if busbw is not None), default=None)


def rank_count(benchmark: Benchmark) -> int | None:
    """The number of ranks that took part, by the rank table.

    A report may list the first GPU of each process only, and say how many each has.
    """
    listed = max((rank.rank + 1 for rank in benchmark.ranks), default=0)
    return max(listed, benchmark.expected_ranks or 0) or None


def _summary(benchmark: Benchmark) -> BenchmarkSummary:
    return BenchmarkSummary(
        test=benchmark.test,
        ranks=rank_count(benchmark),
        avg_busbw_gb_per_s=benchmark.avg_busbw,
        peak_busbw_gb_per_s=peak_busbw(benchmark),
        out_of_bounds=benchmark.out_of_bounds,
        complete=benchmark.complete,
    )
