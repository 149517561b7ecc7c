"""What ``ncdiag health`` is asked to do: look once, watch, answer a scheduler, list the checks."""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ncdiag.cli import console
from ncdiag.cli.health.deadline import LONGEST_S, deadline
from ncdiag.cli.health.looking import HealthPlan, Tell, look
from ncdiag.health.check_choice import choose_checks
from ncdiag.model.errors import ExitCode, NcdiagError, UsageError
from ncdiag.model.health import HealthReport
from ncdiag.model.host import Host
from ncdiag.model.text import visible
from ncdiag.report.write import write_file

if TYPE_CHECKING:
    from rich.console import Console

_HERE = "localhost"


def carry_out(context: typer.Context, asked: Mapping[str, Any]) -> ExitCode:
    """Do what the options ask for; raises :class:`UsageError` where they do not go together."""
    if asked["list_checks"] or asked["explain"] is not None:
        return _tell_checks(asked)
    _refuse(asked)
    if asked["nagios"]:
        return _nagios(context, asked)
    from ncdiag.cli.announcing import check_folder, outlets  # which no prolog needs

    told = outlets(asked)
    if asked["metrics"]:
        check_folder(asked["metrics"], "--metrics")
    messages = console.messages(quiet=asked["quiet"], no_color=asked["no_color"])
    plan = _plan(context, asked, messages)
    if asked["watch"] is not None:
        _watch(plan, asked, messages, told.announce)
        return ExitCode.DONE
    if asked["record"] or asked["store"]:
        from ncdiag.cli import keeping  # with SQLite

        keeping.check(asked["store"], record=asked["record"])
    report = _look(plan, _teller(messages, verbose=asked["verbose"]))
    _show(report, asked)
    if asked["metrics"]:
        _write_metrics(asked["metrics"], report)
    if asked["record"]:
        _record(report, asked)
    told.announce(report)
    return report.exit_code


def _record(report: HealthReport, asked: Mapping[str, Any]) -> None:
    """Keep what was found as evidence; hosts may share a store, and be asked in one second."""
    from hashlib import sha256

    from ncdiag.cli import keeping
    from ncdiag.health.checks.table import CHECKS
    from ncdiag.isolate.evidence.of_health import of_health

    names = sha256("\n".join(host.host for host in report.hosts).encode()).hexdigest()[:12]
    run = f"health {report.started} {names}"
    pieces = of_health(report, run, CHECKS)
    keeping.keep_evidence(pieces, asked["store"], runs=(run,), quiet=asked["quiet"])


def _refuse(asked: Mapping[str, Any]) -> None:
    """Refuse options that contradict; raises :class:`UsageError`."""
    lists = asked["output_format"] != "text"
    given = {
        "--nagios": asked["nagios"],
        "--watch": asked["watch"] is not None,
        "--format": lists,
        "--compare": asked["compare"],
        "--record": asked["record"],
        "--interval": asked["interval"] is not None,
        "--junit": asked["junit"] is not None,
        "--events": asked["events"] is not None,
        "--metrics": asked["metrics"] is not None,
        "--webhook": asked["webhook"] is not None,
        "--root": asked["root"] is not None,
        "--nodes": asked["nodes"] is not None or asked["selector"] is not None,
    }
    for one, other in (
        ("--nagios", "--watch"),
        ("--nagios", "--format"),
        ("--nagios", "--compare"),
        ("--nagios", "--record"),
        ("--nagios", "--junit"),
        ("--nagios", "--events"),
        ("--nagios", "--webhook"),
        ("--nagios", "--metrics"),
        ("--watch", "--format"),
        ("--watch", "--compare"),
        ("--watch", "--record"),
        ("--watch", "--interval"),
        ("--root", "--nodes"),
    ):
        if given[one] and given[other]:
            raise UsageError(f"{one} and {other} do not go together; leave one of them out")
    if asked["compare"] and not given["--nodes"]:
        raise UsageError("--compare is for several hosts; name them with --nodes")


def _plan(context: typer.Context, asked: Mapping[str, Any], messages: "Console") -> HealthPlan:
    """Who is asked what; raises :class:`UsageError`."""
    way, root = None, asked["root"] or Path("/")
    if asked["nodes"] is not None or asked["selector"] is not None:
        from ncdiag.cli import unused
        from ncdiag.cli.allocation import in_allocation
        from ncdiag.cli.way import way_of

        way = way_of({**asked, "driver_address": None})
        hosts = way.hosts(asked["nodes"], at_least=1)
        chosen = way.launcher_for(hosts).name
        unused.tell(context, chosen, "", messages)
        in_allocation(chosen, way.slurm, asked["nodes"], hosts, messages)
    else:
        if not root.is_dir():
            raise UsageError(f"there is no folder {visible(str(root))}; name one with --root")
        name = _own_name() if asked["root"] is None else _name_of(root)
        hosts = (Host(name=name, address=name),)
    return HealthPlan(
        hosts=hosts,
        way=way,
        root=root,
        interval_s=asked["interval"],
        checks=choose_checks(asked["only"], asked["skip"]),
        gpus=asked["gpus"],
        nics=tuple(asked["nic"]),
    )


def _look(plan: HealthPlan, tell: Tell) -> HealthReport:
    """Look once; one host never takes longer than it may."""
    if plan.way is not None:
        return look(plan, tell)
    longest_s = LONGEST_S if plan.interval_s is None else 2 * LONGEST_S + plan.interval_s
    late = f"this host could not be judged within {longest_s:g} s"
    with deadline(longest_s, ExitCode.UNDECIDED, late):
        return look(plan, tell)


def look_for_prolog(context: typer.Context, asked: Mapping[str, Any]) -> HealthReport:
    """Look at this host alone, since Slurm asks each node of itself; raises NcdiagError."""
    for option in (
        "nodes",
        "selector",
        "watch",
        "interval",
        "metrics",
        "junit",
        "events",
        "webhook",
    ):
        if asked[option] is not None:
            raise UsageError(f"--{option} does not go with --prolog")
    if asked["record"]:
        raise UsageError("--record does not go with --prolog")
    return look(_plan(context, asked, console.messages(quiet=True)), lambda *_: None)


def _nagios(context: typer.Context, asked: Mapping[str, Any]) -> ExitCode:
    """One line and Nagios's codes, of which 3 also stands for whatever went wrong with us."""
    from ncdiag.report.health.one_line import nagios_failure, render_nagios

    try:
        plan = _plan(context, asked, console.messages(quiet=True))
        line, code = render_nagios(_look(plan, lambda *_: None))
    except NcdiagError as error:
        line, code = nagios_failure(str(error))
    typer.echo(line)
    raise typer.Exit(code)


def _watch(
    plan: HealthPlan,
    asked: Mapping[str, Any],
    messages: "Console",
    announce: Callable[[HealthReport], None],
) -> None:
    from ncdiag.cli.health.watch import Watch

    def quiet(_host: str, _text: str) -> None:
        """Whoever watches is told of changes alone."""

    Watch(
        lambda earlier: look(plan, quiet, earlier),
        asked["watch"],
        asked["metrics"],
        console.results(no_color=asked["no_color"]),
        messages,
        announce=announce,
    ).run()


def _show(report: HealthReport, asked: Mapping[str, Any]) -> None:
    if asked["output_format"] == "json":
        from ncdiag.report.health.json_report import render_health_json

        console.write(render_health_json(report))
    elif asked["output_format"] == "csv":
        from ncdiag.report.health.csv_report import render_health_csv

        console.write(render_health_csv(report).encode())
    else:
        from ncdiag.report.health.text import render_health_text

        output = console.results(no_color=asked["no_color"])
        render_health_text(report, output, verbose=asked["verbose"], compare=asked["compare"])


def _write_metrics(path: Path, report: HealthReport) -> None:
    from ncdiag.report.health.prometheus import render_health_metrics

    try:
        write_file(path, render_health_metrics(report))
    except NcdiagError as error:  # of which the verdict does not become another one
        console.messages().print(f"ncdiag: --metrics: {error}", soft_wrap=True)


def _tell_checks(asked: Mapping[str, Any]) -> ExitCode:
    from ncdiag.health.check_choice import find_check
    from ncdiag.health.checks.table import CHECKS
    from ncdiag.report.health import checks as report

    name = asked["explain"]
    chosen = list(CHECKS.values()) if name is None else [find_check(name)]
    if asked["output_format"] == "json":
        console.write(report.render_json(chosen))
    elif asked["output_format"] == "csv":
        raise UsageError("checks are listed as text or json")
    elif name is None:
        report.list_all(chosen, console.results(no_color=asked["no_color"]))
    else:
        report.explain(chosen[0], console.results(no_color=asked["no_color"]))
    return ExitCode.DONE


def _teller(messages: "Console", *, verbose: bool) -> Tell:
    def tell(host: str, text: str) -> None:
        if verbose:
            messages.print(f"{visible(host)}: {visible(text)}", soft_wrap=True)

    return tell


def _own_name() -> str:
    from ncdiag.model.nodes import is_host_name

    name = socket.gethostname()
    return name if is_host_name(name) and not name.startswith((".", "<")) else _HERE


def _name_of(root: Path) -> str:
    """What a recorded host is called: as it says itself, else as its folder."""
    from ncdiag.health.sources.place import HostRoot

    for file in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        if said := HostRoot(root).text(file):
            return said.split()[0][:255]
    return root.resolve().name or _HERE
