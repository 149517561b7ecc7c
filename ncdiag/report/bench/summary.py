"""``summary.txt``: at most ten lines to paste into a ticket."""

from collections.abc import Iterator
from itertools import islice

from ncdiag.model.bench import BenchReport
from ncdiag.report.bench import describe

_LINES = 10
_FINDINGS = 4
_LINE = 300


def render(report: BenchReport) -> str:
    """The benchmark in ten lines or fewer."""
    return "".join(f"{_cut(line)}\n" for line in islice(_lines(report), _LINES))


def _lines(report: BenchReport) -> Iterator[str]:
    yield f"ncdiag bench: {report.verdict.upper()} - {describe.verdict(report)}"
    yield f"measured:    {describe.measured(report)}"
    curve = describe.largest(report)
    if curve is not None:
        yield f"plateau:     {describe.plateau(curve)}"
    yield f"yardstick:   {describe.yardstick(report)}"
    left_out = len(report.findings) - _FINDINGS
    for number, one in enumerate(report.findings[:_FINDINGS], start=1):
        more = f" (+{left_out} more)" if number == _FINDINGS and left_out > 0 else ""
        yield f"{one.severity + ':':12} {describe.kind(one.kind)}: {one.text}{more}"
    for nodes, reason in describe.unreachable(report)[:1]:
        yield f"unreachable: {nodes}: {reason}"
    for note in report.notes[:1]:
        yield f"note:        {note}"


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."
