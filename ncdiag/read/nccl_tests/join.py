"""Puts a table together again that was read in two pieces of one input."""

from ncdiag.model.benchmark import Benchmark


def continue_benchmark(first: Benchmark, later: Benchmark) -> bool:
    """Add ``later`` to ``first`` if it can only be the rest of it; says whether it was."""
    going_on = first.heading is not None and not first.complete and first.failed is None
    if not (going_on and later.headless and not later.ranks):
        return False
    first.rows.extend(later.rows)
    first.avg_busbw = later.avg_busbw
    first.out_of_bounds = later.out_of_bounds
    first.complete = later.complete
    first.failed = later.failed
    first.end = later.end or first.end
    first.unfinished_size = later.unfinished_size
    return True
