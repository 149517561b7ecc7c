"""A shell script as simple commands of words, with line numbers; nothing is expanded or run.

Quotes are taken off. What the shell would fill in (``$HOST``, ``$(hostname)``) stays as it is
written. Bodies of here-documents are left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_PLAIN = re.compile(r"[^\s'\"\\$`#;&|()<>]+")
_BLANK = re.compile(r"[ \t\r]+")
_LINE_ENDS = re.compile(r"\n[\s]*")
_COMMENT = re.compile(r"[^\n]*")
_DOUBLE_QUOTED = re.compile(r"[^\"\\$`]+")
_HERE = re.compile(r"<<(-?)[ \t]*(['\"]?)([\w.!-]+)\2")
_OPAQUE = re.compile(r"\$\{[^}\n]*\}|\$[A-Za-z_0-9@*#?$!-]+")
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


@dataclass(slots=True)
class _Lexer:
    text: str
    line: int
    at: int = 0
    words: list[Word] = field(default_factory=list)
    here: list[tuple[bool, str]] = field(default_factory=list)
    drop_next: bool = False

    def commands(self) -> Iterator[list[Word]]:
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
                yield from self._taken()
                self._line_ends()
            elif char in ";&|()":
                yield from self._taken()
                self.at += 1
            elif char in "<>":
                self._redirection()
            else:
                self._word()
        yield from self._taken()

    def _line_ends(self) -> None:
        if self.here:
            self.at += 1
            self.line += 1
            self._skip_here()
        elif found := _LINE_ENDS.match(self.text, self.at):
            self.at = found.end()
            self.line += found[0].count("\n")

    def _taken(self) -> Iterator[list[Word]]:
        self.drop_next = False
        if self.words:
            words, self.words = self.words, []
            yield words

    def _redirection(self) -> None:
        found = None if self.text.startswith("<<<", self.at) else _HERE.match(self.text, self.at)
        if found:
            self.here.append((bool(found[1]), found[3]))
            self.at = found.end()
            return
        while self.at < len(self.text) and self.text[self.at] in "<>&|":
            self.at += 1
        self.drop_next = True

    def _skip_here(self) -> None:
        for indented, end in self.here:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop].rstrip("\r")
                self.at = min(stop + 1, len(self.text))
                self.line += 1
                if (line.lstrip("\t") if indented else line) == end:
                    break
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
        if self.drop_next:
            self.drop_next = False
        else:
            self.words.append(Word("".join(pieces), line))

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
        return taken if taken[0] in "$`" else f"${taken}"

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


def commands(text: str, first_line: int = 1) -> Iterator[list[Word]]:
    """The simple commands of ``text``; raises :class:`ShellSyntaxError`."""
    return _Lexer(text, first_line).commands()
