"""``ncdiag isolate show``: which hosts something speaks against, and why."""

from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import PolicyFile, StoreFile, TableFormat, TableFormatOption


def show(
    host: Annotated[
        str | None,
        typer.Argument(metavar="[HOST]", help="Of this host, all evidence and what was done."),
    ] = None,
    *,
    store: StoreFile = None,
    policy: PolicyFile = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    no_color: options.NoColor = False,
) -> None:
    """Show the hosts that something speaks against: what follows, why, how sure, until when.

    The exit code is 0, whoever is on the list.
    """
    from ncdiag.cli.isolate.asking import decide_now, expand_all, known_hosts, near, open_ledger
    from ncdiag.isolate.policy import read_policy
    from ncdiag.report.isolation.records import IsolationList

    name = None if host is None else expand_all([host])[0]
    with open_ledger(store) as ledger:
        places = sorted({action.place for action in ledger.actions()})
        isolated = [one for place in places for one in ledger.isolated(place).values()]
        out = {one.host for one in isolated}
        decisions = decide_now(ledger, read_policy(policy), out)
        found = IsolationList(
            decisions=[one for one in decisions if name in (None, one.host)],
            isolated=[one for one in isolated if name in (None, one.host)],
            all_evidence=() if name is None else ledger.evidence([name]),
            actions=() if name is None else ledger.actions(host=name),
        )
        hint = near(name, known_hosts(ledger)) if name is not None and found.is_empty() else ""
    match output_format:
        case TableFormat.JSON:
            from ncdiag.report.isolation import json_report

            console.write(json_report.render_list(found))
        case TableFormat.CSV:
            from ncdiag.report.isolation import csv_report

            console.write(csv_report.render_list(found))
        case TableFormat.TEXT:
            from ncdiag.report.isolation import text

            printed = console.results(no_color=no_color)
            if name is None:
                text.render_list(found, printed)
            else:
                text.render_host(name, found, printed, hint=hint)
