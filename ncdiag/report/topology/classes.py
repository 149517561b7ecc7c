"""The guide to the classes of findings, for ``topo check --explain`` and ``--list-classes``."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.diagnose.topology.classes import BY_NAME, CLASSES, FindingClass
from ncdiag.report.class_name import class_name
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/topology-classes/1"


def find(name: str) -> FindingClass:
    """The class of that name; raises :class:`UsageError` that suggests near ones."""
    return BY_NAME[class_name(name, BY_NAME)]


def render_json(classes: Sequence[FindingClass]) -> bytes:
    """What each class means and what to do about it."""
    items = [
        {
            "class": one.name,
            "about": one.area.value,
            "severities": [severity.value for severity in one.severities],
            "meaning": one.meaning,
            "action": one.action,
            "amd_action": one.amd_action or one.action,
        }
        for one in classes
    ]
    return layout({"schema": SCHEMA, "classes": items})


def explain(one: FindingClass, console: Console) -> None:
    """Print all that the table says about a class."""
    console.print(Text(one.name, style="bold"))
    console.print(Text(f"{one.meaning[:1].upper()}{one.meaning[1:]}."))
    severities = " or ".join(severity.value for severity in one.severities)
    console.print(Text(f"\nabout     {one.area.value}\nseverity  {severities}"))
    console.print(Text("\nWhat to do", style="bold"))
    console.print(Text(f"{one.action[:1].upper()}{one.action[1:]}."))
    if one.amd_action:
        console.print(Text(f"With AMD's GPUs: {one.amd_action}."))


def list_all(console: Console) -> None:
    """Print every class in a line, those about the same thing together."""
    for area, classes in groupby(CLASSES, key=lambda one: one.area):
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True, min_width=27)
        table.add_column()
        for one in classes:
            table.add_row(Text(one.name), Text(one.meaning))
        console.print(Text(area.value, style="bold"))
        console.print(table)
