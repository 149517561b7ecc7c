"""How far each rank got in each process group, from its own records."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ncdiag.model.log import FlightDump, FlightEntry, GroupProgress
from ncdiag.model.place import Place

DEFAULT_GROUPS = frozenset({"default_pg", "default"})
# "PG ID 2 PG GUID 5(tensor)", "PG 2", or a name by itself.
_PRINTED = (
    re.compile(r"PG GUID (?P<name>[^\s(]{1,200})(?:\((?P<what>[^)]{0,200})\))?"),
    re.compile(r"PG (?:ID )?(?P<name>\d{1,9})(?P<what>)"),
    re.compile(r"(?P<name>[^\s(]{1,200}) ?(?:\((?P<what>[^)]{0,200})\))?"),
)
NONE_YET = -1
# Hosts' clocks may be wrong, and programs may pause.
_CLOCKS_APART_NS = 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One rank in one group.

    ``enqueued`` is its last collective, ``waiting`` the first that it enqueued and that is not
    completed. ``calls`` are what is recorded by number.
    """

    rank: int
    place: Place
    enqueued: int
    waiting: int | None
    calls: Mapping[int, Sequence[FlightEntry]] = field(default_factory=dict)
    op: str | None = None


@dataclass(slots=True, kw_only=True)
class Group:
    """One process group; ``members`` is empty where nothing tells them."""

    name: str
    description: str = ""
    members: tuple[int, ...] = ()
    standings: dict[int, Standing] = field(default_factory=dict)

    @property
    def is_default(self) -> bool:
        """Whether every rank of the job belongs to it."""
        return self.description in DEFAULT_GROUPS or (self.name == "0" and not self.description)

    @property
    def label(self) -> str:
        """What to call it."""
        known = self.description not in ("", "undefined", self.name)
        return f"{self.name} ({self.description})" if known else self.name

    @property
    def keeps_states(self) -> bool:
        """Whether the back-end records where calls are; others tell a little late what ended."""
        return any(
            entry.state not in ("scheduled", "")
            for each in self.standings.values()
            for entries in each.calls.values()
            for entry in entries
        )

    @property
    def frontier(self) -> int | None:
        """The earliest collective that anybody waits in."""
        waiting = [s.waiting for s in self.standings.values() if s.waiting is not None]
        return min(waiting, default=None)


def newest_dumps(dumps: Iterable[FlightDump]) -> dict[int, FlightDump]:
    """One dump a rank: the latest; those of unknown rank cannot be compared.

    A dump that ended long before the others did is left over from another run: in one run, nobody
    waits for longer than the time-out.
    """
    newest: dict[int, FlightDump] = {}
    for dump in dumps:
        if dump.rank is None:
            continue
        known = newest.get(dump.rank)
        if known is None or _last_record(dump) > _last_record(known):
            newest[dump.rank] = dump
    last = max((_ended_ns(dump) for dump in newest.values()), default=0)
    return {
        rank: dump
        for rank, dump in sorted(newest.items())
        if not dump.entries or last - _ended_ns(dump) < _longest_wait_ns(dump)
    }


def _ended_ns(dump: FlightDump) -> int:
    return max((entry.created_ns or 0 for entry in dump.entries), default=0)


def _longest_wait_ns(dump: FlightDump) -> int:
    timeouts = (entry.timeout_ms or 0 for entry in dump.entries)
    return 2 * max(timeouts, default=0) * 1_000_000 + _CLOCKS_APART_NS


def _last_record(dump: FlightDump) -> tuple[int, int, bool]:
    """What orders dumps of one rank; of two forms of one dump, the one with stacks is better."""
    if not dump.entries:
        return (0, NONE_YET, False)
    last = dump.entries[-1]
    return ((last.created_ns or 0) // 1_000_000_000, last.record_id, bool(last.frames))


def groups_of(dumps: Mapping[int, FlightDump], progress: Iterable[GroupProgress]) -> list[Group]:
    """All groups, in order of their first appearance."""
    groups: dict[tuple[str, tuple[int, ...]], Group] = {}
    for rank, dump in dumps.items():
        for name, entries in _by_group(dump).items():
            description, members = dump.groups.get(name, ("", ()))
            standing = _standing(rank, dump, entries)
            if standing is None:
                continue
            group = groups.setdefault((name, members), Group(name=name, members=members))
            group.description = group.description or description
            group.standings[rank] = standing
    _add_progress(groups, progress)
    return list(groups.values())


def _by_group(dump: FlightDump) -> dict[str, list[FlightEntry]]:
    entries: dict[str, list[FlightEntry]] = {
        name: [] for name, (_, members) in dump.groups.items() if dump.rank in members
    }
    for entry in dump.entries:
        entries.setdefault(entry.group, []).append(entry)
    return entries


def _standing(rank: int, dump: FlightDump, entries: Sequence[FlightEntry]) -> Standing | None:
    """Collectives of a group end in the order in which they were enqueued."""
    calls: dict[int, list[FlightEntry]] = {}
    enqueued, completed = NONE_YET, NONE_YET
    for entry in entries:
        if entry.group_id in dump.status:
            completed = max(completed, dump.status[entry.group_id][2])
        if entry.is_p2p or entry.collective_seq < 0:
            continue
        if entry.state == "completed" or entry.completed_ns:
            completed = max(completed, entry.collective_seq)
        # The bracket around several calls, which have its number too.
        if not entry.name.endswith(":coalesced"):
            calls.setdefault(entry.collective_seq, []).append(entry)
            enqueued = max(enqueued, entry.collective_seq)
    if not calls and not dump.whole:
        return None
    waiting = min((seq for seq in calls if seq > completed), default=None)
    return Standing(rank=rank, place=dump.place, enqueued=enqueued, waiting=waiting, calls=calls)


def _add_progress(
    groups: dict[tuple[str, tuple[int, ...]], Group], progress: Iterable[GroupProgress]
) -> None:
    """Ranks without a dump, as far as the watchdog's lines tell; the latest line counts."""
    for record in progress:
        printed, standing = _printed(record.group or ""), _told(record)
        if printed is None or standing is None:
            continue
        name, description = printed
        known = [group for (other, _), group in groups.items() if other == name]
        group = known[0] if known else groups.setdefault((name, ()), Group(name=name))
        group.description = group.description or description
        if standing.rank not in group.standings or not group.standings[standing.rank].calls:
            group.standings[standing.rank] = standing


def _printed(group: str) -> tuple[str, str] | None:
    """A group's name and description as the watchdog prints them."""
    for pattern in _PRINTED:
        if found := pattern.search(group):
            return found["name"], found["what"] or ""
    return None


def _told(record: GroupProgress) -> Standing | None:
    numbers = (record.enqueued, record.timed_out, record.started, record.completed)
    enqueued = max((number for number in numbers if number is not None), default=None)
    if record.rank is None or enqueued is None:
        return None
    waiting = record.timed_out
    if waiting is None and record.completed is not None and record.completed < enqueued:
        waiting = record.completed + 1
    return Standing(
        rank=record.rank, place=record.place, enqueued=enqueued, waiting=waiting, op=record.op
    )
