"""What is wrong with settings, grouped by severity, each with what to write instead."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ncdiag.model.environment import LintFinding, LintSeverity
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/env-lint/1"
_INDENT: Final = 4
_STYLES: Final = {
    LintSeverity.ERROR: "bold red",
    LintSeverity.WARNING: "bold yellow",
    LintSeverity.INFO: "bold",
}


def show(
    findings: Sequence[LintFinding],
    settings: int,
    unread: Sequence[str],
    unreachable: Collection[str],
    console: Console,
) -> None:
    """Each finding with its place, the files that say nothing, then one line that counts them.

    ``unreachable`` are hosts that could not be asked: without them nothing is called clean.
    """
    for one in map(presentable, findings):
        line = Text(f"{one.severity}", style=_STYLES[one.severity])
        line.append(f"  {one.place}: {_named(one)} [{one.rule}]", style="default")
        _say(console, line, 0)
        if one.fix:
            _say(console, Text(f"-> {one.fix}", style="dim"), _INDENT)
    for name in unread:
        what = "holds names of variables but no setting that ncdiag can read"
        console.print(f"unread  {visible(name)}: {what}", soft_wrap=True)
    told = [
        format_count(count, severity.value if severity is not LintSeverity.INFO else "note")
        for severity in LintSeverity
        if (count := sum(one.severity is severity for one in findings))
    ]
    looked = format_count(settings, "setting")
    open_questions = [
        f"{format_count(len(those), noun)} {what}"
        for those, noun, what in ((unread, "file", "unread"), (unreachable, "host", "not asked"))
        if those
    ]
    verdict = told or ["undecided" if open_questions else "nothing is wrong"]
    console.print(f"{looked}: {', '.join([*verdict, *open_questions])}")


def _say(console: Console, text: Text, indent: int) -> None:
    """Print ``text``: on a terminal wrapped and indented, else whole, so that grep finds it."""
    if not console.is_terminal:
        console.print(Text(" " * indent).append_text(text), soft_wrap=True)
        return
    first, *rest = text.wrap(console, max(console.width - _INDENT, 1))
    console.print(Padding(first, (0, 0, 0, indent), expand=False))
    for line in rest:
        console.print(Padding(line, (0, 0, 0, _INDENT + indent // 2), expand=False))


def _named(one: LintFinding) -> str:
    """The message, with the variable in front unless it says so itself."""
    return one.message if one.variable in one.message else f"{one.variable}: {one.message}"


def render_json(
    findings: Sequence[LintFinding],
    settings: int,
    unread: Sequence[str],
    unreachable: dict[str, str],
) -> bytes:
    """All of it, for programs.

    ``unread`` are files that name variables and set none that can be read, ``unreachable`` hosts
    that could not be asked, and why.
    """
    count = {
        f"{severity.value}s": sum(one.severity is severity for one in findings)
        for severity in (LintSeverity.ERROR, LintSeverity.WARNING)
    }
    return layout(
        {
            "schema": SCHEMA,
            "settings": settings,
            **count,
            "findings": [asdict(presentable(one)) for one in findings],
            "unread": [visible(name) for name in unread],
            "unreachable": {visible(host): visible(why) for host, why in unreachable.items()},
        }
    )


def presentable(finding: LintFinding) -> LintFinding:
    """The finding with every control character visible."""
    return replace(
        finding,
        variable=visible(finding.variable),
        place=visible(finding.place),
        message=visible(finding.message),
        fix=visible(finding.fix),
    )
