"""Buffers in host memory for the stream of chunks, by numpy, and in GPU memory by torch."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncdiag.measure.engines.stream import HEADER_BYTES, SLOTS, Memory, pattern, pattern_offset

if TYPE_CHECKING:
    import torch

Bytes = NDArray[np.uint8]


class HostMemory:
    """Buffers and the expected content for transfers, made once and used for every pair."""

    def __init__(self, max_chunk_bytes: int) -> None:
        self._pattern = _pattern(max_chunk_bytes)
        self._slots = [np.empty(max_chunk_bytes, dtype=np.uint8) for _ in range(SLOTS)]
        self.token: Bytes = np.zeros(HEADER_BYTES, dtype=np.uint8)
        self.restart()

    def give_up(self, chunks: Iterable[Bytes]) -> None:
        """Use none of ``chunks`` any more, and other memory in their place."""
        for chunk in chunks:
            if np.may_share_memory(chunk, self.token):
                self.token = np.zeros_like(self.token)
            for index, slot in enumerate(self._slots):
                if np.may_share_memory(chunk, slot):
                    self._slots[index] = np.empty_like(slot)
        self.restart()

    def restart(self) -> None:
        """Forget what the slots hold."""
        self._filled = [HEADER_BYTES] * SLOTS

    def slot(self, number: int, size_bytes: int) -> Bytes:
        """The memory of chunk ``number``."""
        return self._slots[number % SLOTS][:size_bytes]

    def fill(self, number: int, size_bytes: int, header: int, *, forward: bool) -> None:
        """Write a chunk into its slot: the header, and what the slot does not hold already."""
        index = number % SLOTS
        filled = self._filled[index]
        if size_bytes > filled:
            missing = self._expected(number, filled, size_bytes, forward=forward)
            self._slots[index][filled:size_bytes] = missing
            self._filled[index] = size_bytes
        self._header(index)[0] = header

    def header(self, number: int) -> int:
        """The header of the chunk that lies in the slot of ``number``."""
        return int(self._header(number % SLOTS)[0])

    def is_as_sent(self, number: int, size_bytes: int, *, forward: bool) -> bool:
        """Whether a slot holds, behind the header, exactly what ``fill`` writes."""
        expected = self._expected(number, HEADER_BYTES, size_bytes, forward=forward)
        found = self.slot(number, size_bytes)[HEADER_BYTES:]
        return np.array_equal(found.view(np.int64), expected.view(np.int64))

    def _header(self, index: int) -> NDArray[np.int64]:
        return self._slots[index][:HEADER_BYTES].view(np.int64)

    def _expected(self, number: int, start: int, end: int, *, forward: bool) -> Bytes:
        offset = pattern_offset(number, forward=forward)
        return self._pattern[offset + start : offset + end]


@cache
def _pattern(max_chunk_bytes: int) -> Bytes:
    return np.frombuffer(pattern(max_chunk_bytes), dtype=np.uint8)


def gpu_memory(max_chunk_bytes: int) -> "Memory[torch.Tensor]":
    """The same in the memory of the one GPU that this process sees."""
    import torch

    from ncdiag.measure.engines.torch.memory import TensorMemory

    class GpuMemory(TensorMemory):
        def fill(self, *place: Any, forward: bool) -> None:
            super().fill(*place, forward=forward)
            # MPI knows nothing of torch's stream, and would send what is not written yet.
            torch.cuda.synchronize()

    return GpuMemory(max_chunk_bytes, torch.device("cuda", 0))
