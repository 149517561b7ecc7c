"""Settings out of files with one a line: nccl.conf, the output of ``env``, units, plain text."""

import re
from collections.abc import Iterator

from ncdiag.model.environment import Setting
from ncdiag.profiles.sources.shell_words import ShellSyntaxError, commands

_ENTRY = re.compile(r"([^=]*)=(.*)", re.DOTALL)
# An entry of a dict, or a line of a shell's, in the text of a page.
_IN_A_DICT = re.compile(r"""["']([A-Za-z_]\w*)["']\s*:\s*(["'])([^"']*)\2""")
_IN_A_LINE = re.compile(r"""\s*[$>%]?\s*(?:export\s+)?([A-Z_][A-Z0-9_]*)=("[^"]*"|'[^']*'|\S*)""")
_IN_LUA = re.compile(r"""\b(?:set|push)env\s*\(\s*(["'])([^"']*)\1\s*,\s*(["'])([^"']*)\3\s*\)""")
_IN_A_UNIT = re.compile(r"\s*Environment\s*=(.*)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
# What NCCL's buffers for name and value hold. Source: NCCL 2.30.7, src/misc/param.cc.
_LONGEST = 1023


def read_conf(text: str, name: str, first_line: int = 1) -> Iterator[Setting]:
    """``NAME=VALUE`` lines as NCCL reads its files, which trims nothing.

    A ``#`` behind blanks is left out too: NCCL sets a variable of that name, which nobody reads.
    """
    for number, line in enumerate(text.split("\n"), start=first_line):
        if not line.lstrip().startswith("#") and (found := _ENTRY.fullmatch(line)):
            variable, value = found[1][:_LONGEST], found[2][:_LONGEST]
            yield Setting(variable, value, f"{name}:{number}")


def read_environment(text: str, name: str, first_line: int = 1) -> Iterator[Setting]:
    """What ``env`` prints, or a file for ``--env-file``; values are taken as they stand.

    A carriage return belongs to the value, unless every line ends with one.
    """
    whole = all_in_crlf(text)
    for number, line in enumerate(text.split("\n"), start=first_line):
        bare = line.removesuffix("\r") if whole else line
        if not bare.lstrip().startswith("#") and (found := _ENTRY.fullmatch(bare)):
            yield Setting(found[1], found[2], f"{name}:{number}")


def all_in_crlf(text: str) -> bool:
    """Whether every line that is not empty ends with a carriage return."""
    filled = [line for line in text.split("\n") if line]
    return bool(filled) and all(line.endswith("\r") for line in filled)


def read_null_separated(text: str, name: str) -> Iterator[Setting]:
    """What ``env -0`` prints and ``/proc/PID/environ`` holds; the place counts entries."""
    for number, entry in enumerate(text.split("\0"), start=1):
        if found := _ENTRY.fullmatch(entry):
            yield Setting(found[1], found[2], f"{name}:{number}")


def read_lua(text: str, name: str) -> Iterator[Setting]:
    """``setenv`` and ``pushenv`` of a module file in Lua."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("--"):
            for found in _IN_LUA.finditer(line[:4096]):
                yield Setting(found[2], found[4], f"{name}:{number}")


def read_unit(text: str, name: str) -> Iterator[Setting]:
    """``Environment=`` of a unit of systemd."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not (found := _IN_A_UNIT.fullmatch(line)):
            continue
        try:
            words = [word.text for one in commands(found[1], number) for word in one.words]
        except ShellSyntaxError:
            continue
        for word in words:
            variable, equals, value = word.partition("=")
            if equals:
                yield Setting(variable, value, f"{name}:{number}")


def read_text(text: str, name: str) -> Iterator[Setting]:
    """Settings in the code of a page: entries of a dict, and lines that set something.

    What stands between two fences holds for itself.
    """
    fence: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if _FENCE.match(line):
            fence = f"fence {number}" if fence is None else None
        if not (":" in line or "=" in line) or line.lstrip().startswith("#"):
            continue
        place, scope = f"{name}:{number}", () if fence is None else (fence,)
        entries = [(found[1], found[3]) for found in _IN_A_DICT.finditer(line[:4096])]
        if not entries and (found := _IN_A_LINE.match(line[:4096])):
            entries = [(found[1], found[2].strip("\"'"))]
        yield from (Setting(variable, value, place, scope=scope) for variable, value in entries)
