"""Tables with separators: one row a rank and iteration, or one column a rank."""

import csv
import math
import re
from collections.abc import Sequence
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import TimeKind
from ncdiag.model.text import visible
from ncdiag.read.iteration_times.columns import Columns, find_columns, plain, wide_ranks
from ncdiag.read.iteration_times.gather import Gathering

_SEPARATORS: Final = ",;\t"
_DECIMAL_COMMA: Final = re.compile(r"\s*\d+,\d+\s*", re.ASCII)
# Numbers of ranks and iterations come again and again.
_REMEMBERED: Final = 1 << 18


class Rows:
    """Reads the rows of one table into ``gathering``; ``header`` is its first line."""

    def __init__(self, header: str, wanted: str | None, gathering: Gathering) -> None:
        self._separator = max(_SEPARATORS, key=header.count)
        names = self._split(header)
        self._gathering = gathering
        self._next = 0
        self._wide = None if wanted else wide_ranks(names)
        self.columns: Columns | None = None
        if self._wide is None:
            self.columns = find_columns(names, wanted)
            at = {name: place for place, name in reversed(list(enumerate(names)))}
            columns = self.columns
            self._rank_at, self._time_at = at[columns.rank], at[columns.time]
            self._iteration_at = None if columns.iteration is None else at[columns.iteration]
            parts = (columns.host, columns.gpu, columns.group)
            self._place_at = tuple(None if name is None else at[name] for name in parts)
            self._counts: dict[int, int] = {}
            self._numbers: dict[str, int | None] = {}
            self._placed: dict[int, list[str]] = {}
        else:
            ranks = self._wide
            self._iteration = next((n for n in range(len(names)) if n not in ranks), None)

    @property
    def kind(self) -> TimeKind:
        """What was timed, as the column's name tells."""
        return self.columns.kind if self.columns else TimeKind.ITERATION

    def read(self, line: str) -> bool:
        """One row; whether anything could be made of it."""
        values = self._split(line)
        return self._read_wide(values) if self._wide is not None else self._read_long(values)

    def _split(self, line: str) -> list[str]:
        if '"' not in line:
            return line.split(self._separator)
        try:
            return next(csv.reader([line], delimiter=self._separator), [])
        except csv.Error:
            return []

    def _read_wide(self, values: Sequence[str]) -> bool:
        number = None if self._iteration is None else whole(_at(values, self._iteration))
        iteration = self._next if number is None else number
        self._next += 1
        found = False
        for place, rank in (self._wide or {}).items():
            if (seconds := positive(_at(values, place))) is not None:
                self._gathering.add(rank, iteration, seconds)
                found = True
        return found

    def _read_long(self, values: Sequence[str]) -> bool:
        columns = self.columns
        assert columns is not None  # noqa: S101 - a long table has them
        rank, time = self._whole(_at(values, self._rank_at)), _at(values, self._time_at)
        seconds = positive(time)
        if rank is None or rank < 0 or seconds is None:
            if _DECIMAL_COMMA.fullmatch(time):
                raise UsageError(
                    f"{columns.time[:40]!r} holds {visible(time.strip()[:40])!r}: write decimals "
                    "with a point"
                )
            return False
        if self._iteration_at is None:
            iteration = self._counts[rank] = self._counts.get(rank, -1) + 1
        elif (found := self._whole(_at(values, self._iteration_at))) is None:
            return False
        else:
            iteration = found
        self._gathering.add(rank, iteration, seconds * columns.seconds)
        where = ["" if at is None else _at(values, at).strip() for at in self._place_at]
        if self._placed.get(rank) != where and any(where):
            self._gathering.place(rank, *where)
            if len(self._placed) < _REMEMBERED:
                self._placed[rank] = where
        return True

    def _whole(self, text: str) -> int | None:
        if text in self._numbers:
            return self._numbers[text]
        number = whole(text)
        if len(self._numbers) < _REMEMBERED and len(text) < 20:
            self._numbers[text] = number
        return number


def _at(values: Sequence[str], place: int) -> str:
    return values[place] if place < len(values) else ""


def whole(value: object) -> int | None:
    """The whole number that ``value`` is or spells, of 63 bits; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text.isascii() or len(text) > 20 or not text.lstrip("-").isdigit():
            return None
        try:
            value = int(text)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and abs(value) < 1 << 62 else None


def positive(value: object) -> float | None:
    """The finite number above zero that ``value`` is or spells; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if number > 0 and math.isfinite(number) else None


def is_header(line: str) -> bool:
    """Whether a line names columns: some field is no number."""
    separator = max(_SEPARATORS, key=line.count)
    names = [plain(name) for name in line.split(separator)]
    return any(name and not name.replace("_", "").isdigit() for name in names)
