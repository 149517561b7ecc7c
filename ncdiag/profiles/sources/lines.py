"""Settings out of files with one a line: nccl.conf, the output of ``env``, and plain text."""

import re
from collections.abc import Iterator

from ncdiag.model.environment import Setting

_ENTRY = re.compile(r"([^=]*)=(.*)", re.DOTALL)
# An entry of a dict, or a line of a shell's, in the text of a page.
_IN_A_DICT = re.compile(r"""["']([A-Za-z_]\w*)["']\s*:\s*(["'])([^"']*)\2""")
_IN_A_LINE = re.compile(r"""\s*[$>%]?\s*(?:export\s+)?([A-Z_][A-Z0-9_]*)=("[^"]*"|'[^']*'|\S*)""")
# What NCCL's buffers for name and value hold. Source: NCCL 2.30.7, src/misc/param.cc.
_LONGEST = 1023


def read_conf(text: str, name: str) -> Iterator[Setting]:
    """``NAME=VALUE`` lines as NCCL reads its files, which trims nothing.

    A ``#`` behind blanks is left out too: NCCL sets a variable of that name, which nobody reads.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("#") and (found := _ENTRY.fullmatch(line)):
            variable, value = found[1][:_LONGEST], found[2][:_LONGEST]
            yield Setting(variable, value, f"{name}:{number}")


def read_environment(text: str, name: str) -> Iterator[Setting]:
    """What ``env`` prints, or a file for ``--env-file``; values are taken as they stand."""
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.rstrip("\r")
        if not bare.lstrip().startswith("#") and (found := _ENTRY.fullmatch(bare)):
            yield Setting(found[1], found[2], f"{name}:{number}")


def read_null_separated(text: str, name: str) -> Iterator[Setting]:
    """What ``env -0`` prints and ``/proc/PID/environ`` holds; the place counts entries."""
    for number, entry in enumerate(text.split("\0"), start=1):
        if found := _ENTRY.fullmatch(entry):
            yield Setting(found[1], found[2], f"{name}:{number}")


def read_text(text: str, name: str) -> Iterator[Setting]:
    """Settings in the code of a page: entries of a dict, and lines that set something."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not (":" in line or "=" in line) or line.lstrip().startswith("#"):
            continue
        place = f"{name}:{number}"
        entries = [(found[1], found[3]) for found in _IN_A_DICT.finditer(line[:4096])]
        if not entries and (found := _IN_A_LINE.match(line[:4096])):
            entries = [(found[1], found[2].strip("\"'"))]
        yield from (Setting(variable, value, place) for variable, value in entries)
