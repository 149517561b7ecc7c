"""Objects of JSON, one a line: times that programs log, and those of NCCL Inspector."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import TimeKind
from ncdiag.model.text import visible
from ncdiag.read.iteration_times.columns import Columns, find_columns
from ncdiag.read.iteration_times.gather import Gathering, Room
from ncdiag.read.iteration_times.rows import positive, whole

# Communicators of one file; a training job has some hundreds.
_MAX_COMMUNICATORS: Final = 100_000
_TEXT: Final = 200
# NCCL has some ten.
_MAX_FUNCTIONS: Final = 64
# Of 63 bits when it stands together with that of a function.
_MAX_NUMBER: Final = 1 << 56
# Programs log records of some kinds, each with keys of its own.
_MAX_KINDS: Final = 1000
_decoder = msgspec.json.Decoder(dict[str, Any])


class Objects:
    """Reads the objects of one file into ``gathering``, or of Inspector by communicator."""

    def __init__(
        self, wanted: str | None, gathering: Gathering, communicators: "Communicators"
    ) -> None:
        self._wanted = wanted
        self._gathering = gathering
        self._communicators = communicators
        self._counts: dict[int, int] = {}
        self._by_keys: dict[tuple[str, ...], Columns | None] = {}
        self.columns: Columns | None = None
        self.inspector = False

    @property
    def kind(self) -> TimeKind:
        """What was timed."""
        if self.inspector:
            return TimeKind.COLLECTIVE
        return self.columns.kind if self.columns else TimeKind.ITERATION

    def read(self, line: str) -> bool:
        """One object; whether anything could be made of it.

        Raises :class:`UsageError` where the first has no rank or no time.
        """
        try:
            record = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        if isinstance(record.get("header"), dict):
            self.inspector = True
            return self._communicators.read(record)
        columns = self._columns_of(tuple(record))
        return columns is not None and self._read_plain(record, columns)

    def _columns_of(self, keys: tuple[str, ...]) -> Columns | None:
        if keys not in self._by_keys and len(self._by_keys) < _MAX_KINDS:
            try:
                self._by_keys[keys] = find_columns(keys, self._wanted)
            except UsageError:
                if self.columns is None:
                    raise
                self._by_keys[keys] = None
        columns = self._by_keys.get(keys)
        self.columns = self.columns or columns
        return columns

    def _read_plain(self, record: Mapping[str, Any], columns: Columns) -> bool:
        rank, seconds = whole(record.get(columns.rank)), positive(record.get(columns.time))
        if rank is None or rank < 0 or seconds is None:
            return False
        iteration = whole(record.get(columns.iteration)) if columns.iteration else None
        if iteration is None:
            iteration = self._counts[rank] = self._counts.get(rank, -1) + 1
        self._gathering.add(rank, iteration, seconds * columns.seconds)
        self._gathering.place(
            rank,
            _text(record, columns.host),
            _text(record, columns.gpu),
            _text(record, columns.group),
        )
        return True


class Communicators:
    """The collectives of each communicator; only ranks of the same one compare."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._by_id: dict[str, Gathering] = {}
        self._ranks: dict[str, int] = {}
        self._functions: dict[str, int] = {}

    def read(self, record: Mapping[str, Any]) -> bool:
        """One operation of Inspector's; whether it is a collective with a time."""
        header, perf = record["header"], record.get("coll_perf")
        if not isinstance(perf, dict):
            return False
        rank, seconds = whole(header.get("rank")), positive(perf.get("coll_exec_time_us"))
        number = whole(perf.get("coll_sn"))
        if rank is None or rank < 0 or seconds is None or number is None:
            return False
        if abs(number) >= _MAX_NUMBER:
            return False
        name = str(header.get("id", ""))[:_TEXT]
        if name not in self._by_id and len(self._by_id) >= _MAX_COMMUNICATORS:
            return False
        function = self._function(str(perf.get("coll", ""))[:_TEXT])
        if function is None:
            return False
        gathering = self._by_id.setdefault(name, Gathering(self._room))
        self._ranks[name] = max(self._ranks.get(name, 0), whole(header.get("n_ranks")) or 0)
        # Sequence numbers count per function.
        gathering.add(rank, number * _MAX_FUNCTIONS + function, seconds * 1e-6)
        metadata = record.get("metadata")
        host = metadata.get("hostname") if isinstance(metadata, dict) else None
        gathering.place(rank, str(host)[:_TEXT] if host else None, None, None)
        return True

    def _function(self, name: str) -> int | None:
        """The number of a collective function; ``None`` where there are too many."""
        if name not in self._functions and len(self._functions) >= _MAX_FUNCTIONS:
            return None
        return self._functions.setdefault(name, len(self._functions))

    def chosen(self, wanted: str | None) -> tuple[str, Gathering] | None:
        """The largest communicator, or the ``wanted`` one; raises :class:`UsageError`."""
        if wanted is not None:
            if wanted not in self._by_id:
                some = visible(", ".join(list(self._by_id)[:5]) or "none")
                raise UsageError(f"no communicator '{visible(wanted)}'; there are: {some}")
            return wanted, self._by_id[wanted]
        if not self._by_id:
            return None
        name = max(self._by_id, key=lambda one: (self._ranks[one], len(self._by_id[one])))
        return name, self._by_id[name]

    def __len__(self) -> int:
        return len(self._by_id)


def _text(record: Mapping[str, Any], name: str | None) -> str | None:
    value = None if name is None else record.get(name)
    return None if value is None else str(value)[:_TEXT]
