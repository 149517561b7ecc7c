"""What ranks took of a profile: a table of settings, then what is not as it should be."""

from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ncdiag.diagnose.collectives import folded
from ncdiag.model.audit import WRONG, AuditFinding, EnvAudit, Outcome, SettingAudit, Taker
from ncdiag.model.errors import ExitCode
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/env-audit/1"
_WORDS: Final = {
    Outcome.TAKEN: "taken",
    Outcome.NOT_TAKEN: "not taken",
    Outcome.DEFAULTED: "default used",
    Outcome.OVERRIDDEN: "overridden",
    Outcome.IGNORED: "not read",
    Outcome.UNSEEN: "not told",
    Outcome.BEYOND: "in no log",
}
_VERDICTS: Final = {
    ExitCode.DONE: ("TAKEN", "bold green"),
    ExitCode.WRONG: ("NOT TAKEN", "bold red"),
    ExitCode.UNDECIDED: ("INCONCLUSIVE", "bold yellow"),
}
_MOST_VALUES: Final = 3


def show(audit: EnvAudit, console: Console) -> None:
    """Everything, for an operator."""
    asked = [one for one in audit.settings if one.in_profile]
    also = [one for one in audit.settings if not one.in_profile]
    if asked:
        console.print(_table(asked))
    if also:
        names = (f"{visible(one.variable)}={_values(one)}" for one in also)
        console.print(Text(f"also set: {', '.join(names)}"), soft_wrap=True)
    for todo, findings in groupby(audit.findings, key=attrgetter("next")):
        for finding in findings:
            _say(finding, console)
        console.print(Padding(Text(f"-> {visible(todo)}", style="dim"), (0, 0, 0, 4), expand=False))
    word, style = _VERDICTS[audit.exit_code]
    line = Text(f"{word}: ", style=style)
    line.append(_summary(audit), style="default")
    console.print(line, soft_wrap=True)


def _say(finding: AuditFinding, console: Console) -> None:
    wrong = finding.outcome in WRONG
    line = Text("wrong   " if wrong else "unsure  ", style="bold red" if wrong else "bold yellow")
    line.append(visible(finding.message), style="default")
    console.print(line, soft_wrap=True)


def _table(settings: list[SettingAudit]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("variable", overflow="fold", style="bold")
    table.add_column("asked", overflow="fold")
    table.add_column("printed", overflow="fold")
    table.add_column("outcome", overflow="fold")
    for one in settings:
        table.add_row(visible(one.variable), _shown(one.requested), _values(one), _outcomes(one))
    return table


def _values(one: SettingAudit) -> str:
    told = [_shown(value.value) for value in one.effective if value.value is not None]
    more = f", {len(told) - _MOST_VALUES} more" if len(told) > _MOST_VALUES else ""
    return ", ".join(told[:_MOST_VALUES]) + more if told else "-"


def _outcomes(one: SettingAudit) -> str:
    if not one.outcomes:
        return _WORDS[Outcome.UNSEEN]
    if len(one.outcomes) == 1:
        return _WORDS[next(iter(one.outcomes))]
    return ", ".join(f"{count} {_WORDS[outcome]}" for outcome, count in one.outcomes.items())


def _shown(value: str | None) -> str:
    return "(unset)" if value is None else visible(value)


def _summary(audit: EnvAudit) -> str:
    ranks = f" of {format_count(audit.ranks, 'rank')}" if audit.ranks else ""
    version = f", NCCL {', '.join(map(visible, audit.versions))}" if audit.versions else ""
    return (
        f"profile {visible(audit.profile)}, {format_count(audit.processes, 'process')}{ranks} "
        f"in the logs, {audit.telling} with what they took{version}"
    )


def render_json(audit: EnvAudit) -> bytes:
    """Everything, for programs."""
    verdict = {ExitCode.DONE: "taken", ExitCode.WRONG: "not_taken"}
    return layout(
        {
            "schema": SCHEMA,
            "verdict": verdict.get(audit.exit_code, "inconclusive"),
            "profile": visible(audit.profile),
            "processes": audit.processes,
            "telling": audit.telling,
            "ranks": audit.ranks,
            "versions": list(map(visible, audit.versions)),
            "settings": [_setting(one) for one in audit.settings],
            "findings": [_finding(one) for one in audit.findings],
        }
    )


def _setting(one: SettingAudit) -> dict[str, Any]:
    return {
        "variable": visible(one.variable),
        "in_profile": one.in_profile,
        "requested": one.requested,
        "effective": [
            {"value": value.value and visible(value.value), "processes": _takers(value.takers)}
            for value in one.effective
        ],
        "outcomes": {outcome.value: count for outcome, count in one.outcomes.items()},
    }


def _finding(one: AuditFinding) -> dict[str, Any]:
    return {
        "outcome": one.outcome.value,
        "variable": one.variable and visible(one.variable),
        "message": visible(one.message),
        "next": visible(one.next),
        "processes": _takers(one.takers),
    }


def _takers(takers: tuple[Taker, ...]) -> dict[str, Any]:
    """How many processes, and who: ranks and hosts folded, as a job has thousands."""
    ranks = [one.rank for one in takers if one.rank is not None]
    hosts = dict.fromkeys(visible(one.host) for one in takers if one.host)
    return {"count": len(takers), "ranks": folded(ranks), "hosts": fold(hosts)}
