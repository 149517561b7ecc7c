"""Secrets never get into a store, which outlives the run and is shown to others."""

import re
from collections.abc import Mapping

from ncdiag.model.secrets import REDACTED, names_a_secret

# Quotes may be escaped where JSON stands in JSON.
_QUOTE = r"\\{0,4}[\"']"
# NAME=value, "name": "value", --name value. A name begins where no other part of it can.
_NAMED = re.compile(
    rf"(?<![\w.-])(?:{_QUOTE})?(?:--?)?(?P<name>[A-Za-z_][\w.-]{{0,127}})"
    rf"(?:(?:{_QUOTE})?[ \t]{{0,8}}(?:=|:(?!//))[ \t]{{0,8}}|[ \t]{{1,8}})"
)
_SCHEME = r"(?:(?:Bearer|Basic|Digest|Negotiate|Token)[ \t]+)?"
_VALUE = re.compile(
    rf"{_SCHEME}(?:\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|[^\s,;]+)",
    re.IGNORECASE,
)
_IN_TEXT = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<before>\b[Bb]earer[ \t]+)[\w.~+/=-]+",
        r"(?P<before>://)[^\s/@:]{0,256}:[^\s]{1,256}(?=@)",  # scheme://user:password@host
        r"(?P<before>\b(?:https?|git|ftps?)://)[^\s/@:]{1,256}(?=@)",  # scheme://token@host
    )
)


def redacted(settings: Mapping[str, str]) -> dict[str, str]:
    """``settings`` without the values that may be secrets."""
    return {name: _safe(name, value) for name, value in settings.items()}


def redacted_text(text: str) -> str:
    """``text`` without what follows a name that smells of a secret, and without passwords."""
    text = _without_named(text)
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<before>{REDACTED}", text)
    return text


def _without_named(text: str) -> str:
    parts, at = [], 0
    for found in _NAMED.finditer(text):
        if found.start() < at or not names_a_secret(found["name"]):
            continue
        if found[0][-1] in " \t" and not _sets(found):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None:
            parts += [text[at : found.end()], REDACTED]
            at = value.end()
    return "".join((*parts, text[at:]))


def _sets(found: re.Match[str]) -> bool:
    """Whether a value follows: after a sign, or after an option."""
    before, _, after = found[0].partition(found["name"])
    return before.endswith("--") or "=" in after or ":" in after


def _safe(name: str, value: str) -> str:
    return REDACTED if names_a_secret(name) else redacted_text(value)
