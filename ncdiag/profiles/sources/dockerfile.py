"""Settings out of a Dockerfile: ENV in both forms, ARG, and what it runs and starts.

A stage holds what the stages it is built from hold, and no other does.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from ncdiag.model.environment import Setting
from ncdiag.model.errors import UsageError
from ncdiag.profiles.sources.shell import Around, read_words
from ncdiag.profiles.sources.shell import read as read_shell
from ncdiag.profiles.sources.shell_words import ShellSyntaxError, Word, commands

_ESCAPE = re.compile(r"#\s*escape\s*=\s*(\S)\s*", re.IGNORECASE)
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_DEEPEST = 20
_OLD_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s+(.*)", re.DOTALL)


def read(text: str, name: str) -> Iterator[Setting]:
    """The settings of every stage, in order; raises :class:`UsageError` with file and line."""
    scope: tuple[str, ...] = ()
    stages: dict[str, tuple[str, ...]] = {}
    for number, instruction in _instructions(text):
        found = _INSTRUCTION.fullmatch(instruction)
        if not found:
            continue
        word, rest = found[1].upper(), found[2]
        around = Around(name, scope, (*scope, f"{number}"))
        try:
            if word == "FROM":
                scope = _stage(rest, number, stages)
            elif word in ("ENV", "ARG"):
                yield from _assignments(rest, number, around)
            elif word in ("CMD", "ENTRYPOINT"):
                yield from _started(rest, number, around)
            elif word == "RUN":
                yield from _run(rest, number, around)
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


def _stage(rest: str, number: int, stages: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The scope of the stage that begins with ``FROM rest``."""
    words = [word for word in rest.split() if not word.startswith("--")]
    base = stages.get(words[0].lower(), ()) if words else ()
    scope = (*base, f"stage {number}") if len(base) < _DEEPEST else base
    if len(words) > 2 and words[1].lower() == "as":
        stages[words[2].lower()] = scope
    return scope


def _assignments(rest: str, number: int, around: Around) -> Iterator[Setting]:
    old = _OLD_FORM.fullmatch(rest)
    if old and not _ASSIGNS.match(rest):
        value = old[2].replace("\\\n", "").strip()
        yield around.setting(Word("", number), old[1], value)
        return
    for command in commands(rest, number):
        for word in command.words:
            variable, equals, value = word.text.partition("=")
            if equals:
                yield around.setting(word, variable, value)


def _started(rest: str, number: int, around: Around) -> Iterator[Setting]:
    try:
        listed = json.loads(rest.replace("\\\n", ""))
    except (ValueError, RecursionError):
        yield from read_shell(rest, around.name, number, depth=1, scope=around.own)
        return
    if isinstance(listed, list):
        words = [Word(text, number) for text in listed if isinstance(text, str)]
        yield from read_words(words, replace(around, scope=around.own))


def _run(rest: str, number: int, around: Around) -> Iterator[Setting]:
    """What is written while the image is built; what cannot be read of it is left out."""
    try:
        yield from _started(rest, number, around)
    except (UsageError, ShellSyntaxError):
        return
