"""Text from outside, made safe to print."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

# Control and format characters (which hold the bidirectional overrides), surrogates, and the two
# Unicode line breaks: all can move the cursor, hide or reorder what an operator reads.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    """Return ``text`` with every control character written as an escape (ESC as ``x1b``)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(char) for char in text)


def is_hidden(char: str) -> bool:
    """Whether ``char`` moves the cursor, or hides or reorders what stands beside it."""
    return unicodedata.category(char) in _HIDDEN


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a complaint of an unknown name: the known one that it is near to, if any."""
    near = get_close_matches(name.lower(), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _escape(char: str) -> str:
    if is_hidden(char):
        return char.encode("unicode_escape", "backslashreplace").decode("ascii")
    return char
