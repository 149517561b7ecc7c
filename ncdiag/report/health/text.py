"""The health of a host or a fleet on the terminal: what is wrong, what to do, and the verdict."""

from rich.console import Console
from rich.text import Text

from ncdiag.model.health import HealthReport, HostFitness, Severity
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.report.health import describe
from ncdiag.report.health.facts_text import facts_lines
from ncdiag.report.labelled import say, say_whole

_STYLES = {
    HostFitness.FATAL: "bold red",
    HostFitness.FAULTY: "bold red",
    HostFitness.UNKNOWN: "bold yellow",
    HostFitness.WARNING: "bold yellow",
    HostFitness.HEALTHY: "bold green",
}
_SEVERITIES = {
    Severity.FATAL: "bold red",
    Severity.FAULT: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold",
}
# So many kinds of findings, and of reasons, fit one screen.
_SHOWN = 6
_REASONS = 3
_MORE = "--verbose shows them"


def render_health_text(
    report: HealthReport, console: Console, *, verbose: bool = False, compare: bool = False
) -> None:
    """Print what was found, the worst first, and the verdict last, where the eye is.

    ``verbose`` adds notes, what could not be checked and why, what passed and the main facts;
    ``compare`` tells who differs from the majority in what.
    """
    _findings(report, console, verbose=verbose)
    alone = len(report.hosts) == 1
    if not alone or report.hosts[0].facts is not None:  # whose verdict says it
        _reasons(console, "unknown", describe.unknown_hosts(report), verbose=verbose)
    unread = [(text if alone else f"{hosts}: {text}") for hosts, text in _unread(report)]
    for line in unread if verbose else unread[:_REASONS]:
        say(console, "not read", line)
    if verbose:
        _details(report, console)
    _differences(report, console, compare=compare)
    for note in report.notes:
        say(console, "note", visible(note))
    for fitness, what in ((HostFitness.FATAL, "drain"), (HostFitness.FAULTY, "faulty")):
        if not alone and (names := describe.named(report, fitness)):
            say_whole(console, what, names)
    verdict = describe.verdict(report)
    last = Text(f"{verdict.upper()}: ", style=_STYLES[verdict])
    last.append(describe.conclusion(report), style="default")
    console.print(last, soft_wrap=True)


def _findings(report: HealthReport, console: Console, *, verbose: bool) -> None:
    weighed = [one for one in Severity if one is not Severity.NOTE]
    groups = describe.groups(report, Severity if verbose else weighed)
    shown = groups if verbose else groups[:_SHOWN]
    for group in shown:
        text = f"{describe.told(group, alone=len(report.hosts) == 1)} ({group.check})"
        steps = dict.fromkeys(one.next for _, one in group.findings if one.next)
        for step in list(steps)[: None if verbose else 1]:
            text += f"\n-> {visible(step)}"
        say(console, group.severity, text, style=_SEVERITIES[group.severity])
    rest = []
    if more := groups[len(shown) :]:
        rest.append(format_count(len(more), "more kind") + " of findings")
    if not verbose and (notes := describe.groups(report, [Severity.NOTE])):
        rest.append(format_count(len(notes), "note"))
    if rest:
        say(console, "", f"and {' and '.join(rest)}: {_MORE}")


def _reasons(console: Console, what: str, reasons: list[tuple[str, str]], *, verbose: bool) -> None:
    for hosts, reason in reasons if verbose else reasons[:_REASONS]:
        say(console, what, f"{hosts}: {reason}")
    if not verbose and len(reasons) > _REASONS:
        more = format_count(len(reasons) - _REASONS, "more reason")
        say(console, "", f"and {more}: {_MORE}")


def _unread(report: HealthReport) -> list[tuple[str, str]]:
    return describe.unread_sources(report)


def _details(report: HealthReport, console: Console) -> None:
    """What was not checked, what passed, and of one host its main facts."""
    alone = len(report.hosts) == 1
    for hosts, checks, reason in describe.not_known(report):
        where = "" if alone else f"{hosts}: "
        say(console, "not checked", f"{where}{', '.join(checks)}: {reason}")
    if alone:
        [host] = report.hosts
        if host.passed:
            say(console, "passed", ", ".join(host.passed))
        if host.facts:
            for what, text in facts_lines(host.facts):
                say(console, what, text)


def _differences(report: HealthReport, console: Console, *, compare: bool) -> None:
    if not compare:
        if report.differences:
            count = format_count(len(report.differences), "difference")
            say(console, "compared", f"{count} between hosts: --compare shows them")
        return
    for one in report.differences:
        [(hosts, _)] = describe.folded_by((name, "") for name in one.hosts)
        most = f"{visible(one.most)} on {format_count(one.most_hosts, 'host')}"
        say(console, "differs", f"{visible(one.what)}: {visible(one.other)} on {hosts}; {most}")
    if not report.differences:
        say(console, "compared", "no host differs from the others")
