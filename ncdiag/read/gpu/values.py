"""Values as programs print them: a figure with its unit, a word, or a word for "not known"."""

import math
import re
from collections.abc import Iterable

# Longer than any name, serial number or version that a driver gives.
MAX_TEXT_CHARS = 256
MIB = 1 << 20

_FIGURE = re.compile(r"\(?\s{0,4}([+-]?\d{1,20}(?:\.\d{1,9})?)\s{0,4}([A-Za-z/%]{0,12})\)?\s{0,4}")
# What stands in place of a value that this GPU does not have (and no fault: "not supported").
_NOT_THERE = frozenset(
    {
        "",
        "n/a",
        "none",
        "not supported",
        "not available",
        "not found",
        "unknown",
        "requested functionality has been deprecated",
    }
)
# What stands in place of a value that the driver could not read.
_BROKEN = frozenset({"unknown error", "err!", "gpu is lost", "gpu requires reset"})
_YES = frozenset({"yes", "enabled", "active", "on", "1"})
_NO = frozenset({"no", "disabled", "not active", "off", "0"})
# Factors to bytes, to °C, W and MHz, to one; a letter case says nothing.
_UNITS = {
    "": 1.0,
    "c": 1.0,
    "w": 1.0,
    "mhz": 1.0,
    "ghz": 1e3,
    "%": 1.0,
    "x": 1.0,
    "b": 1.0,
    "kib": 1 << 10,
    "mib": MIB,
    "gib": 1 << 30,
    "mb": MIB,
    "kb": 1 << 10,
    "gt/s": 1.0,
    "mw": 1e-3,
}
_GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}


def word(text: object) -> str:
    """``text`` without brackets and blanks around it, in lower case, to be looked up."""
    return str(text).strip()[:MAX_TEXT_CHARS].strip("[]").strip().lower()


def is_broken(text: object) -> bool:
    """Whether the driver said that it could not read this, where others can be."""
    return word(text) in _BROKEN


def name(text: object) -> str | None:
    """A name or version as it stands, cut; ``None`` for a word that says there is none."""
    if not isinstance(text, str) or word(text) in _NOT_THERE or is_broken(text):
        return None
    return " ".join(text[: 4 * MAX_TEXT_CHARS].split())[:MAX_TEXT_CHARS]


def figure(text: object) -> float | None:
    """A figure in °C, W, MHz, bytes or per cent, by its unit; ``None`` for all that is none."""
    if isinstance(text, bool):
        return None
    if isinstance(text, int | float):
        return _finite(text)
    if not isinstance(text, str) or len(text) > 64:
        return None
    found = _FIGURE.fullmatch(text.strip())
    if found is None:
        return None
    factor = _UNITS.get(found[2].lower())
    return None if factor is None else float(found[1]) * factor


def count(text: object) -> int | None:
    """A whole number that is not negative, below 2**63."""
    value = figure(text)
    return int(value) if value is not None and 0 <= value < 2**63 and value % 1 == 0 else None


def switch(text: object) -> bool | None:
    """Whether something is on, by any of the words for it."""
    found = word(text)
    if found in _YES:
        return True
    return False if found in _NO else None


def total(texts: Iterable[object]) -> int | None:
    """The sum of the counts that a GPU has.

    ``None`` where it has none, and where one could not be read while the others are all zero:
    nobody knows then whether there were errors.
    """
    counts, broken = [], False
    for text in texts:
        broken |= is_broken(text)
        value = count(text)
        if value is not None:
            counts.append(value)
    if not counts or (broken and not sum(counts)):
        return None
    return sum(counts)


def any_of(switches: Iterable[bool | None]) -> bool | None:
    """Whether one of them is on; ``None`` if nothing is known of any."""
    known = [one for one in switches if one is not None]
    return any(known) if known else None


def gigatransfers(generation: int | None) -> float | None:
    """What one lane of a generation of PCIe does, in GT/s (PCI Express base specification)."""
    return None if generation is None else _GIGATRANSFERS.get(generation)


def _finite(value: float) -> float | None:
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
