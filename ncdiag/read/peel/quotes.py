"""Records inside strings: as programs quote what they caught, tables their cells, pages code."""

import re

# What may close a string: its quote, an escape of a line's end, the mark of a string that goes on.
_TAIL = re.compile(r"""(?:\\{1,8}[nrt]?|\\{0,8}["'`],?)\Z""")
_ENDS = ('"', "'", "`", "\\", '",', "',", "\\n", "\\r", "\\t")
_OPENINGS = ('"', "'", "`", "\\")
_QUOTES = "\"'`"
_SPELT = ("\\n", "\\r")
_MOST = 8
# A page's line that is one piece of code, perhaps one of a list.
_BEFORE_CODE = re.compile(r"[\s>*+-]{0,40}(?:\d{1,4}[.)]\s{1,4})?", re.ASCII)


def closed(text: str) -> bool:
    """Whether ``text`` ends as a string does."""
    return text.endswith(_ENDS)


def opened(before: str) -> bool:
    """Whether what follows ``before`` stands in a string, or behind a spelt-out end of a line."""
    return before.endswith(_OPENINGS)


def end_of(text: str, begin: int, start: int, end: int) -> int:
    """Where the record from ``begin`` ends, without what closes the string around it.

    Its message is from ``start`` on. A quote that the message itself opened is its own.
    """
    if end < len(text) and text[end - 1] in _QUOTES:
        # The next record's.
        end -= 1
        while end > start and text[end - 1] in ", ":
            end -= 1
    for _ in range(_MOST):
        while end > start and text[end - 1].isspace():
            end -= 1
        if not text.endswith(_ENDS, start, end):
            break
        found = _TAIL.search(text, max(start, end - 2 * _MOST), end)
        if not found or not _closes(text, begin, start, found):
            break
        end = found.start()
    return max(start, end)


def _closes(text: str, begin: int, start: int, found: re.Match[str]) -> bool:
    quote = found[0].rstrip(",")[-1]
    if quote not in _QUOTES:
        return True
    if quote == "'":
        # An apostrophe has no partner either: the string must be known by more.
        escaped = text.endswith(_SPELT, start, found.start()) or found[0][0] == "\\"
        return escaped or text[begin - 1 : begin] == quote
    return text.count(quote, start, found.end()) % 2 == 1


def spoken(text: str, start: int) -> bool:
    """Whether a record in a page's code, from ``start`` on, was printed and not only written about.

    A line that holds nothing else was; in the midst of a sentence its author quotes.
    """
    if text[start - 1 : start] != "`":
        return True
    alone = _BEFORE_CODE.fullmatch(text, 0, start - 1)
    return alone is not None and text.rstrip().endswith("`")
