"""Tells lines of programs and documentation, which quote errors, from lines of logs."""

import re

_CODE = re.compile(
    rb"(?:[\w./+-]{1,200}\.(?:c|cc|cpp|cu|cuh|go|h|hpp|md|py|rs|rst|sh|ya?ml)[:-]\d{1,6}[:-])?"
    rb"\s{0,80}(?:"
    # A comment, as a line of a change, too.
    rb"[+-]?\s{0,80}(?:#|//|/\*)\s"
    # A text that is added, taken away, named or handed over.
    rb"|[+-]\s{0,80}[bfruBFRU]{0,2}[\"']"
    rb"|[+-]?\s{0,80}\w[\w.]{0,60}\s=\s[bfruBFRU]{0,2}[\"']"
    rb"|[+-]?\s{0,80}(?:raise|assert|return)\s\w"
    rb"|[+-]?\s{0,80}[(\[]{0,3}(?!\w{0,60}(?:Error|Exception)\()\w[\w.:>-]{0,60}\([bfru]{0,2}[\"']"
    # A row of a table in Markdown.
    rb"|\|[^\n]{0,400}`[^\n]{0,400}\|\s{0,8}\Z"
    # A command that looks for something.
    rb"|(?:\+{1,4}|\S{0,80}\s{0,2}[$%])\s[^\n]{0,400}?\b(?:e?grep|rg|awk|sed)\s"
    rb")"
)
# What is filled in only when a program prints it, or by who reads it.
_BLANK = re.compile(
    rb"(?<![\w%])%(?:[dipsux]|l{1,2}[dux]|zu)\b"
    rb"|<(?:addr|address|device|gpu|host|hostname|ip|name|node|pid|port|rank)>"
    rb"|:xx:|\{\{ ?[$.]"
)


def is_source(raw: bytes) -> bool:
    """Whether a line only quotes what others print: code, a comment, a pattern, a template."""
    return _CODE.match(raw) is not None or _BLANK.search(raw) is not None
