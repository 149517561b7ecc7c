"""Reads one input, or a piece of one, from opening to evidence."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ncdiag.logs.decompress import DamagedError
from ncdiag.logs.opening import Careful, Descriptor, Opened, Peeked, opened
from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.read.blocks import BLOCK_BYTES, blocks
from ncdiag.read.depth import depth
from ncdiag.read.dialects import document
from ncdiag.read.document import HEAD_BYTES, Document
from ncdiag.read.log_reader import LogReader
from ncdiag.read.selection import Selection

# A document is read as a whole; no dump of a rank and no report is larger.
MAX_DOCUMENT_BYTES = 256 << 20
_CHUNK = 1 << 20
# By which a buffer is larger than a small input on disk, for what it is when unpacked.
_SPARE_BYTES = 1 << 20


class Job(NamedTuple):
    """An input to read, ``among`` so many, or its bytes from ``start`` to ``stop``."""

    path: str
    name: str
    every_line: bool
    max_bytes: int
    size: int | None = None
    start: int = 0
    stop: int | None = None
    among: int = 1

    @property
    def is_piece(self) -> bool:
        """Whether there are others of the same input."""
        return self.start > 0 or self.stop is not None


def read_input(
    job: Job, told: Callable[[int], None] | None = None, ready: Opened | None = None
) -> LogEvidence:
    """What the input says; ``told`` is called with the bytes read from disk since the last call.

    ``ready`` is the stream when it is open already. Never raises for what an input holds or how it
    breaks off: its summary says what went wrong.
    """
    try:
        if ready is not None:
            return _read_stream(job, ready, lambda: 0, told)
        with open_input(job) as raw:
            stream: Opened = raw
            if not job.start:
                stream, _ = opened(raw)
            return _read_stream(job, stream, lambda: raw.done, told)
    except (OSError, DamagedError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return LogEvidence(inputs=[InputSummary(path=job.name, error=why)])


@contextmanager
def open_input(job: Job) -> Iterator[Descriptor]:
    """The input's bytes, not beyond the end it had when it was listed, for it may be growing."""
    number = os.open(job.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        stop = job.size if job.stop is None else job.stop
        if job.start:
            os.lseek(number, job.start, os.SEEK_SET)
        yield Descriptor(number, None if stop is None else max(stop - job.start, 0))
    finally:
        os.close(number)


def _read_stream(
    job: Job, stream: Opened, done: Callable[[], int], told: Callable[[int], None] | None
) -> LogEvidence:
    careful = Careful(stream, job.max_bytes)
    if not job.start:
        peeked = Peeked(careful, HEAD_BYTES)
        if found := document(peeked.head, job.name):
            return _read_document(job, found, peeked, careful)
        reading: Opened = peeked
    else:
        reading = careful
    reader = LogReader(job.name, brief=not job.every_line)
    length = job.size if job.stop is None else job.stop - job.start
    selection = Selection(
        reader,
        every_line=job.every_line,
        size=length,
        begins=not job.start,
        ends=job.stop is None or job.stop == job.size,
        depth=depth(job.among),
    )
    before = 0
    room = BLOCK_BYTES if length is None else min(BLOCK_BYTES, length + _SPARE_BYTES)
    for block in blocks(reading, room):
        selection.read(block)
        if told and done() != before:
            told(done() - before)
            before = done()
    evidence = reader.finish()
    summary = evidence.inputs[0]
    summary.bytes, summary.lines = careful.bytes, selection.lines
    summary.truncated, summary.error = careful.truncated, careful.error
    return evidence


def _read_document(job: Job, found: Document, stream: Opened, careful: Careful) -> LogEvidence:
    evidence = LogEvidence()
    summary = InputSummary(path=job.name, kinds=[found.kind])
    chunk = bytearray(_CHUNK)
    with memoryview(chunk) as view:
        while summary.bytes < MAX_DOCUMENT_BYTES and (count := stream.readinto(view)):
            found.feed(bytes(view[:count]))
            summary.bytes += count
            summary.lines += chunk.count(b"\n", 0, count)
        more = summary.bytes >= MAX_DOCUMENT_BYTES and stream.readinto(view) > 0
    found.finish(evidence)
    summary.truncated = found.truncated or careful.truncated or more
    summary.error = careful.error or found.error
    evidence.inputs.append(summary)
    return evidence
