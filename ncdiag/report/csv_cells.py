"""Texts as cells of a table that a spreadsheet may open."""

from typing import Final

# A spreadsheet takes a cell that starts with one of these for a formula and may run it
# (OWASP, "CSV Injection"); a leading apostrophe makes it text.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_text(value: str) -> str:
    """``value`` as a cell that is never taken for a formula."""
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
