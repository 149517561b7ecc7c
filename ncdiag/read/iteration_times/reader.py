"""Reads times as bytes come, whichever of the known tables they are."""

import codecs
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import IterationTable, TimeKind
from ncdiag.read.iteration_times.gather import Gathering, Room
from ncdiag.read.iteration_times.objects import Communicators, Objects
from ncdiag.read.iteration_times.rows import Rows, is_header

# 16,384 ranks, each with a column of up to 60 characters.
MAX_LINE_CHARS: Final = 1 << 20


class TimesReader:
    """Takes one or several files, each ended by ``end_file``; then ``table`` has what they hold.

    ``column`` and ``communicator`` choose where a file has several. Lines that say nothing are
    counted; one with nothing else is refused when all are read.
    """

    def __init__(self, column: str | None = None, communicator: str | None = None) -> None:
        self._column = column
        self._communicator = communicator
        room = Room()
        self._gathering = Gathering(room)
        self._communicators = Communicators(room)
        self._names: list[str] = []
        self._unknown = 0
        self._kinds: set[TimeKind] = set()
        self._no_unit: set[str] = set()
        self._rest = ""
        self._at_start = True
        self._begin()

    @property
    def kind(self) -> TimeKind:
        """What was timed, as names of columns and formats tell; whole iterations in doubt."""
        return next(iter(self._kinds)) if len(self._kinds) == 1 else TimeKind.ITERATION

    def feed(self, chunk: bytes) -> None:
        """Read some more; raises :class:`UsageError` for a table without ranks or times."""
        if self._at_start and chunk:
            self._at_start = False
            if chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        self._rest += self._decoder.decode(chunk)
        *lines, self._rest = self._rest.split("\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > MAX_LINE_CHARS:
            self._rest, self._skipping = "", True

    def end_file(self, name: str) -> None:
        """Read the last line of a file, and be ready for another."""
        self._rest += self._decoder.decode(b"", final=True)
        self._line(self._rest)
        self._names.append(name)
        if self._reading:
            self._kinds.add(self._reading.kind)
            columns = self._reading.columns
            if columns and not columns.unit_known:
                self._no_unit.add(columns.time)
        self._begin()

    def table(self) -> IterationTable:
        """Everything that was read; raises :class:`UsageError` where that is nothing."""
        source = ", ".join(self._names[:3]) + (" ..." if len(self._names) > 3 else "")
        notes = []
        if self._unknown:
            notes.append(f"{self._unknown:,} lines hold no time of a rank")
        notes += [f"{name} tells no unit; taken for seconds" for name in sorted(self._no_unit)]
        gathering = self._gathering
        if chosen := self._communicators.chosen(self._communicator):
            communicator, collectives = chosen
            if not gathering or self._communicator is not None:
                gathering = collectives
                if len(self._communicators) > 1:
                    notes.append(
                        f"communicator {communicator} of {len(self._communicators)}; "
                        "--communicator chooses another"
                    )
        if not gathering:
            raise UsageError(
                f"{source}: no times of ranks; a CSV file with columns rank, iteration and "
                "compute_time_ms, JSON lines with these keys, or files of NCCL Inspector"
            )
        return gathering.table(source, tuple(notes))

    def _begin(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._rest = ""
        self._at_start = True
        self._skipping = False
        self._reading: Rows | Objects | None = None

    def _line(self, line: str) -> None:
        if self._skipping:  # the end of a line that was too long
            self._skipping = False
            self._unknown += 1
            return
        line = line.strip("\r\0 ")
        if not line or line.startswith("#"):
            return
        if len(line) > MAX_LINE_CHARS:
            self._unknown += 1
        elif self._reading is None:
            self._first(line)
        elif not self._reading.read(line):
            self._unknown += 1

    def _first(self, line: str) -> None:
        if line.startswith("{"):
            reading = Objects(self._column, self._gathering, self._communicators)
            if reading.read(line):
                self._reading = reading
            else:
                # What a program says before its first record, or a record that was torn.
                self._unknown += 1
                self._reading = reading if reading.columns or reading.inspector else None
        elif is_header(line):
            self._reading = Rows(line, self._column, self._gathering)
        else:
            raise UsageError(
                "the first line must name the columns, such as rank,iteration,compute_time_ms"
            )
