"""How a result table is laid out: its columns, and the values of a row that may be in pieces."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ncdiag.model.benchmark import IterationTimes, TableRow
from ncdiag.model.place import Place

TYPES = (
    "float", "half", "double", "bfloat16", "int8", "uint8", "char", "int", "int32", "uint32",
    "int64", "uint64", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "fp16", "bf16",
)  # fmt: skip
_ROW = re.compile(
    r"(?:^|(?<=[\s\d}]))(?<!\d)(\d{1,16})\s{1,40}(\d{1,16})\s{1,20}(" + "|".join(TYPES) + r")"
    r"(?=\s|\Z)(?:\s{1,20}(sum|prod|min|max|avg|mulsum|none))?"
)
_VALUE = re.compile(r"N/A|[-+]?(?:nan|inf|\d{1,20}(?:\.\d{0,12})?(?:[eE][-+]?\d{1,3})?)\*?")
_GAP = re.compile(r"\s*")
_STAMP = re.compile(r"\s\d{4}-\d\d-\d\d(?:\s{1,4}\d\d:\d\d:\d\d)?")
_WHOLE_STAMP = re.compile(r"\s(\d{4}-\d\d-\d\d)\s{1,4}(\d\d:\d\d:\d\d)")
# Where nothing was measured out of place, 32 blanks stand; columns are never so far apart.
_NO_FIRST_HALF = re.compile(r"\s{0,20}-?\d{1,9}\s{30,120}(?=\S)")
_PIECE = re.compile(r"[\s\d.eE+:/NAnaif*-]{1,240}\Z")
_TAIL = re.compile(r"(?:\s{1,20}(?:N/A|[\d.]{1,20}(?:e[-+]?\d{1,3})?)){3,8}\s{0,8}\Z")
# As ``%g`` prints whole numbers; a rank with wrong values may be marked.
_COUNT = re.compile(r"(?:N/A|\d{1,20}|\d(?:\.\d{1,5})?e\+\d{2,3})\*?")
_RATE = re.compile(
    r"\d{1,9}\.\d{1,2}|\d{5,9}|\d(?:\.\d{1,2})?e[+-]\d{2,3}|N/A|-?nan|inf", re.IGNORECASE
)
# No sum of small numbers is rounded so much.
_FAR_OFF = 0.1
_MAX_ROW = 512
# A row in many pieces may be put together in so many ways.
_MOST_WAYS = 16
_HALF = 4
_TIME, _ALGBW, _BUSBW = range(3)
_ITERATION_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a heading. ``half`` is the number of columns of out-of-place or in-place.

    ``stamp`` says that each row ends in the time at which it was printed.
    Whether both halves come shows in the rows: a heading may be cut at the edge of a terminal.
    """

    redop: bool = True
    root: bool = True
    half: int = _HALF
    deviation: bool = False
    stamp: bool = False
    cpu_times: bool = False

    def values(self) -> int:
        """How many values a whole row has behind its type and operation."""
        return 2 * self.half + self.root


def layout_of(text: str) -> Layout | None:
    """The layout that a line of column titles shows."""
    titles = text.replace("#wrong", "wrong").replace("#", " ").split()
    halves = titles.count("algbw")
    if not {"size", "bytes"} & {*titles} or "type" not in titles or not halves:
        return None
    first = next((i for i, title in enumerate(titles) if title in {"time", "cputime"}), None)
    if first is None:
        return None
    per_iteration = sum(title.startswith("i_") for title in titles) // halves
    return Layout(
        redop="redop" in titles or "op" in titles,
        root="root" in titles,
        half=_HALF + per_iteration,
        deviation="error" in titles or "res" in titles,
        stamp="timestamp" in titles,
        cpu_times=titles[first] == "cputime",
    )


class RowHead(NamedTuple):
    """The beginning of a row; ``rest`` is what follows its type and operation."""

    size: int
    type: str
    redop: str
    rest: str
    elements: int | None = None


def row_head(text: str) -> RowHead | None:
    """The row that begins somewhere in ``text``."""
    found = _ROW.search(text)
    if not found:
        return None
    return RowHead(
        int(found[1]), found[3], found[4] or "", text[found.end() :], elements=int(found[2])
    )


def piece(text: str, *, of_library: bool) -> str | None:
    """The part of ``text`` that may go on with a row: all of it, or what follows a record."""
    if not of_library:
        return text if _PIECE.match(text) and not text.isspace() else None
    found = _TAIL.search(text[-240:])
    return found[0] if found and "." in found[0] else None


@dataclass(slots=True)
class OpenRow:
    """A row of which not every value is there yet; each part came on a line of its own."""

    head: RowHead
    place: Place
    shown: str
    text: str
    parts: list[str] = field(default_factory=list)

    def add(self, more: str) -> None:
        """Go on with ``more``."""
        if len(self.text) + sum(map(len, self.parts)) + len(more) <= _MAX_ROW:
            self.parts.append(more)

    def values(self, layout: Layout | None) -> list[str]:
        """The values so far, up to the first thing that is none.

        Blanks at the end of a line are lost, so a line may end in a whole value or in half of one:
        what the layout allows tells. By itself a value goes on where no blank is.
        """
        return _values_of(self.whole(layout))

    def whole(self, layout: Layout | None) -> str:
        """The parts put together in the way that is most like a row."""
        ways = [self.text]
        for part in self.parts:
            seam = bool(ways[0]) and not ways[0][-1:].isspace() and part[:1].strip()
            ways = [way + gap + part for way in ways for gap in (("", " ") if seam else ("",))]
            ways = ways[:_MOST_WAYS]
        if len(ways) == 1:
            return ways[0]
        return max(ways, key=lambda way: _likeness(_values_of(way), layout))


def _values_of(text: str) -> list[str]:
    text = _STAMP.sub(" ", text)
    values: list[str] = []
    at = _end(_GAP, text, 0)
    while found := _VALUE.match(text, at):
        values.append(found[0])
        at = _end(_GAP, text, found.end())
    return values


def _likeness(values: list[str], layout: Layout | None) -> tuple[bool, bool, int]:
    """How much values are like those of a row: neither too many nor of a wrong form, most."""
    layout = layout or _guess(values)
    too_many = len(values) > layout.values()
    return not too_many, _is_sound(values, layout), len(values) if not too_many else -len(values)


def _is_sound(values: list[str], layout: Layout) -> bool:
    """Whether times and bandwidths have decimals, unless they are large, and counts have none."""
    halves = _halves(values, layout)
    rates = [rate for half in halves for rate in half[: _BUSBW + 1] + half[_HALF:]]
    counts = [half[_BUSBW + 1] for half in halves if len(half) > _BUSBW + 1]
    return all(_RATE.fullmatch(rate) for rate in rates) and (
        layout.deviation or all(_COUNT.fullmatch(count) for count in counts)
    )


def _halves(values: list[str], layout: Layout) -> tuple[list[str], list[str]]:
    values = values[1:] if layout.root else values
    return values[: layout.half], values[layout.half : 2 * layout.half]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


class Result(NamedTuple):
    """A row's record, its first bad value as printed, and whether it deviates beyond rounding."""

    row: TableRow
    bad: str | None
    far_off: bool = False


def is_whole(row: OpenRow, layout: Layout | None) -> bool:
    """Whether nothing of the row can be missing."""
    text = row.whole(layout)
    if layout and layout.stamp and not _WHOLE_STAMP.search(text):
        return False
    have = len(_values_of(text))
    return have >= layout.values() if layout else have >= 2 * _HALF


def result(row: OpenRow, layout: Layout | None) -> Result | None:
    """The record of a row, ``None`` when it never got a bandwidth."""
    text = row.whole(layout)
    values = _values_of(text)
    layout = layout or _guess(values)
    first, second = _halves(values, layout)
    if layout.root and not second and _NO_FIRST_HALF.match(text):
        first, second = second, first
    if max(len(first), len(second)) <= _BUSBW:
        return None
    wrongs = [half[_BUSBW + 1] if len(half) > _BUSBW + 1 else None for half in (first, second)]
    sound = len(values) >= layout.values() or _is_sound(values, layout)
    # Where columns are missing among the others, nobody knows which.
    told = [wrong for wrong in wrongs if wrong] if sound else []
    counts = [None if layout.deviation or not told or w is None else _count(w) for w in wrongs]
    bad = [
        wrong
        for wrong in told
        if wrong.endswith("*") or not (layout.deviation or _count(wrong) in {None, 0})
    ]
    stamp = _WHOLE_STAMP.search(text) if layout.stamp else None
    record = TableRow(
        size=row.head.size,
        type=row.head.type,
        redop=row.head.redop,
        out_of_place_busbw=_at(first, _BUSBW),
        in_place_busbw=_at(second, _BUSBW),
        out_of_place_wrong=counts[0],
        in_place_wrong=counts[1],
        place=row.place,
        elements=row.head.elements,
        root=_root(values) if layout.root else None,
        out_of_place_time_us=_at(first, _TIME),
        in_place_time_us=_at(second, _TIME),
        out_of_place_algbw=_at(first, _ALGBW),
        in_place_algbw=_at(second, _ALGBW),
        out_of_place_iterations=_iterations(first, layout),
        in_place_iterations=_iterations(second, layout),
        finished=f"{stamp[1]} {stamp[2]}" if stamp else None,
    )
    far_off = layout.deviation and any((number(w or "") or 0) >= _FAR_OFF for w in wrongs)
    return Result(record, bad[0].rstrip("*") if bad else None, far_off)


def _root(values: list[str]) -> int | None:
    root = number(values[0]) if values else None
    return int(root) if root is not None else None


def _iterations(half: list[str], layout: Layout) -> IterationTimes | None:
    """What the columns ``i_min i_max i_p99 i_cv%`` say, where they are there."""
    if layout.half < _HALF + _ITERATION_COLUMNS or len(half) < layout.half:
        return None
    least, most, p99, cv = map(number, half[_HALF : _HALF + _ITERATION_COLUMNS])
    return IterationTimes(min_us=least, max_us=most, p99_us=p99, cv_percent=cv)


def _count(text: str) -> float | None:
    """How many values are wrong; what is no whole number is another column of a damaged row."""
    return number(text) if _COUNT.fullmatch(text) else None


def _guess(values: list[str]) -> Layout:
    """The layout of a table without a heading, by the number of its values."""
    root = len(values) % _HALF == 1 or values[:1] == ["-1"]
    checked = [v for v in values[root + 3 :: _HALF] if v != "N/A"]
    return Layout(root=root, deviation=any("e-" in value for value in checked))


def _at(values: list[str], index: int) -> float | None:
    return number(values[index]) if index < len(values) else None


def number(text: str) -> float | None:
    """A value, ``None`` for ``N/A`` and what is no number."""
    try:
        value = float(text.rstrip("*"))
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - nan
