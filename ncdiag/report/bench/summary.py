"""``summary.txt``: at most ten lines to paste into a ticket."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchReport
from ncdiag.model.nodes import fold
from ncdiag.report.bench import describe

_LINES = 10
# Lines before the findings.
_HEAD = 5
_LINE = 300


def render(report: BenchReport) -> str:
    """The benchmark in ten lines or fewer."""
    return "".join(f"{_cut(line)}\n" for line in islice(_lines(report), _LINES))


def _lines(report: BenchReport) -> Iterator[str]:
    yield f"ncdiag bench: {describe.headline(report)} - {describe.verdict(report)}"
    yield f"measured:    {describe.measured(report)}"
    curve = describe.largest(report)
    if curve is not None:
        yield f"hosts:       {fold(curve.hosts)}"
        yield f"plateau:     {describe.plateau(curve)}"
    yield f"yardstick:   {describe.yardstick(report)}"
    room = _LINES - _HEAD - bool(report.unreachable)  # notes are told where some is left
    told = _one_of_each_kind_first(report)
    shown = told if len(told) <= room else told[: room - 1]
    for one in shown:
        kind = describe.kind(one.kind)
        of_itself = "" if one.text.startswith(kind) else f"{kind}: "
        yield f"{one.severity + ':':12} {of_itself}{one.text}"
    if len(shown) < len(told):
        yield f"more:        {len(told) - len(shown)} more findings in the report"
    for nodes, reason in describe.unreachable(report)[:1]:
        yield f"unreachable: {nodes}: {reason}"
    for note in report.notes[:1]:
        yield f"note:        {note}"


def _one_of_each_kind_first(report: BenchReport) -> list[BenchFinding]:
    """The findings, faults first; repetitions of a kind, as over more hosts, after all kinds."""
    seen: Counter[BenchFindingKind] = Counter()
    order = []
    for one in report.findings:
        order.append((one.severity, seen[one.kind]))
        seen[one.kind] += 1
    places = sorted(range(len(order)), key=lambda place: (order[place], place))
    return [report.findings[place] for place in places]


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."
