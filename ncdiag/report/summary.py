"""``summary.txt``: at most ten lines to paste into a ticket."""

from collections.abc import Iterator
from itertools import islice

from ncdiag.model.nodes import fold
from ncdiag.model.verdict import HostStatus, SweepReport
from ncdiag.report import describe

_LINES = 10
_CULPRITS = 3
_LINE = 300


def render(report: SweepReport) -> str:
    """The sweep in ten lines or fewer."""
    return "".join(f"{_cut(line)}\n" for line in islice(_lines(report), _LINES))


def _lines(report: SweepReport) -> Iterator[str]:
    diagnosis = report.diagnosis
    yield f"ncdiag sweep: {diagnosis.verdict.upper()} - {describe.verdict(report)}"
    yield f"measured:    {describe.measured(report)}"
    yield f"yardstick:   {describe.yardstick(report)}"
    yield from _culprits(report)
    if diagnosis.isolate:
        yield f"isolate:     {fold(diagnosis.isolate)}"
    yield from _hosts(report, HostStatus.UNREACHABLE, "unreachable:")
    yield from _hosts(report, HostStatus.INCONCLUSIVE, "undecided:")
    if diagnosis.contention:
        first = describe.contention(diagnosis.contention[0])
        yield f"contention:  {first}{_more(len(diagnosis.contention) - 1)}"
    notes = [text for text in (describe.untested(report), *diagnosis.notes) if text]
    if notes:
        yield f"note:        {notes[0]}{_more(len(notes) - 1)}"


def _hosts(report: SweepReport, status: HostStatus, what: str) -> Iterator[str]:
    groups = describe.hosts_by_reason(report, status)
    if groups:
        nodes, reason = groups[0]
        yield f"{what:12} {nodes}: {reason}{_more(len(groups) - 1)}"


def _culprits(report: SweepReport) -> Iterator[str]:
    culprits = report.diagnosis.culprits
    for number, one in enumerate(culprits[:_CULPRITS], start=1):
        left_out = _more(len(culprits) - _CULPRITS) if number == _CULPRITS else ""
        reaches = f"{'with' if one.damaged else 'at'} {describe.reaches(one)}"
        name = describe.culprit(one, report.plan.endpoint)
        yield f"culprit:     {name} {reaches}: {one.reason}{left_out}"


def _more(number: int) -> str:
    return f" (+{number} more)" if number > 0 else ""


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."
