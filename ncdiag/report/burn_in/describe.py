"""A burn-in's findings in words, the same in every format."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ncdiag.model.burn_in import (
    BurnInReport,
    GateVerdict,
    HostOutcome,
    Outcome,
    StageRun,
    StageState,
)
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_count, format_duration, format_share

_INTERRUPTED: Final = " (interrupted: as known so far)"
_STEPS_SHOWN: Final = 3
# In the reasons of stages that had to leave a suspect as it was.
_NO_TIME: Final = "no time was left"
_AGAIN: Final = "measure again: nothing was found against it, and too little was measured"


def verdict(report: BurnInReport) -> str:
    """``8 of 8 good hosts and 1 spare; 3 out``: what there is of what is needed."""
    found = f"{len(report.chosen):,} of {format_count(report.need, 'good host')}"
    if report.spares_wanted or report.spares:
        found += f" and {_spares(report)}"
    rest = [
        f"{number:,} {word}"
        for outcome, word in ((Outcome.REJECTED, "out"), (Outcome.UNDECIDED, "undecided"))
        if (number := len(hosts_of(report, outcome)))
    ]
    if report.left:
        rest.append(f"{len(report.left):,} more good")
    tail = f"; {', '.join(rest)}" if rest else ""
    return found + tail + (_INTERRUPTED if report.interrupted else "")


def _spares(report: BurnInReport) -> str:
    found, wanted = len(report.spares), report.spares_wanted
    if found < wanted:
        return f"{found or 'none'} of {format_count(wanted, 'spare')}"
    return format_count(found, "spare")


def sure(report: BurnInReport) -> str:
    """How sure the verdict is, and what that means."""
    if report.verdict is GateVerdict.MET:
        return f"{format_share(report.confidence)}, as of the least sure host that was chosen"
    if report.verdict is GateVerdict.SHORT:
        return f"{format_share(report.confidence)} that those who are out are rightly out"
    return "not yet: those who are undecided may be good"


def ran(report: BurnInReport) -> str:
    """One line: when, how long, and over how many hosts."""
    when = report.started.replace("T", " ").removesuffix("Z")
    passes = f", {format_count(report.passes, 'pass')}" if report.passes > 1 else ""
    hosts = format_count(len(report.hosts), "host")
    return f"{when} UTC, {format_duration(report.seconds)}; {hosts}, level {report.level}{passes}"


def hosts_of(report: BurnInReport, outcome: Outcome) -> tuple[HostOutcome, ...]:
    """The hosts of one outcome, in the order of the hosts file."""
    return tuple(one for one in report.hosts if one.outcome is outcome)


def by_reasons(hosts: Iterable[HostOutcome]) -> list[tuple[str, tuple[str, ...], float]]:
    """Folded hosts, the reasons that they share, and how sure the least sure of them is.

    The most frequent reasons come first.
    """
    groups: defaultdict[tuple[str, ...], list[HostOutcome]] = defaultdict(list)
    for one in hosts:
        # The name makes equal reasons differ: "connect to host h8 port 22: refused".
        groups[tuple(reason.replace(one.name, "HOST") for reason in one.reasons)].append(one)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [
        (
            fold(one.name for one in alike),
            alike[0].reasons if len(alike) == 1 else reasons,
            min(one.confidence for one in alike),
        )
        for reasons, alike in ordered
    ]


def leaves(report: BurnInReport) -> str:
    """``leaf1 (8), leaf2 (1)``: how many were taken under each; empty where none is known."""
    return ", ".join(f"{leaf} ({count:,})" for leaf, count in report.leaves.items())


def state(run: StageRun) -> str:
    """How a stage ended, and why it did not come to its end."""
    if not run.reason:
        return run.state.value
    return f"{ended(run)}: {' '.join(run.reason.split())}"


def ended(run: StageRun) -> str:
    """How a stage ended in few words; what cut it off need not be the budget."""
    return "cut off" if run.state is StageState.CUT else run.state.value


def next_steps(report: BurnInReport) -> list[str]:
    """What to do now, the launch first; then what puts right those that are out."""
    steps = []
    if report.interrupted:
        steps.append("run it again to its end: these lists are of what was known when it stopped")
    elif report.verdict is GateVerdict.MET:
        first = "launch on hosts.good.txt"
        if report.spares:
            first = f"launch on the first {len(report.chosen):,} of hosts.good.txt; spares follow"
        steps.append(first)
    elif report.verdict is GateVerdict.UNDECIDED:
        steps.append(_for_undecided(report))
    else:
        steps.append("do not launch: give more hosts, or put right those that are out")
    if report.isolate:
        steps.append("keep jobs off those in hosts.isolate.txt until they are repaired")
    return steps + _repairs(report)


def _for_undecided(report: BurnInReport) -> str:
    """More time is of use only where there was too little."""
    hosts = hosts_of(report, Outcome.UNDECIDED)
    short = any(run.state is StageState.CUT for run in report.stages)
    if short or any(_NO_TIME in reason for one in hosts for reason in one.reasons):
        return "give more time with --budget, then put right what still keeps hosts undecided"
    return "put right what keeps hosts undecided, and run it again"


def _repairs(report: BurnInReport) -> list[str]:
    """What the findings themselves say to do, with the hosts that it is for; all are named."""
    out = {one.name for one in report.hosts if one.outcome is not Outcome.GOOD}
    steps: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for run in report.stages:
        for one in run.findings:
            if one.next and one.host in out:
                steps[one.next.replace(one.host, "HOST")][one.host] = None
    told = {name for hosts in steps.values() for name in hosts}
    for host in hosts_of(report, Outcome.UNDECIDED):
        if host.name not in told:
            steps[_AGAIN][host.name] = None
    shown = sorted(steps.items(), key=lambda item: -len(item[1]))
    lines = []
    for step, hosts in shown[:_STEPS_SHOWN]:
        alone = next(iter(hosts)) if len(hosts) == 1 else "HOST"
        lines.append(f"{fold(hosts)}: {step.replace('HOST', alone)}")
    if rest := shown[_STEPS_SHOWN:]:
        others = dict.fromkeys(host for _, hosts in rest for host in hosts)
        lines.append(f"{fold(others)}: {format_count(len(rest), 'more step')} in report.json")
    return lines
