"""Time stamps: from text to a ``Moment``."""

import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from ncdiag.model.place import Clock, Moment

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_EPOCH = date(1970, 1, 1).toordinal()
# Logs without a year that are alone in an input: order holds, the distance to others does not.
NO_YEAR = 1970

_MONTH = "|".join(_MONTHS)
_TIME = r"(?P<H>\d{1,2}):(?P<M>\d\d):(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?(?: ?(?P<p>[AP]M))?"
_ZONE = r"(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:]))?"
# The forms of a date, most telling first; each is searched for anywhere in a short text.
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"(?P<Y>[12]\d{{3}})[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)[T _,:-]{{1,2}}{_TIME}{_ZONE}",
        rf"(?P<b>{_MONTH}) {{1,2}}(?P<d>\d\d?),? (?P<Y>[12]\d{{3}})[ ,@]{{1,3}}{_TIME}{_ZONE}",
        rf"(?P<b>{_MONTH}) {{1,2}}(?P<d>\d\d?) {_TIME}(?: [A-Z]{{3,4}})? (?P<Y>[12]\d{{3}})",
        rf"(?P<d>\d\d?)[ /-](?P<b>{_MONTH})[ /-](?P<Y>[12]\d{{3}})[ :T]{_TIME}{_ZONE}",
        rf"(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<Y>[12]\d{{3}}),? {_TIME}{_ZONE}",
        rf"(?P<Y>20\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)[T _-]?{_TIME}{_ZONE}",
        rf"(?P<b>{_MONTH}) {{0,2}}(?P<d>\d\d?) {_TIME}{_ZONE}",
        r"(?P<b>" + _MONTH + r")(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d)(?!:)",
        rf"(?<!\d)(?P<m>\d\d?)(?P<d>\d\d) {_TIME}",
        rf"(?<!\d)(?P<m>[01]\d)-(?P<d>[0-3]\d) {_TIME}",
        r"(?<![\d.])(?P<e>1[0-9]\d{8})(?:[.,](?P<f>\d{1,9}))?(?![\d.])",
        rf"(?<![\d:]){_TIME}(?![\d:])",
    )
)
# Stamps of a format of the user's own: nothing but what strftime prints.
_NO_STAMP = re.compile(r"[^\sA-Za-z\d:.,/_+\[\](){}|<>-]")
_NAMES = re.compile(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|{_MONTH})[a-z]{{0,6}}|[A-Z]{{1,5}}|day", re.ASCII
)
_WORD = re.compile(r"[A-Za-z]+")
LONGEST = 80


class Calendar:
    """Supplies the year that a stamp leaves out, the same for all of one input."""

    def __init__(self, year: int | None = None) -> None:
        self._seen = year
        self._year: int | None = None
        self._month = 0

    def saw(self, year: int) -> None:
        """Remember the year of a stamp that has one."""
        if self._seen is None:
            self._seen = year

    def year(self, month: int) -> int:
        """The year of the next stamp without one, which is of ``month``."""
        if self._year is None:
            self._year = self._seen or NO_YEAR
        elif (self._month, month) == (12, 1):
            self._year += 1
        elif (self._month, month) == (1, 12):
            self._year -= 1
        self._month = month
        return self._year


class Stamp(NamedTuple):
    """A time stamp; of several on a line, the one of the most ``weight`` counts."""

    moment: Moment
    weight: int


def read(text: str, calendar: Calendar) -> Stamp | None:
    """The time stamp in ``text``, which holds little else."""
    for form in _FORMS:
        found = form.search(text)
        if found and (stamp := _stamp(text, found.groupdict(), calendar)):
            return stamp
    return None


def uptime(text: str, seconds: float) -> Stamp:
    """A time since the host booted."""
    return Stamp(Moment(text, seconds, Clock.UPTIME), 0)


def since_epoch(text: str, seconds: float) -> Stamp:
    """A time since 1970."""
    return Stamp(Moment(text, seconds, Clock.WALL), 3)


def only_time(text: str) -> bool:
    """Whether ``text`` is nothing but a time stamp in some format, not numbers in columns."""
    if len(text) > LONGEST or "   " in text or _NO_STAMP.search(text):
        return False
    if len(text.split()) > 1 and not any(form.search(text) for form in _FORMS):
        return False
    return all(_NAMES.fullmatch(word) for word in _WORD.findall(text))


def _stamp(text: str, parts: dict[str, str | None], calendar: Calendar) -> Stamp | None:
    fraction = float(f"0.{parts['f']}") if parts.get("f") else 0.0
    epoch = parts.get("e")
    if epoch:
        return since_epoch(text, int(epoch) + fraction)
    hour, minute = int(parts["H"] or 0), int(parts["M"] or 0)
    if parts.get("p"):
        hour = hour % 12 + (12 if parts["p"] == "PM" else 0)
    second = int(parts.get("S") or 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    seconds = hour * 3600 + minute * 60 + second + fraction
    if not parts.get("d"):
        return Stamp(Moment(text, seconds, Clock.DAY), 1)
    return _dated(text, seconds, parts, calendar)


def _dated(
    text: str, seconds: float, parts: dict[str, str | None], calendar: Calendar
) -> Stamp | None:
    name = parts.get("b")
    month = _MONTHS[name] if name else int(parts["m"] or 0)
    day = int(parts["d"] or 0)
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    printed = parts.get("Y")
    if printed:
        calendar.saw(int(printed))
    year = int(printed) if printed else calendar.year(month)
    seconds += _days(year, month, day) * 86400.0 - _offset(parts.get("z"))
    return Stamp(Moment(text, seconds, Clock.WALL), 3 if printed else 2)


@lru_cache(maxsize=64)
def _days(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        # The 29th of February in a year that was only supposed.
        return date(year, month, 28).toordinal() + day - 28 - _EPOCH


def _offset(zone: str | None) -> float:
    if not zone or zone[0] not in "+-":
        return 0.0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return float(-seconds if zone[0] == "-" else seconds)
