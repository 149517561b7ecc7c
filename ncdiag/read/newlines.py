"""Counts line feeds, which in a large log takes as long as finding the lines that matter."""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Below this the import of numpy takes longer than it saves.
_LARGE_BYTES = 256 << 20
# For a shorter part numpy's preparations take longer than counting.
_SHORT_BYTES = 4096
_LINE_FEED = ord("\n")
# Threads of numpy's algebra, which nothing here uses, would take time from those who read.
_THREADS = "OPENBLAS_NUM_THREADS"

Count = Callable[[bytearray, int, int], int]


def newlines(size: int | None) -> Count:
    """How to count the line feeds of ``buffer[start:stop]`` in an input of ``size`` bytes."""
    if size is None or size < _LARGE_BYTES:
        return _plainly
    try:
        np = _numpy()
    except ImportError:
        return _plainly
    known, view = bytearray(), np.frombuffer(b"", np.uint8)

    def count(buffer: bytearray, start: int, stop: int) -> int:
        nonlocal known, view
        if stop - start < _SHORT_BYTES:
            return buffer.count(b"\n", start, stop)
        if buffer is not known:
            known, view = buffer, np.frombuffer(buffer, np.uint8)
        return int(np.count_nonzero(view[start:stop] == _LINE_FEED))

    return count


def _numpy() -> Any:
    """The module, without threads if it is loaded here."""
    asked = _THREADS in os.environ
    os.environ.setdefault(_THREADS, "1")
    try:
        return import_module("numpy")
    finally:
        if not asked:
            del os.environ[_THREADS]


def _plainly(buffer: bytearray, start: int, stop: int) -> int:
    return buffer.count(b"\n", start, stop)
