"""Tables with separators: one row a rank and iteration, or one column a rank."""

import csv
import math
from collections.abc import Sequence
from typing import Final

from ncdiag.model.straggler import TimeKind
from ncdiag.read.iteration_times.columns import Columns, find_columns, plain, wide_ranks
from ncdiag.read.iteration_times.gather import Gathering

_SEPARATORS: Final = ",;\t"


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
            self._at = {name: place for place, name in reversed(list(enumerate(names)))}
            self._counts: dict[int, int] = {}
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
        rank = whole(self._cell(values, columns.rank))
        seconds = positive(self._cell(values, columns.time))
        if rank is None or rank < 0 or seconds is None:
            return False
        iteration = whole(self._cell(values, columns.iteration))
        if columns.iteration is None:
            iteration = self._counts[rank] = self._counts.get(rank, -1) + 1
        if iteration is None:
            return False
        self._gathering.add(rank, iteration, seconds * columns.seconds)
        self._gathering.place(
            rank,
            self._cell(values, columns.host),
            self._cell(values, columns.gpu),
            self._cell(values, columns.group),
        )
        return True

    def _cell(self, values: Sequence[str], name: str | None) -> str | None:
        return None if name is None else _at(values, self._at[name]).strip()


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
