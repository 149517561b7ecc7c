"""Looks up each line in the signature table and keeps the events."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ncdiag.model.log import Event, LogEvidence
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import DETAIL, RANKS, Signature

_NUMBER = re.compile(r"\d{1,9}")
# Origins that are kinds by themselves, whatever else the line says.
_KINDS = frozenset({"kernel", "fabric-manager"})
_MOST_KNOWN = 4096


@lru_cache(maxsize=4)
def _by_needle(rows: tuple[Signature, ...]) -> dict[bytes, list[tuple[int, Signature]]]:
    found: dict[bytes, list[tuple[int, Signature]]] = {}
    for place, row in enumerate(rows):
        for needle in dict.fromkeys((row.needle, *row.further)):
            found.setdefault(needle.encode(), []).append((place, row))
    return found


class Told(NamedTuple):
    """What a signature found in a line, and the event that counts for it; none if it refused."""

    row: Signature
    values: tuple[str | None, ...]
    event: Event | None


class SignatureReader:
    """Turns lines that match a row into events; the first matching row of a class wins.

    ``told`` is what the rows found in the ``latest`` line that was read.
    """

    def __init__(self, rows: Iterable[Signature]) -> None:
        self._by_needle = _by_needle(tuple(rows))
        self._by_hits: dict[Sequence[bytes], tuple[Signature, ...]] = {}
        self.needles = frozenset(self._by_needle)
        self.facts: frozenset[bytes] = frozenset()
        self.events = EventLog()
        self.kinds: set[str] = set()
        self.latest: Line | None = None
        self.told: list[Told] = []

    @property
    def open(self) -> bool:
        """Every signature is one line."""
        return False

    def rows(self, hits: Sequence[bytes]) -> tuple[Signature, ...]:
        """The signatures that a line with these needles may match, in order."""
        key = tuple(hits)
        rows = self._by_hits.get(key)
        if rows is None:
            found = {place: row for hit in key for place, row in self._by_needle.get(hit, ())}
            rows = tuple(found[place] for place in sorted(found))
            if len(self._by_hits) < _MOST_KNOWN:
                self._by_hits[key] = rows
        return rows

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Keep an event for each class that has a matching row."""
        self.latest, self.told = line, []
        seen: list[str] = []
        for row in self.rows(hits):
            if row.class_ in seen or not applies(row, line.level, line.location):
                continue
            found = row.pattern.search(line.text)
            if not found:
                continue
            event = _event(row, line, found)
            self.told.append(Told(row, found.groups(), self.events.add(event) if event else None))
            if event:
                seen.append(row.class_)
                if row.kind:
                    self.kinds.add(row.kind)
                if line.origin in _KINDS:
                    self.kinds.add(line.origin)

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        evidence.events.extend(self.events.all())


def applies(row: Signature, level: str | None, location: str | None) -> bool:
    """Whether the signature is meant for lines of this level and place in the source."""
    if level not in row.levels:
        return False
    return not row.location or bool(location and row.location.search(location))


def match(row: Signature, line: Line) -> Event | None:
    """The event that ``line`` is by ``row``, if it is one."""
    if not applies(row, line.level, line.location):
        return None
    found = row.pattern.search(line.text)
    return _event(row, line, found) if found else None


def _event(row: Signature, line: Line, found: re.Match[str]) -> Event | None:
    values = {name: value for name, value in found.groupdict().items() if value}
    values.update(row.constants)
    if row.refine:
        refined = row.refine(values, line)
        if refined is None:
            return None
        values = refined
    ranks = [int(n) for name in values if name.startswith(RANKS) for n in _numbers(values[name])]
    return Event(
        class_name=row.class_,
        form=row.name,
        place=line.place,
        text=line.shown or line.text,
        speaker=line.speaker,
        attributes={k: v for k, v in values.items() if not k.startswith((DETAIL, RANKS))},
        details={k.removeprefix(DETAIL): v for k, v in values.items() if k.startswith(DETAIL)},
        ranks=tuple(dict.fromkeys(ranks)),
        role=row.role,
        severity=row.severity,
        source=line.location,
        count=1 + line.repeats,
    )


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)
