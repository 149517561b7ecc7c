"""The isolation list, plans and the audit trail on a terminal."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ncdiag.model.isolation import (
    Action,
    Change,
    Decision,
    EvidenceKind,
    EvidencePiece,
    IsolationPlan,
)
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_share
from ncdiag.report.isolation.records import IsolationList, how_it_went, moment, until
from ncdiag.report.labelled import say
from ncdiag.store.ledger_records import ActionRecord, AuditEntry

_STYLES: Final = {
    Action.ISOLATE: "red",
    Action.KEEP: "red",
    Action.WATCH: "yellow",
    Action.RELEASE: "green",
}
_HEADINGS: Final = {
    Action.ISOLATE: "to isolate",
    Action.KEEP: "isolated",
    Action.RELEASE: "to release",
    Action.WATCH: "watched",
}
_HELD: Final = "held back"
_SHARED: Final = (
    "see first what these hosts share (a switch, a driver, a measurement); then raise [budget] "
    "with --policy if it has to be"
)

# What becomes of hosts that are to be isolated, and of those to be released.
_PLANNED: Final = ("to isolate", "to release")
_DONE: Final = ("isolated", "released")
_REFUSED: Final = ("not isolated", "not released")


def render_list(found: IsolationList, console: Console) -> None:
    """A row for each host, and below it the hosts folded."""
    if not found.decisions:
        console.print("nothing speaks against any host", soft_wrap=True)
        return
    table = _table("host", "what", "sure", "last seen", "until (UTC)")
    table.add_column("why", overflow="fold", ratio=1)
    for decision in found.decisions:
        table.add_row(*_cells(decision))
    console.print(table)
    for heading in (*_HEADINGS.values(), _HELD):
        if hosts := [one.host for one in found.decisions if _heading(one) == heading]:
            console.print(f"{heading}: {visible(fold(hosts))}", soft_wrap=True)
    console.print("next: ncdiag isolate show HOST tells the evidence, and what to do")


def render_host(host: str, found: IsolationList, console: Console, *, hint: str = "") -> None:
    """All that is known of one host; ``hint`` is which other may be meant where that is nothing."""
    decision = next((one for one in found.decisions if one.host == host), None)
    title = Text(f"{visible(host)}: ", style="bold")
    if decision is None:
        nothing = "is known of it" if found.is_empty() else "that counts now speaks against it"
        title.append(f"nothing {nothing}{hint}", style="default")
    else:
        title.append(_heading(decision), style=_style(decision))
        title.append(f", {visible(decision.reason)}", style="default")
    console.print(title)
    for line in () if decision is None else _about(decision):
        _print_within(console, line)
    for action in found.isolated:
        if action.host == host:
            since = f"since {moment(action.intended_s)}, by {visible(action.by)}"
            console.print(f"  isolated at {visible(action.place)} {since}", soft_wrap=True)
    if decision is not None:
        _print_within(console, f"next: {_next(decision)}")
    if found.all_evidence:
        console.print("evidence, the newest first:")
        for piece in sorted(found.all_evidence, key=lambda one: (-one.seen_s, one.clears)):
            _render_piece(piece, console)
    if found.actions:
        console.print("what ncdiag did:")
        for action in found.actions:
            console.print(_action_line(action), soft_wrap=True)


def render_plan(plan: IsolationPlan, place: str, console: Console, *, carried_out: bool) -> None:
    """The steps, those that were left out with why, and one line that sums up."""
    _render_changes(plan.changes, console, carried_out=carried_out)
    held = [one for one in plan.decisions if one.held_back and one.action is Action.ISOLATE]
    for decision in held:
        why = f"{visible(decision.host)}: {visible(decision.held_back or '')}"
        say(console, _HELD, why, style=_style(decision))
    if plan.refused is not None:
        say(console, "REFUSED", f"{visible(plan.refused)}\n-> {_SHARED}", style="bold red")
    words = _REFUSED if plan.refused is not None else _DONE if carried_out else _PLANNED
    summary = _summary(plan.changes, place, words)
    console.print(f"{summary} (of {format_count(plan.hosts, 'host')})", soft_wrap=True)


def render_undo(
    changes: Sequence[Change], place: str, console: Console, *, carried_out: bool
) -> None:
    """The hosts that are taken back in, and those that are left alone."""
    _render_changes(changes, console, carried_out=carried_out)
    console.print(_summary(changes, place, _DONE if carried_out else _PLANNED), soft_wrap=True)


def render_audit(entries: Iterable[AuditEntry], console: Console) -> None:
    """A line for each entry, the oldest first."""
    table = _table("when (UTC)", "who", "what")
    table.add_column("about", overflow="fold", ratio=1)
    for entry in entries:
        who = visible(f"{entry.user}@{entry.machine}")
        table.add_row(moment(entry.at_s), who, visible(entry.what), visible(entry.about))
    console.print(table)


def _cells(decision: Decision) -> tuple[Text | str, ...]:
    why = visible(decision.reason)
    if decision.held_back:
        why = f"{visible(decision.held_back)} ({why})"
    return (
        visible(decision.host),
        Text(_HELD if decision.held_back else decision.action.value, style=_style(decision)),
        _sure(decision),
        max((moment(piece.seen_s)[:10] for piece in decision.evidence), default=""),
        until(decision),
        why,
    )


def _next(decision: Decision) -> str:
    """What an operator does about it."""
    repaired = f"once repaired, ncdiag isolate remove {visible(decision.host)}"
    if decision.held_back:
        host = visible(decision.host)
        return f"it stays in meanwhile; ncdiag isolate add {host} puts it on the list all the same"
    if decision.action is Action.ISOLATE:
        return f"ncdiag isolate apply --to PLACE --yes takes it out; {repaired}"
    if decision.action is Action.RELEASE:
        return "ncdiag isolate apply --to PLACE --yes takes it back in"
    if decision.action is Action.WATCH:
        return "nothing has to be done; it stays in"
    if decision.until_s is not None:
        return f"{repaired}; else the first apply after {moment(decision.until_s)} takes it back in"
    return f"{repaired}, and the next apply takes it back in"


def _heading(decision: Decision) -> str:
    return _HELD if decision.held_back else _HEADINGS[decision.action]


def _style(decision: Decision) -> str:
    return _STYLES[Action.WATCH if decision.held_back else decision.action]


def _sure(decision: Decision) -> str:
    """How sure the case is; nothing where there is none that anybody is sure of."""
    some = decision.confidence > 0 and decision.action is not Action.RELEASE
    return format_share(decision.confidence) if some else ""


def _about(decision: Decision) -> Iterable[str]:
    sure = f"sure: {share}; " if (share := _sure(decision)) else ""
    yield f"{sure}lemon score: {decision.lemon_score:.1f}"
    if end := until(decision):
        yield f"until {end}" + ("" if decision.until_s is None else " UTC")
    if decision.held_back:
        yield f"held back: {visible(decision.held_back)}"


def _render_piece(piece: EvidencePiece, console: Console) -> None:
    what = visible(piece.class_)
    if piece.clears:  # a run that accuses a host, too, speaks for it in what it found in order
        what = "clears it" if piece.kind is EvidenceKind.OPERATOR else "in order"
    where = f" ({visible(piece.component)})" if piece.component else ""
    sure = "" if piece.clears else f", sure {format_share(piece.confidence)}"
    if not piece.conclusive:
        sure = ", inconclusive"
    head = f"{moment(piece.seen_s)}  {visible(piece.source)}: {what}{where}{sure}"
    _print_within(console, head)
    if piece.text:
        _print_within(console, visible(piece.text), 4)
    if piece.report:
        console.print(f"    see {visible(piece.report)}", soft_wrap=True)


def _action_line(action: ActionRecord) -> str:
    why = f": {visible(action.error)}" if action.error else ""
    what = f"{how_it_went(action)} at {visible(action.place)}"
    return f"  {moment(action.intended_s)}  {what} by {visible(action.by)}{why}"


def _render_changes(changes: Sequence[Change], console: Console, *, carried_out: bool) -> None:
    for change in changes:
        verb = "isolate" if change.isolate else "release"
        style = "red" if change.isolate else "green"
        if change.skipped is not None:
            verb, style, why = "left alone", "default", change.skipped
        elif change.error is not None:
            verb, style, why = "FAILED", "bold red", change.error
        else:
            why = change.reason
            verb = f"{verb}d" if carried_out and change.done else verb
        say(console, verb, f"{visible(change.host)}: {visible(why)}", style=style)


def _summary(changes: Sequence[Change], place: str, words: tuple[str, str]) -> str:
    steps = [one for one in changes if one.skipped is None and one.error is None]
    parts = []
    for word, isolate in zip(words, (True, False), strict=True):
        if hosts := [one.host for one in steps if one.isolate is isolate]:
            parts.append(f"{word}: {fold(hosts)}")
    if failed := [one.host for one in changes if one.error is not None]:
        parts.append(f"failed: {fold(failed)}")
    return f"{visible(place)}: {visible('; '.join(parts)) or 'nothing to change'}"


def _print_within(console: Console, text: str, left: int = 2) -> None:
    """Print a text for people, wrapped behind a margin."""
    console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, left), expand=False))


def _table(*headings: str) -> Table:
    table = Table(box=None, expand=False, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table
