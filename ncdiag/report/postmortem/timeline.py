"""When findings showed themselves on which host: what the timeline of the page is drawn from."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import NamedTuple

from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.model.finding import Finding, Postmortem, Role
from ncdiag.model.log import Event, LogEvidence
from ncdiag.model.place import Clock, Place
from ncdiag.model.text import visible

# Marks nearer to one another than this share of the axis are one.
_NEAR = 0.006
_MOST_TICKS = 7
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_MOST_ROWS = 400
_MOST_MARKS = 20_000
_MOST_CHARS = 300
_YEAR_S = 366 * 86400.0
_LATEST_S = 4e9
# Drawn one over the other: roots last.
_LAYERS = (Role.WARNING, Role.CONSEQUENCE, Role.ROOT)
_NOTES = {
    Clock.WALL: "Times are those of each host's own clock; between hosts they can be off.",
    Clock.DAY: "Times are those of each host's own clock; no log says which day.",
    Clock.UPTIME: "Time counts from the start of the host.",
    None: "The logs share no clock. A mark stands where its line is in its file: it can be "
    "compared along a row, not between rows.",
}


class Mark(NamedTuple):
    """A finding that shows itself: from ``start`` to ``end``, shares of the axis.

    ``start`` is ``None`` where the log does not tell the time. ``finding`` counts from 1.
    """

    start: float | None
    end: float | None
    role: Role
    finding: int
    times: int
    text: str


@dataclass(slots=True)
class Row:
    """A host, or a file whose lines name none, and what was seen there."""

    name: str
    marks: list[Mark] = field(default_factory=list)
    first: float | None = None
    last: float | None = None


class Tick(NamedTuple):
    """A place on the axis."""

    at: float
    label: str


class Picture(NamedTuple):
    """All of it; ``quiet`` are hosts that speak and show nothing.

    ``untimed`` says that some mark has no time.
    """

    rows: Sequence[Row]
    ticks: Sequence[Tick]
    note: str
    left_out: int
    quiet: Sequence[str]
    untimed: bool


class _Sighting(NamedTuple):
    row: str
    place: Place
    last: Place
    finding: int
    times: int
    text: str


def draw(postmortem: Postmortem, evidence: LogEvidence, names: Mapping[str, str]) -> Picture:
    """The timeline of a post-mortem; without a row where there is nothing to show."""
    hosts = HostBook(evidence, names)
    sightings = list(_sightings(postmortem, evidence, hosts))
    axis = _Axis(sightings, evidence)
    rows: dict[str, Row] = {}
    groups: defaultdict[tuple[str, int, int | None], list[_Sighting]] = defaultdict(list)
    for one in sightings:
        at = axis.at(one.place)
        groups[one.row, one.finding, None if at is None else round(at / _NEAR)].append(one)
    for (name, number, _), group in groups.items():
        row = rows.setdefault(name, Row(visible(name)))
        row.marks.append(_mark(group, axis, postmortem.findings[number - 1].role))
    for row in rows.values():
        row.marks.sort(key=lambda mark: _LAYERS.index(mark.role))
        row.marks[: -_MOST_MARKS // min(len(rows), _MOST_ROWS)] = []
    spoken = _spans(evidence, hosts, axis, rows)
    ordered = sorted(rows.values(), key=_rank)
    return Picture(
        rows=ordered[:_MOST_ROWS],
        ticks=axis.ticks(),
        note=axis.note(),
        left_out=max(0, len(ordered) - _MOST_ROWS),
        quiet=[visible(name) for name in spoken if name not in rows],
        untimed=any(mark.start is None for row in ordered for mark in row.marks),
    )


def _rank(row: Row) -> tuple[int, float]:
    """Hosts with a root first, then those where something showed itself early."""
    starts = [mark.start for mark in row.marks if mark.start is not None]
    return all(mark.role is not Role.ROOT for mark in row.marks), min(starts, default=0.0)


def _mark(group: Sequence[_Sighting], axis: "_Axis", role: Role) -> Mark:
    first = group[0]
    ends = [end for one in group if (end := axis.at(one.last)) is not None]
    return Mark(
        start=axis.at(first.place),
        end=max(ends, default=None),
        role=role,
        finding=first.finding,
        times=sum(one.times for one in group),
        text=visible(first.text[:_MOST_CHARS]),
    )


def _spans(
    evidence: LogEvidence, hosts: HostBook, axis: "_Axis", rows: Mapping[str, Row]
) -> list[str]:
    """Note in the rows how long each host spoke; all hosts that did."""
    spoken: dict[str, None] = {}
    for process in evidence.processes:
        name = hosts.resolve(process.host)
        spoken[name] = None
        row = rows.get(name)
        times = [axis.at(place) for place in (process.first, process.last) if place]
        known = [at for at in times if at is not None]
        if row and known:
            row.first = min([*known, *([] if row.first is None else [row.first])])
            row.last = max([*known, *([] if row.last is None else [row.last])])
    return list(spoken)


def _sightings(
    postmortem: Postmortem, evidence: LogEvidence, hosts: HostBook
) -> Iterator[_Sighting]:
    """Each event under the finding it belongs to, then findings that no event tells of."""
    finder = _Finder(postmortem.findings)
    owners = _owners(evidence, hosts)
    seen = set()
    for event in evidence.events:
        number = finder.find(event)
        if number:
            seen.add(number)
            row = hosts.of_event(event) or owners.get(event.place.path) or event.place.path
            last = event.last or event.place
            yield _Sighting(row, event.place, last, number, event.count, event.text)
    for number, finding in enumerate(postmortem.findings, start=1):
        if number not in seen and finding.first_seen:
            place = Place(finding.first_seen.path, finding.first_seen.line)
            text = finding.evidence[0].text if finding.evidence else finding.class_
            suspect = next((one.name for one in finding.suspects if one.kind == "host"), None)
            row = suspect or owners.get(place.path) or place.path
            yield _Sighting(row, place, place, number, finding.count, text)


def _owners(evidence: LogEvidence, hosts: HostBook) -> dict[str, str]:
    """Files in which the processes of one host speak, and of no other."""
    speakers: defaultdict[str, set[str]] = defaultdict(set)
    for process in evidence.processes:
        if process.first and process.host:
            speakers[process.first.path].add(hosts.resolve(process.host))
    return {path: min(names) for path, names in speakers.items() if len(names) == 1}


class _Finder:
    """Which finding an event belongs to: the one that quotes it, else the only one of its kind."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._quoted: dict[tuple[str, str, int], int] = {}
        self._by_class: defaultdict[str, list[int]] = defaultdict(list)
        self._findings = findings
        for number, finding in enumerate(findings, start=1):
            self._by_class[finding.class_].append(number)
            for line in finding.evidence:
                self._quoted.setdefault((finding.class_, line.path, line.line), number)

    def find(self, event: Event) -> int | None:
        """Its number, from 1."""
        quoted = self._quoted.get((event.class_name, event.place.path, event.place.line))
        if quoted:
            return quoted
        numbers = self._by_class.get(event.class_name, [])
        return next((n for n in numbers if self._fits(n, event)), numbers[0] if numbers else None)

    def _fits(self, number: int, event: Event) -> bool:
        mine = self._findings[number - 1].attributes
        return all(mine.get(key, value) == value for key, value in event.attributes.items())


class _Axis:
    """Places on the axis: by the clock that most sightings carry, else by the line in the file."""

    def __init__(self, sightings: Sequence[_Sighting], evidence: LogEvidence) -> None:
        self._lines = {one.path: max(one.lines, 1) for one in evidence.inputs}
        self.clock = _common_clock(sightings)
        self._year = _year(place for one in sightings for place in (one.place, one.last))
        places = [place for one in sightings for place in (one.place, one.last)]
        places += [place for one in evidence.processes for place in (one.first, one.last) if place]
        seconds = [at for place in places if (at := self._seconds(place)) is not None]
        self._from = min(seconds, default=0.0)
        self._span = max(seconds, default=0.0) - self._from

    def _seconds(self, place: Place) -> float | None:
        time = place.time
        if not time or time.clock is not self.clock or not isfinite(time.seconds):
            return None
        if self._year and time.clock is Clock.WALL and 0 <= time.seconds < _YEAR_S:
            return _in_year(time.seconds, self._year)
        return time.seconds

    def at(self, place: Place) -> float | None:
        """A share of the axis; ``None`` where the place carries no such time."""
        if self.clock is None:
            return min(place.line / self._lines.get(place.path, place.line), 1.0)
        seconds = self._seconds(place)
        if seconds is None:
            return None
        return (seconds - self._from) / self._span if self._span else 0.5

    def ticks(self) -> list[Tick]:
        """At most a handful, at round times."""
        if self.clock is None:
            return [Tick(0.0, "first line"), Tick(0.5, "half"), Tick(1.0, "last line")]
        if not self._span:
            return [Tick(0.5, self._label(self._from))]
        step = next((one for one in _STEPS_S if self._span / one < _MOST_TICKS), self._span / 4)
        number = int(-(-self._from // step))
        made = []
        while number * step <= self._from + self._span:
            at = (number * step - self._from) / self._span
            made.append(Tick(at, self._label(number * step)))
            number += 1
        return made or [Tick(0.0, self._label(self._from))]

    def note(self) -> str:
        """What the axis shows, and how far it can be trusted."""
        if self.clock is not Clock.WALL:
            return _NOTES[self.clock]
        return f"From {self._label(self._from, '%Y-%m-%d %H:%M:%S')}. {_NOTES[self.clock]}"

    def _label(self, seconds: float, form: str = "") -> str:
        if self.clock is Clock.UPTIME:
            return f"{seconds:,.0f} s"
        try:
            moment = datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, ValueError, OSError):
            return f"{seconds:.0f}"
        midnight = self.clock is Clock.WALL and (self._span >= 86400 or not seconds % 86400)
        return moment.strftime(form or ("%m-%d %H:%M" if midnight else "%H:%M:%S"))


def _year(places: Iterable[Place]) -> int | None:
    """The year of the first time that has one."""
    for place in places:
        time = place.time
        if time and time.clock is Clock.WALL and _YEAR_S <= time.seconds < _LATEST_S:
            return datetime.fromtimestamp(time.seconds, UTC).year
    return None


def _in_year(seconds: float, year: int) -> float:
    """A time that was printed without a year, and so was read as one of 1970, in ``year``."""
    moment = datetime.fromtimestamp(seconds, UTC)
    try:
        return moment.replace(year=year).timestamp()
    except ValueError:  # 29 February
        return seconds


def _common_clock(sightings: Iterable[_Sighting]) -> Clock | None:
    """The clock that at least half of the sightings have; of uptimes only those of one host."""
    clocks: Counter[Clock | None] = Counter()
    rows = set()
    for one in sightings:
        clocks[one.place.time.clock if one.place.time else None] += 1
        rows.add(one.row)
    for clock in (Clock.WALL, Clock.DAY, Clock.UPTIME):
        if clocks[clock] * 2 >= clocks.total() > 0 and (
            clock is not Clock.UPTIME or len(rows) == 1
        ):
            return clock
    return None
