"""What the readers of results share: lines of text, numbers, JSON that may end too early."""

import math
import re
from typing import Any

import msgspec

from ncdiag.read.nccl_tests.cut_json import mended

MB_GBIT = 8e-3
"""Gbit in a megabyte of 1e6 bytes."""
MIB_GBIT = 2**20 * 8e-9
"""Gbit in a mebibyte of 2**20 bytes."""
GB_GBIT = 8.0
"""Gbit in a gigabyte of 1e9 bytes."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
# What Python writes for a figure that is none, against the rules of JSON.
_NO_NUMBER = re.compile(rb"([:,\[]\s?)(?:NaN|-?Infinity)(?=[,}\]])")
_LOOKED_AT = 1 << 16
_PREFIXES = (
    re.compile(rb"\A\[(?:[^\]\s]{1,80}@)?\d{1,6},\d{1,6}\]<std(?:out|err)>: ?"),
    re.compile(rb"\A {0,6}\d{1,6}:(?: |(?=\r?\Z))"),
    re.compile(rb"\A\[\d{1,6}\](?: |(?=\r?\Z))"),
)
_LAST_WORD = re.compile(r"(?<!\S)\S{1,40}\Z")
_LONGEST = 1 << 20
_MOST_GBIT_PER_S = 1e6


def lines_of(data: bytes, *, table: bool = False) -> list[str]:
    """The lines of a text, without colours and carriage returns; over-long ones cut.

    A figure at the very end of a ``table`` is left out: it may have lost its end, and half of
    a figure is a slow link.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if table:
        text = _LAST_WORD.sub("", text)
    return [_COLOUR.sub("", line[:_LONGEST]) for line in re.split(r"\r\n?|\n", text)]


def without_prefixes(data: bytes) -> bytes:
    """``data`` without what a launcher put before each of its lines, if it did before all.

    ``mpirun --tag-output``, ``mpiexec -l`` and ``srun -l`` do.
    """
    lines = [line for line in data[:_LOOKED_AT].splitlines()[:-1] if line.strip()]
    for prefix in _PREFIXES:
        if lines and all(map(prefix.match, lines)):
            return b"\n".join(prefix.sub(b"", line, count=1) for line in data.split(b"\n"))
    return data


def number(word: object) -> float | None:
    """A finite number, also one that stands as text; ``None`` for anything else."""
    if isinstance(word, bool) or not isinstance(word, str | int | float):
        return None
    if isinstance(word, str) and len(word) > 40:
        return None
    try:
        value = float(word)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def rate(word: object, factor: float) -> float | None:
    """A bandwidth in Gbit/s, ``None`` for what cannot be one; 0 is none that was measured."""
    value = number(word)
    if value is None or not 0 < value * factor < _MOST_GBIT_PER_S:
        return None
    return value * factor


def whole(word: object) -> int | None:
    """A whole number of sane size."""
    value = number(word)
    return int(value) if value is not None and abs(value) < 2**62 else None


def document(data: bytes) -> tuple[dict[str, Any] | None, bool]:
    """A JSON object and whether it was cut: what is left of one that ends too early.

    What stands before its first brace, or after its last, is passed over.
    """
    start = data.find(b"{")
    body = data[start:] if start >= 0 else b""
    for text in (body, mended(body)):
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        return (found if isinstance(found, dict) else None), not body.startswith(text)
    return None, True


def records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The JSON objects of a file with one a line, and how many lines were none."""
    found, damaged = [], 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(_NO_NUMBER.sub(rb"\1null", line))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            damaged += 1
            continue
        if isinstance(one, dict):
            found.append(one)
        else:
            damaged += 1
    return found, damaged
