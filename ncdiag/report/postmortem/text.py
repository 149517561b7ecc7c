"""A post-mortem for a terminal: what failed, where and what to do, in the first three lines."""

import re
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ncdiag.diagnose.postmortem.phrases import phrase
from ncdiag.model.finding import Finding, Isolation, Postmortem, PostmortemVerdict, Role
from ncdiag.model.log import LogEvidence
from ncdiag.model.units import format_count
from ncdiag.report.describe import percent
from ncdiag.report.postmortem import describe
from ncdiag.report.postmortem.paths import ShortPaths
from ncdiag.report.postmortem.presentable import presentable
from ncdiag.report.postmortem.tables import Table, tables

_VERDICTS = {
    PostmortemVerdict.OK: "bold green",
    PostmortemVerdict.FINDINGS: "bold red",
    PostmortemVerdict.INCONCLUSIVE: "bold yellow",
}
_ROLES = {Role.ROOT: "bold red", Role.CONSEQUENCE: "yellow", Role.WARNING: "cyan"}
_LABEL = 9
_INDENT = 2
_NARROWEST = 20
# What a screen of 24 lines takes, and what --verbose shows.
_BENCHMARKS, _STORY, _ROOTS, _OTHERS, _ROWS, _TABLE_ROWS = 2, 4, 3, 4, 2, 60
_WORD = re.compile(r"[\w.+-]*\w")
_FILLERS = {"on", "with"}
_ACTIONS, _WHY_CHARS = 2, 240
# Stands for the blank before a per cent sign, where no line may break.
_HELD = "\ue000"


def render(
    postmortem: Postmortem, evidence: LogEvidence, console: Console, *, verbose: bool
) -> None:
    """Print the answer; ``verbose`` adds all evidence and tables of what was read."""
    shown = presentable(postmortem)
    page = _Page(shown, console, verbose=verbose)
    page.top()
    page.benchmarks()
    page.story()
    page.findings()
    if verbose:
        for table in tables(postmortem, evidence):
            page.table(table)


class _Page:
    """Prints the parts of a post-mortem; prose is wrapped, what is to be copied is not."""

    def __init__(self, postmortem: Postmortem, console: Console, *, verbose: bool) -> None:
        self._postmortem = postmortem
        self._console = console
        self._verbose = verbose
        self._paths = ShortPaths(one.path for one in postmortem.inputs)

    def top(self) -> None:
        """What failed, whom to isolate, what to do first, and what all this is about."""
        postmortem, first = self._postmortem, next(iter(self._postmortem.findings), None)
        line = Text(f"{postmortem.verdict.upper()}  ", style=_VERDICTS[postmortem.verdict])
        line.append(describe.headline(postmortem), style="bold")
        self._print(line, 0)
        if first and first.role is not Role.WARNING:
            self._whole("isolate", describe.isolate(postmortem))
            self._whole("next", describe.next_command(first, postmortem.job.hosts))
        job = describe.job(postmortem, nics=self._verbose)
        about = job, describe.read(postmortem, self._paths.folder)
        self._say("about", "; ".join(text for text in about if text))

    def benchmarks(self) -> None:
        """What was measured; the table of --verbose has all of it."""
        them = self._postmortem.benchmarks
        for number, one in enumerate(them[:_BENCHMARKS]):
            more = len(them) - _BENCHMARKS if number == _BENCHMARKS - 1 else 0
            text = describe.benchmark(one) + (f"; and {more} more" if more > 0 else "")
            self._say("" if number else "measured", text)

    def story(self) -> None:
        """What happened, in order."""
        findings = self._postmortem.findings
        if not findings and not any(one.kinds for one in self._postmortem.inputs):
            return  # the headline says all there is to say
        story = describe.story(self._postmortem)
        shown = story if self._verbose else [one for one in story if self._is_new(one)][:_STORY]
        for number, sentence in enumerate(shown):
            self._say("" if number else "story", sentence)
        first = next(iter(findings), None)
        blamed = {suspect.name for suspect in first.suspects} if first else set()
        for one in self._postmortem.isolate:
            if self._verbose or one.host not in blamed:
                self._because(one)

    def _is_new(self, sentence: str) -> bool:
        """Whether it says more than the lines above it do."""
        told = f"{describe.job(self._postmortem)} {describe.headline(self._postmortem)}".lower()
        known = set(_WORD.findall(told))
        return not set(_WORD.findall(sentence.lower())) <= known | _FILLERS

    def _because(self, one: Isolation) -> None:
        self._say("because", f"{one.host}: {one.because} ({percent(one.confidence)} sure)")

    def findings(self) -> None:
        """Every finding: the first root in full, what follows from it in a line each."""
        findings = self._postmortem.findings
        roots = [one for one in findings if one.role is Role.ROOT]
        for number, one in enumerate(self._some(roots, _ROOTS)):
            if number == 0 or self._verbose:
                self._finding(one)
            else:
                self._short(one)
        self._left_out(len(roots) - _ROOTS, "root")
        for role in (Role.CONSEQUENCE, Role.WARNING):
            others = [one for one in findings if one.role is role]
            if self._verbose:
                for one in others:
                    self._finding(one)
            elif others:
                self._together(role, others)

    def _together(self, role: Role, findings: Sequence[Finding]) -> None:
        """Findings that need no action, in a paragraph."""
        named = [self._name(one) for one in findings[:_OTHERS]]
        more = len(findings) - _OTHERS
        if more > 0:
            named.append(f"and {more} more: see --verbose")
        line = Text()
        line.append(f"{role.upper()}{'S' if len(findings) > 1 else ''}  ", style=_ROLES[role])
        line.append(", ".join(named))
        self._print(line, _INDENT)

    def _name(self, one: Finding) -> str:
        """Class and place; of a warning, which no story tells, also what it is."""
        said = f": {phrase(one.class_, {})}" if one.role is Role.WARNING else ""
        return f"{one.class_}{said}" + (
            f" ({self._paths.place(one.first_seen)})" if one.first_seen else ""
        )

    def _some(self, findings: Sequence[Finding], most: int) -> Sequence[Finding]:
        return findings if self._verbose else findings[:most]

    def _left_out(self, number: int, what: str) -> None:
        if number > 0 and not self._verbose:
            self._print(Text(f"and {format_count(number, f'more {what}')}: see --verbose"), _INDENT)

    def _finding(self, one: Finding) -> None:
        """All that is said of a finding: of the first one, or of each when asked for."""
        self._console.print()
        self._print(self._head(one, self._facts(one)), _INDENT)
        self._print(Text(self._why(one)), _INDENT)
        rows = 0
        for line in one.evidence if self._verbose else describe.unlike(one.evidence):
            if self._verbose or rows < _ROWS:
                rows += self._quote(self._paths.place(line), line.text, rows=_ROWS)
        for number, action in enumerate(self._actions(one), start=1):
            self._print(Text(f"{number}. {action}"), _INDENT, hang=3)

    def _short(self, one: Finding) -> None:
        """A further root in two lines."""
        self._print(self._head(one, self._facts(one)), _INDENT)
        for line in one.evidence[:1]:
            self._quote(self._paths.place(line), line.text, rows=1)

    def _head(self, one: Finding, facts: str) -> Text:
        head = Text()
        head.append(f"{one.role.upper()}  ", style=_ROLES[one.role])
        head.append(one.class_, style="bold")
        head.append(f"  {facts}")
        return head

    def _facts(self, one: Finding) -> str:
        first = one.first_seen
        quoted = first and any(first.time in line.text for line in one.evidence if first.time)
        parts = (
            describe.where(one, self._postmortem),
            one.severity.value,
            f"{percent(one.confidence)} sure" if one.role is Role.ROOT else "",
            describe.times(one),
            f"first at {describe.first_time(one)}" if first and first.time and not quoted else "",
        )
        return ", ".join(part for part in parts if part)

    def _why(self, one: Finding) -> str:
        if self._verbose:
            return describe.explanation(one)
        special = describe.specific(one)
        quoted = any(line.text.lower() == special.rstrip(".").lower() for line in one.evidence)
        return describe.brief(special if special and not quoted else one.explanation, _WHY_CHARS)

    def _actions(self, one: Finding) -> Sequence[str]:
        return one.actions if self._verbose else one.actions[:_ACTIONS]

    def _quote(self, place: str, text: str, *, rows: int) -> int:
        """A line of a log, cut to what is readable, whole with ``--verbose``; the rows it took."""
        line = Text()
        line.append(f"{place}  ", style="dim")
        line.append(describe.cut(text))
        wrapped = list(line.wrap(self._console, self._width(2 * _INDENT), overflow="fold"))
        if len(wrapped) > rows and not self._verbose:
            wrapped = wrapped[:rows]
            wrapped[-1].truncate(self._width(2 * _INDENT) - 1)
            wrapped[-1].append("…")
        for number, row in enumerate(wrapped):
            row.rstrip()
            self._console.print(Text(" " * (_INDENT if number == 0 else 2 * _INDENT)) + row)
        return len(wrapped)

    def table(self, table: Table) -> None:
        """A table of what was read."""
        grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for number, name in enumerate(table.columns):
            grid.add_column(
                name, justify="right" if number in table.numbers else "left", overflow="fold"
            )
        for row in table.rows[:_TABLE_ROWS]:
            grid.add_row(*(Text(cell) for cell in row))
        more = len(table.rows) - _TABLE_ROWS
        self._console.print()
        self._console.print(table.title, style="bold")
        self._console.print(grid)
        if more > 0:
            self._console.print(f"and {more:,} more")

    def _say(self, label: str, text: str) -> None:
        self._print(Text(f"{label:<{_LABEL}} "), 0, rest=Text(text), hang=_LABEL + 1)

    def _print(self, head: Text, indent: int, *, rest: Text | None = None, hang: int = 0) -> None:
        """Print wrapped, indented, the rows after the first ``hang`` further in."""
        body = rest if rest is not None else head
        body.plain = body.plain.replace(" %", _HELD + "%")
        rows = body.wrap(self._console, self._width(indent + hang), overflow="fold")
        for number, row in enumerate(rows):
            row.rstrip()
            row.plain = row.plain.replace(_HELD, " ")
            before = head if rest is not None and number == 0 else Text(" " * hang)
            if rest is None and number == 0:
                before = Text()
            self._console.print(Text(" " * indent) + before + row)

    def _whole(self, label: str, text: str) -> None:
        """Print on one line, so that it can be copied."""
        self._console.print(Text(f"{label:<{_LABEL}} ") + Text(text, "bold"), soft_wrap=True)

    def _width(self, indent: int) -> int:
        return max(self._console.width - indent, _NARROWEST)
