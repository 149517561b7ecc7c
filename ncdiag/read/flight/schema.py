"""From the values of a dump, of any version from 2.1 to 2.10, to a ``FlightDump``.

A value that is missing or of another type is as good as absent. A pickle may refer to one list from
many places, so what is copied out of it is counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ncdiag.model.log import FlightDump, FlightEntry
from ncdiag.model.place import Place

# Values copied out of one dump; 20,000 entries of 100 numbers each.
MAX_VALUES = 2_000_000
MAX_FRAMES = 32
MAX_DIMENSIONS = 16
# Of what is long completed, the newest are kept: enough to see where calls began to differ.
KEPT_COMPLETED = 64
MAX_TEXT = 500
MAX_NUMBER = 2**63

TOP_KEYS = ("entries", "pg_status", "pg_config")
_RANK_NAMED = re.compile(r"rank[_-]?(\d{1,7})(?!\d)", re.IGNORECASE)
_RANK_TRAILING = re.compile(r"(?<!\d)(\d{1,7})$")
_SUFFIX = re.compile(r"\.(?:json|pickle|pkl|dump|bin|log|txt|gz|zst|xz|bz2)$", re.IGNORECASE)

T = TypeVar("T")


class SchemaError(ValueError):
    """The values are no dump of a flight recorder, or more than one can hold."""


def rank_of(path: str) -> int | None:
    """The rank that a dump's file name ends with, behind any prefix."""
    for name in reversed(path.replace("\\", "/").split("/")[-2:]):
        while cut := _SUFFIX.search(name):
            name = name[: cut.start()]  # noqa: PLW2901
        if found := _RANK_NAMED.findall(name):
            return int(found[-1])
        if trailing := _RANK_TRAILING.search(name):
            return int(trailing[1])
        if "rank" in path.lower():
            continue
        break
    return None


def flight_dump(values: object, path: str) -> FlightDump:
    """What the dump says; raises ``SchemaError`` where it is none."""
    if not isinstance(values, dict) or not any(key in values for key in TOP_KEYS):
        raise SchemaError("this is no dump of a flight recorder: none of its keys is there")
    copy = _Copy()
    dump = FlightDump(
        place=Place(path, 1),
        rank=rank_of(path),
        version=_text(values.get("version")),
        library_version=_text(values.get("comm_lib_version") or values.get("nccl_version")),
        groups=dict(copy.groups(values.get("pg_config"))),
        status=dict(copy.status(values.get("pg_status"))),
    )
    entries = sorted(copy.entries(values.get("entries")), key=lambda entry: entry.record_id)
    dump.whole = not entries or entries[0].record_id == 0
    dump.entries = _newest(entries, dump)
    return dump


class _Copy:
    """Copies values out of one dump, equal ones once."""

    def __init__(self) -> None:
        self._left = MAX_VALUES
        self._same: dict[object, Any] = {}
        self._frames: dict[int, str] = {}

    def _items(self, value: object) -> Sequence[Any]:
        if not isinstance(value, list | tuple):
            return ()
        self._left -= len(value) + 1
        if self._left < 0:
            raise SchemaError(f"the dump holds more than {MAX_VALUES} values")
        return value

    def _pairs(self, value: object) -> Iterable[tuple[Any, Any]]:
        if not isinstance(value, dict):
            return ()
        self._items(list(value))
        return value.items()

    def _once(self, value: T) -> T:
        same: T = self._same.setdefault(value, value)
        return same

    def groups(self, value: object) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
        """A group's name, what the program calls it, and its members."""
        for name, group in self._pairs(value):
            if isinstance(group, dict):
                ranks = self._ranks(group.get("ranks"))
                yield str(name)[:MAX_TEXT], (_text(group.get("desc")) or "", ranks)

    def _ranks(self, value: object) -> tuple[int, ...]:
        if isinstance(value, str):
            value = re.findall(r"\d{1,9}", value)
        ranks = (_number(item) for item in self._items(value))
        return tuple(rank for rank in ranks if rank is not None)

    def status(self, value: object) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """A group's number and its last collectives."""
        for number, group in self._pairs(value):
            if isinstance(group, dict):
                last = [
                    _number(group.get(f"last_{step}_collective"))
                    for step in ("enqueued", "started", "completed")
                ]
                enqueued, started, completed = (-1 if seq is None else seq for seq in last)
                yield str(number)[:MAX_TEXT], (enqueued, started, completed)

    def entries(self, value: object) -> Iterator[FlightEntry]:
        """Each call that was recorded."""
        for entry in self._items(value):
            if isinstance(entry, dict):
                yield self._entry(entry)

    def _entry(self, entry: dict[Any, Any]) -> FlightEntry:
        group = entry.get("process_group")
        name = group[0] if isinstance(group, list | tuple) and group else group
        group_id = _number(entry.get("pg_id"))
        if name is None:
            name = group_id
        return FlightEntry(
            record_id=_number(entry.get("record_id")) or 0,
            group=self._once(str(name if isinstance(name, str | int) else "")[:MAX_TEXT]),
            group_id=None if group_id is None else self._once(str(group_id)),
            # Before 2.2 there was one number for both kinds.
            collective_seq=_first(entry, "collective_seq_id", "seq_id"),
            p2p_seq=_first(entry, "p2p_seq_id", "seq_id"),
            name=self._once(_text(entry.get("profiling_name")) or ""),
            state=self._once(_text(entry.get("state")) or ""),
            is_p2p=entry.get("is_p2p") is True,
            created_ns=_number(entry.get("time_created_ns")) or None,
            completed_ns=_number(entry.get("time_discovered_completed_ns")) or None,
            timeout_ms=_number(entry.get("timeout_ms")),
            input_sizes=self._sizes(entry.get("input_sizes")),
            output_sizes=self._sizes(entry.get("output_sizes")),
            input_types=self._all(entry.get("input_dtypes"), _text),
            output_types=self._all(entry.get("output_dtypes"), _text),
            frames=self._all(_cut(entry.get("frames"), MAX_FRAMES), self._frame),
        )

    def _sizes(self, value: object) -> tuple[tuple[int, ...], ...]:
        tensors = (self._all(_cut(sizes, MAX_DIMENSIONS), _number) for sizes in self._items(value))
        return self._once(tuple(tensors))

    def _all(self, value: object, read: Callable[[object], T | None]) -> tuple[T, ...]:
        items = (read(item) for item in self._items(value))
        return self._once(tuple(item for item in items if item is not None))

    def _frame(self, value: object) -> str | None:
        if not isinstance(value, dict):
            return _text(value)
        # The values live as long as this object, so their ids are theirs alone.
        known = self._frames.get(id(value))
        if known is None:
            name, file = _text(value.get("name")), _text(value.get("filename"))
            known = f"{name} at {file}:{_number(value.get('line'))}"
            self._frames[id(value)] = known
        return known


def _newest(entries: Sequence[FlightEntry], dump: FlightDump) -> list[FlightEntry]:
    """All that is not completed, and of each group the newest that are, in the order recorded."""
    left: dict[tuple[str, bool], int] = {}
    kept = []
    for entry in reversed(entries):
        if _is_completed(entry, dump):
            key = (entry.group, entry.is_p2p)
            left[key] = left.get(key, KEPT_COMPLETED) - 1
            if left[key] < 0:
                continue
        kept.append(entry)
    return kept[::-1]


def _is_completed(entry: FlightEntry, dump: FlightDump) -> bool:
    """Whether the call ended; back-ends that record no ends tell by the group's last number."""
    if entry.state == "completed" or entry.completed_ns:
        return True
    if entry.is_p2p or entry.group_id is None:
        return False
    status = dump.status.get(entry.group_id)
    return status is not None and 0 <= entry.collective_seq <= status[2]


def _first(entry: dict[Any, Any], *keys: str) -> int:
    numbers = (_number(entry.get(key)) for key in keys)
    return next((number for number in numbers if number is not None), -1)


def _text(value: object) -> str | None:
    return value[:MAX_TEXT] if isinstance(value, str) else None


def _number(value: object) -> int | None:
    """A number, or digits: JSON has some numbers as text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -MAX_NUMBER <= value < MAX_NUMBER else None


def _cut(value: object, length: int) -> object:
    return value[:length] if isinstance(value, list | tuple) else value
