"""``summary.txt``: at most ten lines to paste into a ticket."""

from collections.abc import Iterator

from ncdiag.model.verdict import SweepReport
from ncdiag.report import describe
from ncdiag.report.node_lists import fold

_CULPRITS = 3
_LINE = 300


def render(report: SweepReport) -> str:
    """The sweep in ten lines or fewer."""
    return "".join(f"{_cut(line)}\n" for line in _lines(report))


def _lines(report: SweepReport) -> Iterator[str]:
    diagnosis = report.diagnosis
    yield f"ncdiag sweep: {diagnosis.verdict.upper()} - {describe.verdict(report)}"
    yield f"measured:    {describe.measured(report)}"
    yield f"yardstick:   {describe.yardstick(report)}"
    yield from _culprits(report)
    if diagnosis.isolate:
        yield f"isolate:     {fold(diagnosis.isolate)}"
    groups = describe.unreachable(report)
    if groups:
        nodes, reason = groups[0]
        yield f"unreachable: {nodes}: {reason}{_more(len(groups) - 1)}"
    if diagnosis.contention:
        first = describe.contention(diagnosis.contention[0])
        yield f"contention:  {first}{_more(len(diagnosis.contention) - 1)}"
    notes = [text for text in (describe.untested(report), *diagnosis.notes) if text]
    if notes:
        yield f"note:        {notes[0]}{_more(len(notes) - 1)}"


def _culprits(report: SweepReport) -> Iterator[str]:
    culprits = report.diagnosis.culprits
    for number, one in enumerate(culprits[:_CULPRITS], start=1):
        left_out = _more(len(culprits) - _CULPRITS) if number == _CULPRITS else ""
        yield (
            f"culprit:     {describe.culprit(one)} at {describe.percent(one.efficiency)}: "
            f"{one.reason}{left_out}"
        )


def _more(number: int) -> str:
    return f" (+{number} more)" if number > 0 else ""


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."
