"""Settings out of a Dockerfile: ENV in both forms, ARG, and the command it starts."""

import json
import re
from collections.abc import Iterator

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.sources.shell import read_words
from ncdiag.profiles.sources.shell_words import ShellSyntaxError, Word, commands

_ESCAPE = re.compile(r"#\s*escape\s*=\s*(\S)\s*", re.IGNORECASE)
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OLD_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s+(.*)", re.DOTALL)


def read(text: str, name: str) -> Iterator[Setting]:
    """The settings of every stage, in order; raises :class:`UsageError` with file and line."""
    for number, instruction in _instructions(text):
        found = _INSTRUCTION.fullmatch(instruction)
        if not found:
            continue
        word, rest = found[1].upper(), found[2]
        try:
            if word in ("ENV", "ARG"):
                yield from _assignments(rest, name, number)
            elif word in ("CMD", "ENTRYPOINT"):
                yield from _started(rest, name, number)
        except ShellSyntaxError as error:
            raise UsageError(f"{name}:{error.line}: {error}") from None


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """Instructions with continued lines joined, and the line each begins in.

    A continued line keeps its line end, so that places within an instruction can be told.
    """
    lines = text.split("\n")
    escape = _ESCAPE.fullmatch(lines[0].rstrip("\r"))
    ending = escape[1] if escape else "\\"
    pieces: list[str] = []
    begun = 1
    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip()
        if not pieces:
            begun = number
        if line.lstrip().startswith("#"):
            if pieces:
                pieces.append("\\\n")
            continue
        if line.endswith(ending):
            pieces.append(line[: -len(ending)] + "\\\n")
            continue
        if line or not pieces:
            yield begun, "".join([*pieces, line])
            pieces = []
        else:
            pieces.append("\\\n")
    if pieces:
        yield begun, "".join(pieces)


def _assignments(rest: str, name: str, number: int) -> Iterator[Setting]:
    old = _OLD_FORM.fullmatch(rest)
    if old and not _ASSIGNS.match(rest):
        yield Setting(old[1], old[2].replace("\\\n", "").strip(), f"{name}:{number}")
        return
    for words in commands(rest, number):
        for word in words:
            variable, equals, value = word.text.partition("=")
            if equals:
                yield Setting(variable, value, f"{name}:{word.line}")


def _started(rest: str, name: str, number: int) -> Iterator[Setting]:
    try:
        listed = json.loads(rest.replace("\\\n", ""))
    except (ValueError, RecursionError):
        for words in commands(rest, number):
            yield from read_words(words, name)
        return
    if isinstance(listed, list):
        words = [Word(text, number) for text in listed if isinstance(text, str)]
        yield from read_words(words, name)
