"""Decides how inputs are read: streams here, small files in batches, large ones in pieces."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncdiag.logs.decompress import DamagedError
from ncdiag.logs.opening import Descriptor, Opened, Peeked, opened
from ncdiag.logs.read_input import Job, open_input
from ncdiag.logs.sources import STDIN, Source
from ncdiag.read.dialects import document
from ncdiag.read.document import HEAD_BYTES

# Every line is read when all inputs together are no larger.
CAREFUL_BYTES = 4 << 20
# Larger plain files are read in pieces, one a process.
_PIECE_BYTES = 64 << 20
_BATCH_BYTES = 8 << 20
_BATCH_FILES = 256
# How far behind an even share a line end is looked for.
_CUT_SEARCH_BYTES = 16 << 20
_CUT_CHUNK = 64 << 10
# The first piece is smaller by what its calls and facts cost to read, and by the time that its
# evidence takes from one process to another; by no more than this part of the file.
_FIRST_PIECE_LESS = 160 << 20
_FIRST_PIECE_PART = 4


@dataclass(slots=True)
class Input:
    """An input's job; ``stream`` is open already where only this process can read it."""

    job: Job
    stream: Opened | None = None
    error: str | None = None


def inputs_of(found: Sequence[Source], max_bytes: int) -> list[Input]:
    """How to read each source, every line of it if all of them together are small."""
    inputs = [_input(source, max_bytes, len(found)) for source in found]
    left = CAREFUL_BYTES - sum(source.size or 0 for source in found)
    for one in inputs if left >= 0 else ():
        left -= _more_text(one, left)
        if left < 0:
            break
    for one in inputs if left >= 0 else ():
        one.job = one.job._replace(every_line=True)
    return inputs


def _input(source: Source, max_bytes: int, among: int) -> Input:
    job = Job(
        source.path,
        source.name,
        every_line=False,
        max_bytes=max_bytes,
        size=source.size,
        among=among,
    )
    one = Input(job, error=source.error)
    if source.error is None and source.size is None:
        try:
            stream, _ = opened(Descriptor(open_stream(source.path)))
            one.stream = Peeked(stream, CAREFUL_BYTES + 1)
        except (OSError, DamagedError) as error:
            one.error = getattr(error, "strerror", None) or str(error)
    return one


def open_stream(path: str) -> int:
    """The descriptor of standard input or of a named pipe."""
    return os.dup(0) if path == STDIN else os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _more_text(one: Input, left: int) -> int:
    """How many bytes of text the input holds beyond its size on disk, counted up to ``left``."""
    if one.error:
        return 0
    if isinstance(one.stream, Peeked):
        return len(one.stream.head)
    try:
        with open_input(one.job) as raw:
            stream, packed = opened(raw)
            return len(Peeked(stream, left + 1).head) if packed else 0
    except (OSError, DamagedError):
        return 0


def batches_of(inputs: Sequence[Input], processes: int) -> list[list[Job]]:
    """The files in their order: small ones together, large ones cut, for ``processes``."""
    batches: list[list[Job]] = []
    room = files = 0
    for one in inputs:
        if one.error or one.stream:
            continue
        size = one.job.size or 0
        pieces = list(_pieces(one.job, processes))
        if len(pieces) > 1 or size > room or files == 0:
            batches += [[piece] for piece in pieces]
            room, files = _BATCH_BYTES - size, _BATCH_FILES - 1
            if len(pieces) > 1:
                room = files = 0
        else:
            batches[-1].append(one.job)
            room, files = room - size, files - 1
    return batches


def _pieces(job: Job, processes: int) -> Iterator[Job]:
    """``job``, or parts of it that begin and end with lines."""
    size = job.size or 0
    count = min(processes, size // _PIECE_BYTES)
    if count < 2 or size > job.max_bytes or not _can_be_cut(job):
        yield job
        return
    less = min(_FIRST_PIECE_LESS, size // _FIRST_PIECE_PART)
    share = (size + less) // count
    start = 0
    for nth in range(1, count):
        stop = _line_start(job.path, share * nth - less)
        if stop is not None and stop > start:
            yield job._replace(start=start, stop=stop)
            start = stop
    yield job._replace(start=start, stop=size)


def _can_be_cut(job: Job) -> bool:
    """Whether the file is plain lines."""
    try:
        with open_input(job) as raw:
            stream, packed = opened(raw)
            return not packed and document(Peeked(stream, HEAD_BYTES).head, job.name) is None
    except (OSError, DamagedError):
        return False


def _line_start(path: str, offset: int) -> int | None:
    """Where the first line behind ``offset`` begins; ``None`` if it is too far."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a raw file
        for at in range(offset, offset + _CUT_SEARCH_BYTES, _CUT_CHUNK):
            chunk = os.pread(file.fileno(), _CUT_CHUNK, at)
            if (end := chunk.find(b"\n")) >= 0:
                return at + end + 1
    return None
