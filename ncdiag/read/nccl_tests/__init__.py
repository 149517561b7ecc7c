"""The output of nccl-tests and rccl-tests: result tables and JSON reports."""

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.log import LogEvidence

_HEAD_BYTES = 4096


def recognises(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a JSON report or holds a printed table."""
    # Scans of logs use parts of this package and should not load the rest.
    from ncdiag.read.nccl_tests.json_report import JsonReport
    from ncdiag.read.nccl_tests.text_report import announces

    return JsonReport.recognises(head) or announces(head)


def read_report(data: bytes, path: str) -> list[Benchmark]:
    """The runs in a file: what ``-J`` wrote, or the text that was printed.

    Never raises; of a damaged or cut file what is left of it, which may be nothing. A run that was
    cut short is not ``complete``.
    """
    from ncdiag.read.nccl_tests.json_report import JsonReport
    from ncdiag.read.nccl_tests.text_report import read_text

    if not JsonReport.recognises(data[:_HEAD_BYTES]):
        return read_text(data, path)
    report, evidence = JsonReport(path, times=True), LogEvidence()
    report.feed(data)
    report.finish(evidence)
    return evidence.benchmarks
