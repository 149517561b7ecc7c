"""nccl-tests and rccl-tests as results: the runs in a file."""

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults
from ncdiag.model.text import visible
from ncdiag.read.nccl_tests import read_report, recognises

__all__ = ["FORMAT", "read", "recognises"]

FORMAT = "nccl-tests"


def read(data: bytes, path: str) -> ForeignResults:
    """The runs in a file; raises :class:`UsageError` where none has a result."""
    runs = read_report(data, path)
    told = [run for run in runs if run.rows]
    if not told:
        raise UsageError(f"{visible(path)}: output of nccl-tests without a single result in it")
    results = ForeignResults(format=FORMAT, path=path, benchmarks=told)
    results.started = next((run.started for run in told if run.started), None)
    results.cut = len(told) < len(runs) or not all(run.complete for run in told)
    if len(told) < len(runs):
        results.notes.append(f"{len(runs) - len(told)} of {len(runs)} runs in it have no result")
    failed = sum(run.failed is not None for run in told)
    if failed:
        results.notes.append(f"{failed} of its runs ended in an error")
    return results
