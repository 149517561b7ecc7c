"""Slow ranks on the terminal: who, how slow, how sure, and what to do."""

from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.model.nodes import fold
from ncdiag.model.straggler import SlowRank, StragglerReport, StragglerVerdict, TimeKind
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_share
from ncdiag.report.labelled import say, say_whole

_MOST: Final = 20
_STYLES: Final = {
    StragglerVerdict.NONE: "bold green",
    StragglerVerdict.FOUND: "bold red",
    StragglerVerdict.UNDECIDED: "bold yellow",
}
_KINDS: Final = {
    TimeKind.COMPUTE: "compute times: a slow rank takes longest",
    TimeKind.ITERATION: "whole iterations: a slow rank takes longest, unless all wait for it",
    TimeKind.COLLECTIVE: "collectives: whoever comes late waits least and shows the shortest",
}


def render_stragglers_text(report: StragglerReport, console: Console, source: str) -> None:
    """Print the result; what is there to be copied is never wrapped."""
    if report.slow:
        console.print(_table(report))
    say(console, "read", f"{visible(source)}: {_size(report)}")
    say(console, "kind", _KINDS[report.kind])
    if report.slow:
        say(console, "by chance", chance(report))
    for note in report.notes:
        say(console, "note", visible(note))
    if report.slow_hosts:
        say(console, "next", "ncdiag health and ncdiag sweep over these hosts and their neighbours")
        say_whole(console, "hosts", fold([visible(host) for host in report.slow_hosts]))
    line = Text(f"{_word(report)}: ", style=_STYLES[report.verdict])
    line.append(visible(verdict(report)), style="default")
    console.print(line)


def chance(report: StragglerReport) -> str:
    """How many healthy ranks a table like this one accuses."""
    robust = sum("robust" in one.rules for one in report.slow)
    return (
        f"{report.expected_false_alarms:.2g} of {format_count(report.ranks, 'healthy rank')} would "
        f"be named on average by the robust rule; it names {robust}"
    )


def verdict(report: StragglerReport) -> str:
    """The end of the last line."""
    if report.reason:
        return report.reason
    if not report.slow:
        return f"none of {format_count(report.ranks, 'rank')} is slower than the others"
    worst = report.slow[0]
    where = f" on {worst.place or worst.host}" if worst.host else ""
    count = format_count(len(report.slow), "slow rank")
    return f"{count}; the slowest is rank {worst.rank}{where}, {slower(worst, report.kind)}"


def slower(one: SlowRank, kind: TimeKind) -> str:
    """``20 % slower than its peers``."""
    more = format_share(one.ratio - 1)
    if kind is TimeKind.COLLECTIVE:
        return f"for which the others wait: {more} longer than it does"
    return f"{more} slower than its peers"


def _word(report: StragglerReport) -> str:
    words = {
        StragglerVerdict.NONE: "NO STRAGGLERS",
        StragglerVerdict.FOUND: "SLOW RANKS",
        StragglerVerdict.UNDECIDED: "UNDECIDED",
    }
    return words[report.verdict]


def _size(report: StragglerReport) -> str:
    text = f"{format_count(report.ranks, 'rank')}, {format_count(report.iterations, 'iteration')}"
    if report.groups > 1:
        text += f", {format_count(report.groups, 'group')}"
    if report.median_s is not None:
        text += f", median {_time(report.median_s)}"
    return text


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def _table(report: StragglerReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("where", max_width=30, overflow="fold")
    table.add_column("slower", justify="right", no_wrap=True)
    table.add_column("windows", justify="right", no_wrap=True)
    table.add_column("named by", overflow="fold")
    for one in report.slow[:_MOST]:
        group = f" ({one.group})" if one.group else ""
        table.add_row(
            Text(f"{one.rank}", style="bold"),
            Text(visible((one.place or one.host or "-") + group)),
            f"+{format_share(one.ratio - 1)}",
            f"{one.windows} of {one.windows_total}",
            " and ".join(_RULES[rule] for rule in one.rules),
        )
    if len(report.slow) > _MOST:
        table.caption = f"+{len(report.slow) - _MOST} more: --format csv lists all"
    return table


_RULES: Final = {"median": "1.5 x median", "robust": "robust rule"}
