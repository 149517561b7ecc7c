"""Looks up each line in the signature table and keeps the events."""

import re
from collections.abc import Iterable, Sequence

from ncdiag.model.log import Event, LogEvidence
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import DETAIL, RANKS, Signature

_NUMBER = re.compile(r"\d{1,9}")
# Origins that are kinds by themselves, whatever else the line says.
_KINDS = frozenset({"kernel", "fabric-manager"})


class SignatureReader:
    """Turns lines that match a row into events; the first matching row of a class wins."""

    def __init__(self, rows: Iterable[Signature]) -> None:
        self.rows: dict[bytes, list[tuple[int, Signature]]] = {}
        for place, row in enumerate(rows):
            for needle in dict.fromkeys((row.needle, *row.further)):
                self.rows.setdefault(needle.encode(), []).append((place, row))
        self.needles = frozenset(self.rows)
        self.facts: frozenset[bytes] = frozenset()
        self.events = EventLog()
        self.kinds: set[str] = set()

    @property
    def open(self) -> bool:
        """Every signature is one line."""
        return False

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Keep an event for each class that has a matching row."""
        wanted = {place: row for hit in hits for place, row in self.rows.get(hit, ())}
        seen: set[str] = set()
        for place in sorted(wanted):
            row = wanted[place]
            if row.class_ not in seen and (event := match(row, line)):
                seen.add(row.class_)
                self.events.add(event)
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
    if not found:
        return None
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
