"""Cuts a stream into blocks of whole lines in one reused buffer, whatever the stream holds."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

# What was read last is still in the processor's cache when it is looked through.
BLOCK_BYTES = 1 << 20
# What is kept of a longer line. A terminal's progress bar is one line of many carriage returns:
# each of its parts counts as a line here, under the same number.
LINE_LIMIT = 64 << 10
# Held over to the next block, so that the last block of a long input has lines to show.
_HELD_BACK = 32 << 10


class Stream(Protocol):
    """Gives bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...  # noqa: D102


class Block(NamedTuple):
    """``buffer[:size]``, valid until the next block: whole lines, unless it is the last."""

    buffer: bytearray
    size: int
    last: bool


def blocks(stream: Stream, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """All of ``stream``, without what lines longer than a block have too much."""
    buffer = bytearray(block_bytes)
    filled = 0
    while True:
        filled, ended = _fill(stream, buffer, filled)
        if ended:
            yield Block(buffer, filled, last=True)
            return
        cut = _cut(buffer, filled)
        if cut:
            yield Block(buffer, cut, last=False)
            buffer[: filled - cut] = buffer[cut:filled]
            filled -= cut
        else:  # one line fills the buffer: keep its beginning, but for what a cut log left of zeros
            kept = buffer[:filled].lstrip(b"\0")[: min(LINE_LIMIT, block_bytes // 2)]
            filled = len(kept)
            buffer[:filled] = kept


def _fill(stream: Stream, buffer: bytearray, filled: int) -> tuple[int, bool]:
    """Read until the buffer is full or the stream ends: (bytes in it, whether it ended)."""
    with memoryview(buffer) as view:
        while filled < len(buffer):
            with view[filled:] as free:
                count = stream.readinto(free)
            if not count:
                return filled, True
            filled += count
    return filled, False


def _cut(buffer: bytearray, filled: int) -> int:
    """Where a full buffer can be cut: behind a line end, best before what is held back."""
    early = max(filled - _HELD_BACK, filled // 2)
    for end in (b"\n", b"\r"):
        for before in (early, filled):
            if cut := buffer.rfind(end, 0, before) + 1:
                return cut
    return 0
