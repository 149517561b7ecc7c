"""The append-only journal of a sweep: what ``--resume`` and every report are made from.

One JSON object a line, told apart by ``kind``: first a ``plan``, then ``host`` lines (who came up,
who did not, who was lost), a ``direction`` line per measured direction, and ``end`` lines. A line
is never changed; of two lines about one host the later one holds.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import msgspec

from ncdiag.cluster.names import shown
from ncdiag.measure.engines.base import EngineSettings, Timing
from ncdiag.measure.plausible import check_plausible
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host, HostDump, HostFacts
from ncdiag.model.measurement import Measurement

JOURNAL_NAME = "journal.jsonl"
SCHEMA = "ncdiag/journal/1"
IMPORTED: Final = "imported"
MODES: Final = ("full", "quick", IMPORTED)

# The longest line is the plan of 100,000 hosts: 30 MB.
_MAX_LINE_BYTES = 64 * 1024**2
_MAX_COMPLAINT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the sweep set out to do; the first line of a journal.

    ``variables`` are what ``profile`` puts into the environment of what measures. ``rails`` says
    whether the rails of a pair are measured in turn or together.

    Of an ``imported`` plan ``notes`` are lines for the report, ``cut`` says that what was imported
    ended too early, and ``inside`` that its hosts are devices of the host it names.
    """

    schema: str = SCHEMA
    started: str
    hosts: tuple[Host, ...]
    mode: str
    engine: str
    launcher: str
    seed: int
    faulty_below: float
    timing: Timing
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    profile: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    dumps: tuple[HostDump, ...] = ()
    rails: str = "turn"
    engine_settings: EngineSettings = field(default_factory=EngineSettings)
    notes: tuple[str, ...] = ()
    cut: bool = False
    inside: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """A host came up (``facts``) or cannot be measured (``unreachable`` says why)."""

    name: str
    facts: HostFacts | None = None
    unreachable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """A run of the sweep ended after ``seconds``; a resumed sweep has several of these."""

    seconds: float
    interrupted: bool = False


Line = Plan | HostState | Measurement | RunEnd

_KINDS: dict[str, type[Line]] = {
    "plan": Plan,
    "host": HostState,
    "direction": Measurement,
    "end": RunEnd,
}
_KIND_OF = {line_type: kind for kind, line_type in _KINDS.items()}


class _Kind(msgspec.Struct):
    kind: str


_encoder = msgspec.json.Encoder()
_kind_decoder = msgspec.json.Decoder(_Kind)
_decoders = {kind: msgspec.json.Decoder(line_type) for kind, line_type in _KINDS.items()}


def _encode(line: Line) -> bytes:
    return _encoder.encode({"kind": _KIND_OF[type(line)], **msgspec.to_builtins(line)}) + b"\n"


def _decode(raw: bytes) -> Line:
    kind = _kind_decoder.decode(raw).kind
    if kind not in _decoders:
        raise msgspec.DecodeError(f"unknown kind {shown(kind)}")
    return _decoders[kind].decode(raw)


class Journal:
    """The writing end. Lines reach the file at once, and the disk at each :meth:`sync`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL_NAME
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def append(self, lines: Iterable[Line]) -> None:
        """Write ``lines`` in one piece, so that a killed driver tears none of them apart.

        Of lines that do not fit on the disk nothing stays, so that later ones stand on their own.
        """
        data = b"".join(_encode(line) for line in lines)
        end = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, end)
            raise _cannot_write(self._path, error) from error

    def sync(self) -> None:
        """Wait until everything appended is on disk; raises :class:`UndecidedError`."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _cannot_write(path: Path, error: OSError) -> UndecidedError:
    return UndecidedError(f"cannot write {path}: {error.strerror}; what is there can be resumed")


def read_journal(directory: Path) -> list[Line]:
    """All lines of a sweep's journal, the plan first.

    A last line without its end, as a killed driver or a full disk leaves it, is passed over.
    Raises :class:`UsageError` for a missing, foreign or damaged journal.
    """
    path = directory / JOURNAL_NAME
    try:
        with _open_regular(path) as file:
            return list(_checked(_decode_all(file), path))
    except OSError as error:
        raise UsageError(f"no sweep to read in {directory}: {path}: {error.strerror}") from error


def _open_regular(path: Path) -> BinaryIO:
    """Open a file; a pipe or a device, which may never end, is refused without waiting for it."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{path} is no file; the journal of a sweep is one")
    return file


def _decode_all(file: BinaryIO) -> Iterator[Line]:
    while raw := file.readline(_MAX_LINE_BYTES):
        if raw.endswith(b"\n"):
            yield _decode(raw)
        elif len(raw) == _MAX_LINE_BYTES:
            raise UsageError("the line is too long")


def _checked(lines: Iterator[Line], path: Path) -> Iterator[Line]:
    """``lines`` as long as a sweep can have written them; ``path`` and the line's number if not."""
    names: set[str] = set()
    number = 0
    while True:
        number += 1
        try:
            line = next(lines, None)
            if line is None:
                break
            if number == 1:
                names = _planned_names(line)
            else:
                _check_names(line, names)
            check_plausible(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UsageError) as error:
            complaint = f"{error}"[:_MAX_COMPLAINT_CHARS]
            raise UsageError(f"{path}, line {number} is damaged: {complaint}") from error
        yield line
    if not names:
        raise UsageError(f"{path} is empty: it does not begin with the plan of a sweep")


def _planned_names(line: Line) -> set[str]:
    if not isinstance(line, Plan):
        raise UsageError("a journal does not begin with the plan of a sweep")
    if line.schema != SCHEMA:
        raise UsageError(f"it is of schema {shown(line.schema)}; this ncdiag reads {SCHEMA}")
    if line.mode not in MODES:
        raise UsageError(f"unknown mode {shown(line.mode)}")
    names = {host.name for host in line.hosts}
    if len(names) < len(line.hosts):
        raise UsageError("a host stands in the plan twice")
    if len(names) < 2 or "" in names:
        raise UsageError("the plan has fewer than two hosts, or one without a name")
    return names


def _check_names(line: Line, planned: set[str]) -> None:
    match line:
        case Plan():
            raise UsageError("a second plan; a journal has one")
        case HostState(name=name):
            found = {name}
        case Measurement(source=source, target=target):
            found = {source, target}
            if source == target:
                raise UsageError(f"{shown(source)} cannot be measured against itself")
        case _:
            return
    if not found <= planned:
        raise UsageError(f"{shown(min(found - planned))} is not in the plan")


def drop_torn_line(directory: Path) -> None:
    """Cut a last line without its end off the journal, so that new lines stand on their own."""
    path = directory / JOURNAL_NAME
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        position = size
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            end = file.read(position - start).rfind(b"\n")
            if end >= 0:
                position = start + end + 1
                break
            position = start
        if position < size:
            file.truncate(position)
