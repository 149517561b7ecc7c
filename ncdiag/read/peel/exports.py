"""Records of a log store's export whose parts stand on several lines.

A table's header names the columns of the rows below it; an object with a property a line tells its
time and host before its message.
"""

import csv
import re

import msgspec

from ncdiag.read.peel import collected
from ncdiag.read.peel.chain import Chain, Memory
from ncdiag.read.peel.collected import Collected

_COLUMN = re.compile(r"[\w@][\w.@ -]{0,62}", re.ASCII)
_MESSAGES = frozenset({"message", "@message", "MESSAGE", "log", "line", "textPayload", "_raw"})
_TIMES = frozenset({"_time", "@timestamp", "timestamp", "time"})
_PROPERTY = re.compile(
    r'\s{1,64}"(?P<key>[\w.@]{1,64})"\s{0,4}:\s{0,4}'
    r'(?P<value>"(?:[^"\\]|\\.)*"|\d{1,20}(?:\.\d{1,9})?)\s{0,4},?\s{0,8}',
    re.ASCII,
)
_BRACKET = re.compile(r"\s{0,64}[\[\]{}]", re.ASCII)
_MOST_PROPERTIES = 64


class Export:
    """Takes the lines of one input in order and gives the records in them."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._unclosed: Chain | None = None
        self._last = 0
        self._properties: dict[str, str | int | float] = {}

    def read(self, text: str, memory: Memory) -> Collected | None:
        """The record that ``text`` holds or goes on with; ``None`` for a line that is of none."""
        if memory.line == 1 and "," in text:
            self._columns = _header(text)
        elif self._columns:
            return self._row(text, memory)
        elif text.startswith((" ", "\t", "{", "}", "[", "]")):
            return self._property(text, memory)
        return None

    def _row(self, text: str, memory: Memory) -> Collected | None:
        """A row, or the next line of one whose last column is longer than a line."""
        before = self._unclosed if memory.line == self._last + 1 else None
        self._unclosed, self._last = None, memory.line
        row = self._whole(text, memory)
        odd = text.count('"') % 2 == 1
        if row and odd:
            self._unclosed = row.proved
        if row or not before:
            return row
        if not odd:
            self._unclosed = before
        rest = text.rstrip().removesuffix('"') if odd else text
        return Collected([rest.replace('""', '"')], before)

    def _whole(self, text: str, memory: Memory) -> Collected | None:
        values = _values(text)
        if len(values) != len(self._columns):
            return None
        record = dict(zip(self._columns, values, strict=True))
        row = collected.of_record(record, Chain(), memory)
        return row if row and row.proved.stamp else None

    def _property(self, text: str, memory: Memory) -> Collected | None:
        found = _PROPERTY.fullmatch(text)
        if not found:
            if _BRACKET.match(text):
                self._properties.clear()
            return None
        try:
            value = msgspec.json.decode(found["value"], type=str | int | float)
        except msgspec.DecodeError:
            return None
        if found["key"] in _MESSAGES and isinstance(value, str):
            record = {**self._properties, found["key"]: value}
            return collected.of_record(record, Chain(), memory)
        if found["key"] not in collected.TEXTS and len(self._properties) < _MOST_PROPERTIES:
            self._properties[found["key"]] = value
        return None


def _header(text: str) -> list[str]:
    """The columns, if they are those of an export of log lines."""
    columns = _values(text)
    if _MESSAGES.isdisjoint(columns) or _TIMES.isdisjoint(columns):
        return []
    return columns if all(map(_COLUMN.fullmatch, columns)) else []


def _values(text: str) -> list[str]:
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return []
