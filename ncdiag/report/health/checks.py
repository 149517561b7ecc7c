"""The checks themselves: a list, and what one of them means."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.health.checks.check import Check
from ncdiag.report.json_document import layout
from ncdiag.report.labelled import say

SCHEMA: Final = "ncdiag/health-checks/1"


def list_all(checks: Sequence[Check], console: Console) -> None:
    """A line a check: its id, how much it weighs at most, and what it looks at."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("at most", no_wrap=True)
    table.add_column("looks at", overflow="fold", ratio=1)
    for one in checks:
        table.add_row(Text(one.id), Text(one.severity), Text(one.title))
    console.print(table)


def explain(check: Check, console: Console) -> None:
    """What it looks at, what it means when it trips, and what to do."""
    say(console, "check", f"{check.id}: {check.title}")
    say(console, "at most", check.severity)
    say(console, "meaning", check.meaning)
    say(console, "what to do", check.fix)
    if check.sources:
        say(console, "read from", " or ".join(source.value for source in check.sources))
    if check.configuration:
        say(console, "kind", "a setting, no broken hardware")


def render_json(checks: Sequence[Check]) -> bytes:
    """The same for programs."""
    rows = [
        {
            "id": one.id,
            "title": one.title,
            "severity": one.severity,
            "meaning": one.meaning,
            "fix": one.fix,
            "sources": one.sources,
            "configuration": one.configuration,
        }
        for one in checks
    ]
    return layout({"schema": SCHEMA, "checks": rows})
