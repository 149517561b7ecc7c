"""The guide to the classes of findings, for ``--explain`` and ``--list-classes``."""

import re
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.diagnose.postmortem.guide import GUIDE
from ncdiag.model.finding import FindingClass
from ncdiag.report.class_name import class_name
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/finding-classes/1"
ALL: Final = tuple(FindingClass)

_PART = re.compile(r"[.:;] ")


def find(name: str) -> FindingClass:
    """The class of that name; raises :class:`UsageError` that suggests near ones."""
    return FindingClass(class_name(name, [one.value for one in FindingClass]))


def render_json(classes: Sequence[FindingClass]) -> bytes:
    """What each class means and how to act on it."""
    items = [
        {
            "class": one,
            "meaning": GUIDE[one].meaning,
            "actions": GUIDE[one].actions,
            "next": GUIDE[one].next,
        }
        for one in classes
    ]
    return layout({"schema": SCHEMA, "classes": items})


def explain(one: FindingClass, console: Console) -> None:
    """Print all that the guide says about a class."""
    guide = GUIDE[one]
    console.print(Text(one, style="bold"))
    console.print(guide.meaning)
    console.print(Text("\nWhat to do", style="bold"))
    steps = Table.grid(padding=(0, 1))
    for number, action in enumerate(guide.actions, start=1):
        steps.add_row(f"{number}.", Text(action))
    console.print(steps)
    console.print(Text("\nFirst", style="bold"))
    console.print(guide.next, soft_wrap=True)


def list_all(console: Console) -> None:
    """Print every class in a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for one in ALL:
        table.add_row(Text(one, style="bold"), Text(summary(GUIDE[one].meaning)))
    console.print(table)


def summary(text: str) -> str:
    """``text`` up to its first full stop or colon."""
    return _PART.split(text, maxsplit=1)[0]
