"""Buffers of torch, in a GPU or in host memory, for the stream of chunks."""

import torch

from ncdiag.measure.engines.stream import HEADER_BYTES, SLOTS, pattern, pattern_offset


class TensorMemory:
    """Buffers and the expected content for transfers, made once and used for every pair."""

    def __init__(self, max_chunk_bytes: int, device: torch.device) -> None:
        self._pattern = torch.frombuffer(pattern(max_chunk_bytes), dtype=torch.uint8).to(device)
        self._slots = [
            torch.empty(max_chunk_bytes, dtype=torch.uint8, device=device) for _ in range(SLOTS)
        ]
        self._headers = [slot[:HEADER_BYTES].view(torch.int64) for slot in self._slots]
        self._filled = [HEADER_BYTES] * SLOTS
        self.token = torch.zeros(HEADER_BYTES, dtype=torch.uint8, device=device)

    def restart(self) -> None:
        """Forget what the slots hold."""
        self._filled = [HEADER_BYTES] * SLOTS

    def slot(self, number: int, size_bytes: int) -> torch.Tensor:
        """The memory of chunk ``number``."""
        return self._slots[number % SLOTS][:size_bytes]

    def expected(self, number: int, start: int, end: int, *, forward: bool) -> torch.Tensor:
        """The content of a chunk between two of its bytes; it differs by direction and slot."""
        offset = pattern_offset(number, forward=forward)
        return self._pattern[offset + start : offset + end]

    def fill(self, number: int, size_bytes: int, header: int, *, forward: bool) -> None:
        """Write a chunk into its slot: the header, and what the slot does not hold already."""
        index = number % SLOTS
        filled = self._filled[index]
        if size_bytes > filled:
            missing = self.expected(number, filled, size_bytes, forward=forward)
            self._slots[index][filled:size_bytes].copy_(missing)
            self._filled[index] = size_bytes
        self._headers[index][0] = header

    def header(self, number: int) -> int:
        """The header of the chunk that lies in the slot of ``number``."""
        return int(self._headers[number % SLOTS].item())

    def is_as_sent(self, number: int, size_bytes: int, *, forward: bool) -> bool:
        """Whether a slot holds, behind the header, exactly what ``fill`` writes."""
        expected = self.expected(number, HEADER_BYTES, size_bytes, forward=forward)
        # Compared in words: torch looks at one element at a time, of whatever size.
        found = self.slot(number, size_bytes)[HEADER_BYTES:]
        return torch.equal(found.view(torch.int64), expected.view(torch.int64))
