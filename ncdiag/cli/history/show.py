"""``ncdiag history host|link|bench``: runs in order of time, and the one line they add up to."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncdiag.cli import console, options
from ncdiag.cli.history.asking import (
    Last,
    Since,
    StoreFile,
    TableFormat,
    TableFormatOption,
    open_to_read,
)
from ncdiag.model.errors import ExitCode, UndecidedError, UsageError

if TYPE_CHECKING:
    from ncdiag.report.history.records import History
    from ncdiag.store.store import Store

_WHICH = "Which runs"
_OUTPUT = "Output"
_SHOWN_NAMES = 5

Picture = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", rich_help_panel=_OUTPUT, help="Draw the figures."),
]
Force = Annotated[
    bool, typer.Option("--force", rich_help_panel=_OUTPUT, help="Write over a file that exists.")
]
Rail = Annotated[
    int | None,
    typer.Option("--rail", metavar="N", min=0, rich_help_panel=_WHICH, help="On this rail only."),
]
HostsCount = Annotated[
    int | None,
    typer.Option(
        "--host-count", metavar="N", min=1, rich_help_panel=_WHICH, help="Over so many hosts only."
    ),
]


def host(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The host.")],
    *,
    store: StoreFile = None,
    last: Last = 30,
    since: Since = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    png: Picture = None,
    force: Force = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Show a host over the recorded sweeps: what it sends and receives, and whether that changes.

    The exit code is 0 where all is as it was, 1 where the host is faulty or degraded now, gets
    slower or comes and goes, 3 where that cannot be told or the runs are too few.
    """
    from ncdiag.report.history.records import of_host

    with open_to_read(store) as opened:
        points = opened.host_history(name, since=since, last=last)
        if not points:
            raise _nothing(opened, (name,), f"host {name}")
    return _show(
        of_host(name, points), "host", name, output_format, png, force=force, no_color=no_color
    )


def link(
    ends: Annotated[
        list[str], typer.Argument(metavar="FROM TO", help="Two hosts, or FROM->TO as one word.")
    ],
    *,
    rail: Rail = None,
    store: StoreFile = None,
    last: Last = 30,
    since: Since = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    png: Picture = None,
    force: Force = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Show what one host sent to another over the recorded sweeps, and whether that changes.

    The exit code is 0 where all is as it was, 1 where the link is faulty or degraded now, gets
    slower or comes and goes, 3 where that cannot be told or the runs are too few.
    """
    from ncdiag.report.history.records import of_link

    source, target = _two(ends)
    with open_to_read(store) as opened:
        points = opened.link_history(source, target, rail=rail, since=since, last=last)
        if not points:
            on = "" if rail is None else f" on rail {rail}"
            raise _nothing(opened, (source, target), f"link {source}->{target}{on}")
    return _show(
        of_link(source, target, points),
        "link",
        f"{source}->{target}",
        output_format,
        png,
        force=force,
        no_color=no_color,
    )


def bench(
    collective: Annotated[
        str, typer.Argument(metavar="COLLECTIVE", help="all_reduce, alltoall and so on.")
    ],
    *,
    hosts: HostsCount = None,
    store: StoreFile = None,
    last: Last = 30,
    since: Since = None,
    output_format: TableFormatOption = TableFormat.TEXT,
    png: Picture = None,
    force: Force = False,
    no_color: options.NoColor = False,
) -> ExitCode:
    """Show the plateau of a collective over the recorded benchmarks, by number of hosts and ranks.

    The exit code is 0 where all is as it was, 1 where the newest is faulty or it gets slower, 3
    where that cannot be told or the runs are too few.
    """
    from ncdiag.report.history.records import of_collective

    with open_to_read(store) as opened:
        curves = opened.bench_history(collective, hosts=hosts, since=since, last=last)
        if not curves:
            known = opened.collectives()
            if collective not in known:
                what = f"no benchmark of {collective} was recorded"
                raise UsageError(f"{what}; {_known(collective, known, 'collectives')}")
            raise UndecidedError(f"no recorded benchmark of {collective} is what was asked for")
    return _show(
        of_collective(collective, curves),
        "bench",
        collective,
        output_format,
        png,
        force=force,
        no_color=no_color,
    )


def _two(ends: Sequence[str]) -> tuple[str, str]:
    if len(ends) == 1:
        ends = [end.strip() for end in ends[0].split("->")]
    if len(ends) != 2 or not all(ends):
        raise UsageError("a link has two ends: ncdiag history link FROM TO, or 'FROM->TO'")
    return ends[0], ends[1]


def _nothing(store: "Store", names: Iterable[str], what: str) -> UsageError | UndecidedError:
    """Why there is nothing: a name that nobody recorded, or no run that fits."""
    known = store.host_names()
    for name in names:
        if name not in known:
            return UsageError(f"host {name} is in no recorded run; {_known(name, known, 'hosts')}")
    return UndecidedError(f"no recorded run that was asked for has the {what}")


def _known(name: str, known: Sequence[str], what: str) -> str:
    if near := get_close_matches(name, known, n=1):
        return f"did you mean {near[0]}?"
    shown = ", ".join(known[:_SHOWN_NAMES])
    if not known:
        return f"there are no {what} in it"
    return f"there are {len(known)} {what}: {shown}{', ...' if len(known) > _SHOWN_NAMES else ''}"


def _show(
    histories: Sequence["History"],
    kind: str,
    name: str,
    output_format: TableFormat,
    png: Path | None,
    *,
    force: bool,
    no_color: bool,
) -> ExitCode:
    if png is not None:
        from ncdiag.report.history import picture
        from ncdiag.report.write import write_file

        if png.exists() and not force:
            raise UsageError(f"{png} exists; give --force to write over it")
        write_file(png, picture.render(histories))
    match output_format:
        case TableFormat.JSON:
            from ncdiag.report.history import json_report

            console.write(json_report.render_histories(histories, kind, name))
        case TableFormat.CSV:
            from ncdiag.report.history import csv_report

            console.write(csv_report.render_histories(histories).encode())
        case TableFormat.TEXT:
            from ncdiag.report.history import text

            text.render_histories(histories, console.results(no_color=no_color))
    standings = [history.over_time.standing for history in histories]
    if any(standing.is_wrong for standing in standings):
        return ExitCode.WRONG
    return ExitCode.UNDECIDED if any(standing.is_open for standing in standings) else ExitCode.DONE
