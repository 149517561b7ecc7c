"""A comparison on the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ncdiag.diagnose.comparison import Change, Comparison, LinkChange, Run
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_rate, format_share
from ncdiag.report.labelled import say, say_whole

_LINKS = 20
_STYLES = {
    Change.WORSE: "bold red",
    Change.BETTER: "bold green",
    Change.SAME: "bold green",
    Change.UNDECIDED: "bold yellow",
}
_CULPRITS = {
    Change.NEW: "new culprit",
    Change.SAME: "still",
    Change.GONE: "good again",
    Change.UNDECIDED: "unclear",
}


def render_text(comparison: Comparison, console: Console) -> None:
    """Print what changed, the worst first, and one line of verdict."""
    for one in comparison.culprits:
        was, now = _percent(one.before_efficiency), _percent(one.after_efficiency)
        reach = f"{was} -> {now}" if one.change is Change.SAME else ""
        text = " ".join(filter(None, (one.kind, one.name, reach)))
        _say(console, _CULPRITS[one.change], text + (f": {one.reason}" if one.reason else ""))
    shown = [one for one in comparison.links if one.change in _STYLES]
    if shown:
        console.print(_links(shown))
    for change in (Change.WORSE, Change.BETTER, Change.UNDECIDED, Change.NEW, Change.GONE):
        moves: dict[str, list[str]] = {}
        for host in comparison.hosts:
            if host.change is change:
                move = f"{host.before_status or 'not there'} -> {host.after_status or 'not there'}"
                moves.setdefault(move, []).append(host.name)
        for move, names in moves.items():
            say_whole(console, "hosts", visible(f"{fold(names)}: {move}"))
    for note in comparison.notes:
        _say(console, "note", note)
    _say(console, "before", _run(comparison.before))
    _say(console, "after", _run(comparison.after))
    _say(console, "links", _counts(comparison))
    line = Text(f"{comparison.change.upper()}: ", style=_STYLES[comparison.change])
    line.append(_verdict(comparison), style="default")
    console.print(line, soft_wrap=True)


def _links(changes: list[LinkChange]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=False, pad_edge=False)
    table.add_column("link", overflow="fold")
    for title in ("before", "after", "ratio"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    # The worst stand first, the best last, and between them what could not be told.
    most = changes if len(changes) <= _LINKS else changes[: _LINKS // 2] + changes[-_LINKS // 2 :]
    for one in most:
        rail = f" rail {one.rail}" if one.rail else ""
        table.add_row(
            Text(visible(f"{one.source}->{one.target}{rail}"), style="bold"),
            format_rate(one.before_gbit_per_s),
            format_rate(one.after_gbit_per_s),
            _percent(one.ratio),
            Text(one.change, style=_STYLES[one.change]),
        )
    if len(changes) > len(most):
        table.caption = f"+{len(changes) - len(most)} more with --format json"
    return table


def _run(run: Run) -> str:
    when = run.started.replace("T", " ").removesuffix("Z") + " UTC"
    hosts, links = format_count(run.hosts, "host"), format_count(run.links, "link")
    return f"{when}: {run.verdict}; {hosts}, {links} ({run.engine})"


def _counts(comparison: Comparison) -> str:
    counts = comparison.counts
    words = {
        Change.WORSE: "worse",
        Change.BETTER: "better",
        Change.SAME: "the same",
        Change.UNDECIDED: "not measured well in both",
        Change.NEW: "new",
        Change.GONE: "not tried again",
    }
    parts = [f"{counts[change]:,} {word}" for change, word in words.items() if counts.get(change)]
    return ", ".join(parts) or "none"


def _verdict(comparison: Comparison) -> str:
    new = [one.name for one in comparison.culprits if one.change is Change.NEW]
    if new:
        return f"{format_count(len(new), 'new culprit')}: {visible(', '.join(new[:5]))}"
    worse = comparison.counts.get(Change.WORSE, 0)
    if comparison.change is Change.WORSE:
        return f"{format_count(worse, 'link')} slower than before" if worse else "hosts got worse"
    if comparison.change is Change.UNDECIDED:
        return "not everything could be measured in both sweeps"
    if comparison.change is Change.BETTER:
        return "nothing got worse, and something got better"
    return "nothing changed"


def _percent(share: float | None) -> str:
    return "-" if share is None else format_share(share)


def _say(console: Console, what: str, text: str) -> None:
    say(console, what, visible(text))
