"""The environment as the library printed it."""

import re

from ncdiag.model.secrets import REDACTED, names_a_secret
from ncdiag.read.line import Line
from ncdiag.read.nccl.notes import MAX_NAMES, ProcessNotes, Rule, add_once, put

_SET = re.compile(r"^([A-Z][A-Z0-9_]{2,63}) set (?:by environment )?to (.{0,1024})")
_SETTING = re.compile(r"Setting ([A-Z][A-Z0-9_]{2,63}) environment variable to (.{0,1024})")
_INVALID = re.compile(r"^Invalid value (.{0,1024}) for ([A-Z][A-Z0-9_]{2,63}), using default (\S+)")
_UNUSED = re.compile(r"\bENV ([A-Z][A-Z0-9_]{2,63}) is unused\b")
_NUMBER = re.compile(r"-?\d+\.\Z")


def safe_value(name: str, value: str) -> str:
    """``value``, unless the variable's name smells of a secret; NCCL's own hold none."""
    return REDACTED if names_a_secret(name) else value


def _note_setting(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    """Numbers are printed with a full stop behind them, words without."""
    del line
    name, value = found[1], found[2].strip()
    if _NUMBER.match(value):
        value = value[:-1]
    put(notes.process.environment, name, safe_value(name, value))


def _note_default(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    given, name, default = found[1], found[2], found[3]
    table = notes.process.defaulted
    if name in table or len(table) < MAX_NAMES:
        table[name] = safe_value(name, given), default.rstrip(".")


def _note_unused(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    add_once(notes.process.unused, found[1])


RULES = (
    Rule((" set by environment to ", " set to "), _SET, _note_setting),
    Rule((" environment variable to ",), _SETTING, _note_setting),
    Rule((", using default ",), _INVALID, _note_default),
    Rule((" is unused. ",), _UNUSED, _note_unused),
)
