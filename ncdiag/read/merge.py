"""Joins what was read of several inputs, or of several pieces of one."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.log import NOBODY, CommunicatorState, InputSummary, LogEvidence, NcclProcess
from ncdiag.model.place import Place
from ncdiag.read import pace
from ncdiag.read.events import EventLog
from ncdiag.read.nccl_tests.join import continue_benchmark

MAX_PROCESSES = 200_000
_MAX_COMMUNICATORS = 4_096
# In all processes together, some 600 bytes each.
_MAX_ALL_COMMUNICATORS = 100_000
_MAX_NAMES = 1_024
# Of two pieces the later one's word counts for these.
_LATEST = frozenset({"last", "last_call", "chain", "chain_place"})


# By these two records are known to be of one process; communicators are joined by themselves.
_IDENTITY = frozenset({"host", "pid", "communicators"})
# Numbers that count lines; other numbers are what the lines say.
_COUNTS = frozenset({"gdr_channels", "plain_channels", "api_calls"})


class EvidenceSum:
    """Takes evidence in the order of the inputs, and of the lines of each."""

    def __init__(self) -> None:
        self._sum = LogEvidence()
        self._events = EventLog()
        self._processes: dict[tuple[str, str, str], NcclProcess] = {}
        self._lines: dict[str, int] = {}
        self._room = _MAX_ALL_COMMUNICATORS

    def add(self, evidence: LogEvidence, pieces: Iterable[str] = ()) -> None:
        """Add ``evidence``; of the inputs in ``pieces`` it may hold a later piece."""
        later = {path for path in pieces if path in self._lines}
        before = {path: self._lines[path] for path in later if self._lines[path]}
        if before:
            evidence = _moved(evidence, before)
        for event in evidence.events:
            self._events.add(event)
        for process in evidence.processes:
            self._add_process(process)
        for summary in evidence.inputs:
            self._add_input(summary, again=summary.path in later)
        known = set(self._sum.versions)
        self._sum.versions += [found for found in evidence.versions if found not in known]
        self._add_benchmarks(evidence.benchmarks, later=bool(before))
        for name in ("progress", "failures", "ras", "dumps", "inspector", "raised"):
            getattr(self._sum, name).extend(getattr(evidence, name))
        for host, place in evidence.hosts.items():
            if len(self._sum.hosts) < MAX_PROCESSES:
                self._sum.hosts.setdefault(host, place)
        self._sum.ends.update(evidence.ends)
        self._sum.clock_ends.update(evidence.clock_ends)
        self._sum.met.update(evidence.met)
        self._sum.ended_well.update(evidence.ended_well)
        self._sum.boots.update(evidence.boots)
        for path, found in evidence.paces.items():
            known_pace = self._sum.paces.get(path) if path in later else None
            self._sum.paces[path] = pace.join(known_pace, found) if known_pace else found

    def result(self) -> LogEvidence:
        """All of it."""
        self._sum.events = list(self._events.all())
        self._sum.processes = list(self._processes.values())
        return self._sum

    def _add_benchmarks(self, benchmarks: list[Benchmark], *, later: bool) -> None:
        """A later piece may begin in the table that the one before ended in."""
        known = self._sum.benchmarks
        rest = bool(later and known and benchmarks and continue_benchmark(known[-1], benchmarks[0]))
        known.extend(benchmarks[rest:])

    def _add_input(self, summary: InputSummary, *, again: bool) -> None:
        self._lines[summary.path] = self._lines.get(summary.path, 0) + summary.lines
        if not again:
            self._sum.inputs.append(summary)
            return
        whole = next(known for known in reversed(self._sum.inputs) if known.path == summary.path)
        whole.bytes += summary.bytes
        whole.lines += summary.lines
        whole.kinds = sorted({*whole.kinds, *summary.kinds})
        whole.truncated = whole.truncated or summary.truncated
        whole.error = whole.error or summary.error

    def _add_process(self, process: NcclProcess) -> None:
        """Processes whose name is lost are the same only within an input."""
        named = process.host and process.pid
        path = process.first.path if process.first and not named else ""
        key = process.host, process.pid, path
        known = self._processes.get(key)
        if known is not None:
            before = len(known.communicators)
            join_process(known, process, self._room)
            self._room -= len(known.communicators) - before
        elif len(self._processes) < MAX_PROCESSES:
            del process.communicators[max(self._room, 0) :]
            self._room -= len(process.communicators)
            self._processes[key] = process


def joined(found: Iterable[LogEvidence]) -> LogEvidence:
    """The evidence of several inputs, in their order, as one."""
    together = EvidenceSum()
    for evidence in found:
        together.add(evidence)
    return together.result()


def join_process(first: NcclProcess, second: NcclProcess, room: int = _MAX_COMMUNICATORS) -> None:
    """Add to ``first`` what the same process said later; ``room`` is for more communicators."""
    most = min(_MAX_COMMUNICATORS, len(first.communicators) + room)
    _advance(first, second)
    _join_values(first, second)
    living = {state.pointer: state for state in first.communicators}
    for state in second.communicators:
        known = living.get(state.pointer)
        if known is not None and _same(known, state):
            _join_values(known, state)
        elif len(first.communicators) < most:
            first.communicators.append(state)
        living[state.pointer] = state if known is None or not _same(known, state) else known


def _advance(first: NcclProcess, second: NcclProcess) -> None:
    """A start-up went on if the process made connections later: their lines name none."""
    step = second.connected or (second.first if second.transports else None)
    waiting = [one for one in first.communicators if one.started and not one.completed]
    if len(waiting) == 1 and waiting[0].progressed is None:
        waiting[0].progressed = step


def _same(known: CommunicatorState, later: CommunicatorState) -> bool:
    """Whether two records at one address are of one communicator: memory is used again."""
    if known.comm_id and later.comm_id:
        return known.comm_id == later.comm_id
    return not (known.ended and (later.started or later.completed))


def _join_values(first: Any, second: Any) -> None:
    for name in _names(first.__class__):
        later = getattr(second, name)
        if name in _IDENTITY or later is None:
            continue
        known = getattr(first, name)
        if known is None or known == NOBODY:
            setattr(first, name, later)
        elif later:
            setattr(first, name, _joined(name, known, later))


def _joined(name: str, first: Any, second: Any) -> Any:
    """One value out of two by what they are: counts add up, lists and tables gain what is new."""
    if name in _LATEST:
        return second
    join = _JOINS.get(type(first))
    if join is not None:
        return join(first, second)
    return first + second if name in _COUNTS else first


def _longer(first: list[Any], second: list[Any]) -> list[Any]:
    return first + [value for value in second if value not in first][:_MAX_NAMES]


def _fuller(first: dict[Any, Any], second: dict[Any, Any]) -> dict[Any, Any]:
    room = max(_MAX_NAMES - len(first), 0)
    new = [key for key in second if key not in first][:room]
    return {**first, **{key: second[key] for key in second if key in first or key in new}}


_JOINS: dict[type, Callable[[Any, Any], Any]] = {
    bool: lambda first, second: first or second,
    Counter: lambda first, second: first + second,
    dict: _fuller,
    list: _longer,
    set: lambda first, second: first | second,
}


@lru_cache(maxsize=64)
def _names(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


def _moved(value: Any, by: dict[str, int]) -> Any:
    """``value`` with every place in it moved down by the lines before its piece."""
    kind = type(value)
    if kind is Place:
        path, line, time = value
        return Place(path, line + by[path], time) if path in by else value
    if kind in _LEAVES:
        return value
    if isinstance(value, dict):
        return _moved_table(value, by)
    if isinstance(value, list):
        return _moved_list(value, by)
    if isinstance(value, tuple):
        return _moved_tuple(value, by)
    if is_dataclass(kind):
        for name in _names(kind):
            old = getattr(value, name)
            if old and type(old) not in _LEAVES:
                object.__setattr__(value, name, _moved(old, by))
    return value


def _moved_table(value: dict[Any, Any], by: dict[str, int]) -> dict[Any, Any]:
    for key, old in value.items():
        if type(old) not in _LEAVES:
            value[key] = _moved(old, by)
    return value


def _moved_list(value: list[Any], by: dict[str, int]) -> list[Any]:
    for at, old in enumerate(value):
        if type(old) not in _LEAVES:
            value[at] = _moved(old, by)
    return value


def _moved_tuple(value: tuple[Any, ...], by: dict[str, int]) -> tuple[Any, ...]:
    if all(type(old) in _LEAVES for old in value):
        return value
    moved = [_moved(old, by) for old in value]
    return type(value)(*moved) if hasattr(value, "_fields") else tuple(moved)


# What holds no place.
_LEAVES = frozenset({str, int, float, bool, bytes, type(None)})
