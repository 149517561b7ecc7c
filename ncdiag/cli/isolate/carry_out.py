"""``ncdiag isolate plan`` and ``apply``: what decisions change at a place, and changing it."""

import shlex
from typing import TYPE_CHECKING

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import (
    Context,
    File,
    Nodes,
    Place,
    PolicyFile,
    StoreFile,
    TableFormat,
    TableFormatOption,
    Yes,
)
from ncdiag.model.errors import ExitCode
from ncdiag.model.text import visible

if TYPE_CHECKING:
    from ncdiag.model.isolation import IsolationPlan

_NOTHING_DONE = "nothing was changed; --yes carries it out"


def plan(
    *,
    to: Place,
    file: File = None,
    context: Context = None,
    nodes: Nodes = None,
    policy: PolicyFile = None,
    store: StoreFile = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Print what apply would change at a place, and change nothing.

    The exit code is 0 where no host has to be isolated, 1 where some have to or the safety budget
    refuses, 3 where the place cannot be asked.
    """
    from ncdiag.cli.isolate.asking import open_ledger, place_of, rules_of
    from ncdiag.isolate import apply as applying
    from ncdiag.report.labelled import say_whole

    place = place_of(to, file, context)
    with open_ledger(store) as ledger:
        made = applying.plan(ledger, place, rules_of(ledger, policy, nodes))
    _print(made, place.key, output_format, no_color=no_color, carried_out=False)
    if _has_steps(made):
        words = ["--to", to, *_given("--file", file), *_given("--context", context)]
        words += [*_given("--nodes", nodes), *_given("--policy", policy), *_given("--store", store)]
        command = visible(shlex.join(["ncdiag", "isolate", "apply", *words, "--yes"]))
        say_whole(console.messages(no_color=no_color), "next", command)
    return _code_of_plan(made)


def apply(
    *,
    to: Place,
    file: File = None,
    context: Context = None,
    yes: Yes = False,
    nodes: Nodes = None,
    policy: PolicyFile = None,
    store: StoreFile = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Isolate at a place who should be out, and release who should be back; --yes does it.

    The exit code is 0 where all was carried out or nothing had to be, 1 where the safety budget
    refuses, 3 where something could not be carried out or the place cannot be asked. Without --yes
    it is that of plan.
    """
    from ncdiag.cli.isolate.asking import open_ledger, place_of, rules_of, who
    from ncdiag.isolate import apply as applying

    place = place_of(to, file, context)
    with open_ledger(store, write=yes) as ledger:
        rules = rules_of(ledger, policy, nodes)
        if yes:
            made = applying.apply(ledger, place, rules, who())
        else:
            made = applying.plan(ledger, place, rules)
    _print(made, place.key, output_format, no_color=no_color, carried_out=yes)
    if not yes:
        if _has_steps(made):
            console.messages(quiet=quiet, no_color=no_color).print(_NOTHING_DONE, soft_wrap=True)
        return _code_of_plan(made)
    if made.refused is not None:
        return ExitCode.WRONG
    failed = any(change.error is not None for change in made.changes)
    return ExitCode.UNDECIDED if failed else ExitCode.DONE


def _print(
    made: "IsolationPlan",
    place: str,
    output_format: TableFormat,
    *,
    no_color: bool,
    carried_out: bool,
) -> None:
    match output_format:
        case TableFormat.JSON:
            from ncdiag.report.isolation import json_report

            console.write(json_report.render_plan(made, place, carried_out=carried_out))
        case TableFormat.CSV:
            from ncdiag.report.isolation import csv_report

            console.write(csv_report.render_changes(made.changes))
        case TableFormat.TEXT:
            from ncdiag.report.isolation import text

            out = console.results(no_color=no_color)
            text.render_plan(made, place, out, carried_out=carried_out)


def _has_steps(made: "IsolationPlan") -> bool:
    return made.refused is None and any(change.skipped is None for change in made.changes)


def _given(option: str, value: object) -> list[str]:
    return [] if value is None else [option, f"{value}"]


def _code_of_plan(made: "IsolationPlan") -> ExitCode:
    wanted = any(change.isolate and change.skipped is None for change in made.changes)
    return ExitCode.WRONG if wanted or made.refused is not None else ExitCode.DONE
