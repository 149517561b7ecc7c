"""``ncdiag isolate export``: the list for programs that are told whom to leave out."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import Nodes, PolicyFile, StoreFile
from ncdiag.model.errors import ExitCode

if TYPE_CHECKING:
    from ncdiag.model.isolation import Decision


class ExportFormat(StrEnum):
    """What is printed."""

    HOSTFILE = "hostfile"
    SLURM = "slurm"
    SRUN_EXCLUDE = "srun-exclude"
    JSON = "json"


def export(
    *,
    as_: Annotated[
        ExportFormat,
        typer.Option(
            "--as",
            rich_help_panel="Output",
            help="hostfile: a host a line; slurm: one line for -x; srun-exclude: the whole option.",
        ),
    ] = ExportFormat.HOSTFILE,
    nodes: Nodes = None,
    policy: PolicyFile = None,
    store: StoreFile = None,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Print the hosts that should be out, for a program that leaves them out; changes nothing.

    The exit code is 0, also for an empty list, and 1 with nothing printed where the safety budget
    refuses.
    """
    from ncdiag.cli.isolate.asking import decide_now, fleet_of, open_ledger
    from ncdiag.isolate.exporting import chosen
    from ncdiag.isolate.policy import read_policy

    rules = read_policy(policy)
    fleet, leaves = fleet_of(nodes)
    with open_ledger(store) as ledger:
        decisions = decide_now(ledger, rules, ledger.isolated())
    found = chosen(decisions, rules.budget, fleet, leaves)
    if found.refused is not None:
        console.messages(no_color=no_color).print(f"refused: {found.refused}")
        return ExitCode.WRONG
    console.write(_document(as_, found.decisions))
    return ExitCode.DONE


def _document(as_: ExportFormat, decisions: "Sequence[Decision]") -> bytes:
    from ncdiag.isolate.exporting import as_slurm_writes_it

    names = [one.host for one in decisions]
    match as_:
        case ExportFormat.HOSTFILE:
            return "".join(f"{name}\n" for name in names).encode()
        case ExportFormat.SLURM:
            return f"{as_slurm_writes_it(names)}\n".encode() if names else b""
        case ExportFormat.SRUN_EXCLUDE:
            return f"--exclude={as_slurm_writes_it(names)}\n".encode() if names else b""
        case ExportFormat.JSON:
            from ncdiag.report.isolation import json_report
            from ncdiag.report.isolation.records import IsolationList

            return json_report.render_list(IsolationList(decisions=decisions))
