"""``ncdiag isolate add`` and ``remove``: an operator's word, which is evidence like any other."""

import time
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.isolate.arguments import HostNames, StoreFile

_WORD = "What is said"


def add(
    hosts: HostNames,
    *,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", rich_help_panel=_WORD, help="Why.")
    ],
    for_s: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="TIME",
            parser=options.as_parameter(options.parse_duration_above_zero_s),
            rich_help_panel=_WORD,
            help="How long: 12h, 2d (default: until ncdiag isolate remove).",
        ),
    ] = None,
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Put hosts on the list by hand; ncdiag isolate apply carries it out."""
    until_s = None if for_s is None else time.time() + for_s
    _say(hosts, store, what="add", text=reason, until_s=until_s, quiet=quiet)


def remove(
    hosts: HostNames,
    *,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", rich_help_panel=_WORD, help="Why.")
    ] = "",
    store: StoreFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Take hosts off the list: nothing that was seen until now counts against them any more.

    The next ncdiag isolate apply releases those that ncdiag has isolated. Of hosts that nothing is
    known of nothing can be taken off: the exit code is 2.
    """
    _check_known(hosts, store)
    _say(hosts, store, what="remove", text=reason, until_s=None, quiet=quiet)


def _check_known(names: list[str], store: Path | None) -> None:
    """Raises :class:`UsageError` where one of the hosts was never on the list."""
    from ncdiag.cli.isolate.asking import expand_all, known_hosts, near, open_ledger
    from ncdiag.model.errors import UsageError
    from ncdiag.model.text import visible

    with open_ledger(store) as ledger:
        known = known_hosts(ledger)
    there = frozenset(known)
    for host in expand_all(names):
        if host not in there:
            hint = near(host, known) or "; ncdiag isolate show lists who is"
            raise UsageError(f"{visible(host)} is not on the list{hint}")


def _say(
    names: list[str],
    store: Path | None,
    *,
    what: str,
    text: str,
    until_s: float | None,
    quiet: bool,
) -> None:
    from ncdiag.cli.isolate.asking import expand_all, open_or_make_ledger, who
    from ncdiag.isolate.places.base import namesakes
    from ncdiag.isolate.words import OPERATOR, clean
    from ncdiag.model.isolation import EvidenceKind, EvidencePiece
    from ncdiag.model.nodes import fold
    from ncdiag.model.text import visible
    from ncdiag.store.ledger_records import AuditEntry

    hosts, me, now_s = expand_all(names), who(), time.time()
    clears = what == "remove"
    pieces = [
        EvidencePiece(
            host=host,
            kind=EvidenceKind.OPERATOR,
            class_=clean(EvidenceKind.OPERATOR) if clears else OPERATOR,
            source=f"isolate {what}",
            run=f"isolate {what} {me.plan}",
            seen_s=now_s,
            text=" ".join(f"{me.user}: {text}".split()) if text else f"{me.user}",
            clears=clears,
            until_s=until_s,
        )
        for host in hosts
    ]
    with open_or_make_ledger(store) as ledger:
        ledger.add(pieces)
        ledger.note(
            AuditEntry(
                what=what,
                user=me.user,
                machine=me.machine,
                command=me.command,
                about=f"{fold(hosts)}{f': {text}' if text else ''}",
                at_s=now_s,
            )
        )
        where = visible(str(ledger.path))
        others = namesakes(hosts, ledger.hosts()) if clears else []
    done = "taken off the list" if clears else "put on the list"
    said = console.messages(quiet=quiet)
    said.print(f"{fold(hosts)} {done} in {where}", soft_wrap=True)
    if others:
        line = f"not taken off: {visible(fold(others))}; name it as well where it is the same host"
        said.print(line, soft_wrap=True)
