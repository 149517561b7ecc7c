"""Counts line feeds, which in a large log takes as long as finding the lines that matter."""

from collections.abc import Callable

# Below this the import of numpy takes longer than it saves.
_LARGE_BYTES = 256 << 20
# For a shorter part numpy's preparations take longer than counting.
_SHORT_BYTES = 4096

Count = Callable[[bytearray, int, int], int]


def newlines(size: int | None) -> Count:
    """How to count the line feeds of ``buffer[start:stop]`` in an input of ``size`` bytes."""
    if size is None or size < _LARGE_BYTES:
        return _plainly
    try:
        import numpy as np
    except ImportError:
        return _plainly

    def count(buffer: bytearray, start: int, stop: int) -> int:
        if stop - start < _SHORT_BYTES:
            return buffer.count(b"\n", start, stop)
        part = np.frombuffer(buffer, np.uint8, stop - start, start)
        return int(np.count_nonzero(part == ord("\n")))

    return count


def _plainly(buffer: bytearray, start: int, stop: int) -> int:
    return buffer.count(b"\n", start, stop)
