"""The append-only journal of a sweep: what ``--resume`` and every report are made from.

One JSON object a line, told apart by ``kind``: first a ``plan``, then ``host`` lines (who came up,
who did not, who was lost), a ``direction`` line per measured direction, and ``end`` lines. A line
is never changed; of two lines about one host the later one holds.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from ncdiag.measure.engines.base import Timing
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.measurement import Measurement

JOURNAL_NAME = "journal.jsonl"
SCHEMA = "ncdiag/journal/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the sweep set out to do; the first line of a journal."""

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
        raise msgspec.DecodeError(f"unknown kind {kind!r}")
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
        """Write ``lines`` in one piece, so that a killed driver tears none of them apart."""
        data = b"".join(_encode(line) for line in lines)
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
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
        with path.open("rb") as file:
            lines = list(_decode_all(file, path))
    except OSError as error:
        raise UsageError(f"no sweep to read in {directory}: {path}: {error.strerror}") from error
    if not lines or not isinstance(lines[0], Plan):
        raise UsageError(f"{path} does not begin with the plan of a sweep")
    if lines[0].schema != SCHEMA:
        raise UsageError(f"{path} is of schema {lines[0].schema!r}; this ncdiag reads {SCHEMA}")
    return lines


def _decode_all(file: Iterable[bytes], path: Path) -> Iterator[Line]:
    for number, raw in enumerate(file, start=1):
        if not raw.endswith(b"\n"):
            return
        try:
            yield _decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}, line {number} is damaged: {error}") from error


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
