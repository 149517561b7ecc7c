"""A shell script as simple commands of words, with line numbers; nothing is expanded or run.

Quotes are taken off. What the shell would fill in (``$HOST``, ``$(hostname)``) stays as it is
written, and so does an array, behind :data:`ARRAY`. A carriage return at the end of a line belongs
to what is assigned there, as in a shell.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

ARRAY: Final = "$@("
"""What the text of an array begins with; no shell writes anything else so."""

_PLAIN = re.compile(r"[^\s'\"\\$`#;&|()<>]+")
_BLANK = re.compile(r"[ \t\r]+")
_LINE_ENDS = re.compile(r"\n[\s]*")
_COMMENT = re.compile(r"[^\n]*")
_DOUBLE_QUOTED = re.compile(r"[^\"\\$`]+")
_HERE = re.compile(r"<<(-?)[ \t]*(['\"]?)([\w.!-]+)\2")
_OPAQUE = re.compile(r"\$\{[^}\n]*\}|\$[A-Za-z_0-9@*#?$!-]+")
_LINE_END = re.compile(r"\r(?:\n|\Z)")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;&|()]")
_ASSIGNED = re.compile(r"(?:--?[\w-]+=)?[A-Za-z_]\w*\+?=|ALL,")
# What may stand nested in $(...) and $((...)).
_DEEPEST = 50


class ShellSyntaxError(Exception):
    """Something that a shell would refuse; ``line`` is where."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


class Word(NamedTuple):
    """One word of a command, without its quotes, and the line it begins in."""

    text: str
    line: int


class Command(NamedTuple):
    """A simple command, which may have no words: ``end`` is the operator behind it, if any.

    ``targets`` are the files it writes to, ``bodies`` the here-documents of its line.
    """

    words: list[Word]
    end: str
    targets: tuple[str, ...] = ()
    bodies: tuple[Word, ...] = ()


@dataclass(slots=True)
class _Lexer:
    text: str
    line: int
    at: int = 0
    words: list[Word] = field(default_factory=list)
    here: list[tuple[bool, str]] = field(default_factory=list)
    target: str | None = None
    targets: list[str] = field(default_factory=list)

    def commands(self) -> Iterator[Command]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if found := _BLANK.match(self.text, self.at):
                self.at = found.end()
            elif self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at += 2 if self.text[self.at + 1] == "\n" else 3
                self.line += 1
            elif char == "#":
                self.at = _COMMENT.match(self.text, self.at).end()  # type: ignore[union-attr]
            elif char == "\n":
                yield from self._line_ends()
            elif found := _OPERATOR.match(self.text, self.at):
                yield self._taken(found[0])
                self.at = found.end()
            elif char in "<>":
                self._redirection()
            else:
                self._word()
        yield self._taken("")

    def _line_ends(self) -> Iterator[Command]:
        bodies: tuple[Word, ...] = ()
        if self.here:
            self.at += 1
            self.line += 1
            bodies = tuple(self._bodies())
        elif found := _LINE_ENDS.match(self.text, self.at):
            self.at = found.end()
            self.line += found[0].count("\n")
        yield self._taken("\n", bodies)

    def _taken(self, end: str, bodies: tuple[Word, ...] = ()) -> Command:
        taken = Command(self.words, end, tuple(self.targets), bodies)
        self.target, self.words, self.targets = None, [], []
        return taken

    def _redirection(self) -> None:
        found = None if self.text.startswith("<<<", self.at) else _HERE.match(self.text, self.at)
        if found:
            self.here.append((bool(found[1]), found[3]))
            self.at = found.end()
            return
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "<>&|":
            self.at += 1
        self.target = self.text[start : self.at]

    def _bodies(self) -> Iterator[Word]:
        for indented, end in self.here:
            begun, lines = self.line, []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop].rstrip("\r")
                self.at = min(stop + 1, len(self.text))
                self.line += 1
                line = line.lstrip("\t") if indented else line
                if line == end:
                    break
                lines.append(line)
            yield Word("\n".join(lines), begun)
        self.here = []

    def _word(self) -> None:
        line = self.line
        pieces: list[str] = []
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|<>)":
            char = self.text[self.at]
            if char == "(" and not (pieces and pieces[-1].endswith("=")):
                break
            if self.text.startswith(("\\\n", "\\\r\n"), self.at):
                self.at += 2 if self.text[self.at + 1] == "\n" else 3
                self.line += 1
                continue
            pieces.append(self._piece())
        text = "".join(pieces)
        if _LINE_END.match(self.text, self.at) and _ASSIGNED.match(text):
            text += "\r"
        if self.target is None:
            self.words.append(Word(text, line))
        else:
            if self.target.startswith(">"):
                self.targets.append(text)
            self.target = None

    def _piece(self) -> str:
        char = self.text[self.at]
        if char == "'":
            return self._single()
        if char == '"':
            return self._double()
        if char == "\\":
            self.at += 2
            return self.text[self.at - 1 : self.at]
        if char == "$" and self.text.startswith("$'", self.at):
            self.at += 1
            return self._single()
        if char in "$`(":
            return self._opaque()
        found = _PLAIN.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1
        return found[0] if found else char

    def _single(self) -> str:
        stop = self.text.find("'", self.at + 1)
        if stop < 0:
            raise ShellSyntaxError(self.line, "the quote ' is never closed")
        inner = self.text[self.at + 1 : stop]
        self.line += inner.count("\n")
        self.at = stop + 1
        return inner

    def _double(self) -> str:
        opened = self.line
        self.at += 1
        pieces: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(pieces)
            if found := _DOUBLE_QUOTED.match(self.text, self.at):
                self.line += found[0].count("\n")
                self.at = found.end()
                pieces.append(found[0])
            elif char == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                self.line += escaped == "\n"
                pieces.append(
                    escaped if escaped in '"\\$`' else "" if escaped == "\n" else f"\\{escaped}"
                )
            else:
                pieces.append(self._opaque())
        raise ShellSyntaxError(opened, 'the quote " is never closed')

    def _opaque(self) -> str:
        """What the shell fills in, as it is written."""
        start = self.at
        if found := _OPAQUE.match(self.text, self.at):
            self.at = found.end()
        elif self.text[self.at] == "`":
            stop = self.text.find("`", self.at + 1)
            self.at = len(self.text) if stop < 0 else stop + 1
        elif self.text.startswith(("$(", "("), self.at):
            self._balance()
        else:
            self.at += 1
        taken = self.text[start : self.at]
        self.line += taken.count("\n")
        return taken if taken[0] in "$`" else ARRAY + taken[1:]

    def _balance(self) -> None:
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    return
            if depth > _DEEPEST:
                what = f"more than {_DEEPEST} parentheses in each other"
                raise ShellSyntaxError(self.line, what)


def commands(text: str, first_line: int = 1) -> Iterator[Command]:
    """The simple commands of ``text``; raises :class:`ShellSyntaxError`."""
    return _Lexer(text, first_line).commands()
