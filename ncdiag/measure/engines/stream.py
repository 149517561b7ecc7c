"""One direction of a pair: a stream of numbered chunks whose content is known on both sides.

Each chunk begins with a header that holds its number and the size of the chunk ``IN_FLIGHT``
later, nothing after the last one. So the receiver has always posted what comes next, sizes can
change while chunks are under way, and both sides know the end without a word besides.
"""

import random
import time
from collections import deque
from functools import cache
from itertools import count
from typing import Generic, Protocol, TypeVar

from ncdiag.health.cpu import read_cpu_times
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.halves import Received, Sent
from ncdiag.measure.engines.windows import FIRST_CHUNK_BYTES, Pace, Windows

# gloo sends a chunk only once the receiver has posted it: with one in flight the wire is idle in
# between (3 per cent at chunks of 4 MiB).
IN_FLIGHT = 2
# One more, so that a chunk can be looked at while two are under way.
SLOTS = IN_FLIGHT + 1
HEADER_BYTES = 8
# Comparing payload costs about a tenth of a core at 1 Gbit/s. On a fast link, chunks are skipped
# (their headers are not) once it has used this share of the time.
_CHECK_SHARE = 0.2
# Patterns of the slots begin at multiples of this, which is no multiple of a page.
STRIDE_BYTES = 4096 + 64
_SEED = 20_260_101


class DamagedError(Exception):
    """What arrived is not what was sent."""


class StalledError(Exception):
    """Nothing moved for longer than a transfer may pause."""


class PeerLostError(Exception):
    """The connection to the other side failed; the message is the reason in one line."""


class Pending(Protocol):
    """A chunk under way."""

    def wait(self) -> None:
        """Return when it is complete; raise StalledError or PeerLostError."""
        ...


Chunk = TypeVar("Chunk")
Chunk_contra = TypeVar("Chunk_contra", contravariant=True)


class Channel(Protocol[Chunk_contra]):
    """A connection to one peer that keeps chunks in order."""

    max_chunk_bytes: int

    def send(self, chunk: Chunk_contra) -> Pending:
        """Begin to send."""
        ...

    def receive(self, chunk: Chunk_contra) -> Pending:
        """Begin to receive into ``chunk``, which is as long as what was sent."""
        ...

    def close(self) -> None:
        """Drop the connection, whatever its state."""
        ...


class Memory(Protocol[Chunk]):
    """``SLOTS`` buffers for chunks, which take turns, and what their content should be.

    ``token`` is memory of ``HEADER_BYTES`` besides, for greetings.
    """

    token: Chunk

    def restart(self) -> None:
        """Forget what the slots hold."""
        ...

    def slot(self, number: int, size_bytes: int) -> Chunk:
        """The memory of chunk ``number``."""
        ...

    def fill(self, number: int, size_bytes: int, header: int, *, forward: bool) -> None:
        """Write a chunk into its slot: the header, and what the slot does not hold already."""
        ...

    def header(self, number: int) -> int:
        """The header of the chunk that lies in the slot of ``number``."""
        ...

    def is_as_sent(self, number: int, size_bytes: int, *, forward: bool) -> bool:
        """Whether a slot holds, behind the header, exactly what ``fill`` writes."""
        ...


def pattern(max_chunk_bytes: int) -> bytearray:
    """The content that slots of ``max_chunk_bytes`` are filled from, the same on every host."""
    length = max_chunk_bytes + 2 * SLOTS * STRIDE_BYTES
    # The same numbers wherever Python runs: the Mersenne Twister is specified.
    return bytearray(random.Random(_SEED).randbytes(length))  # noqa: S311 - a test pattern


def pattern_offset(number: int, *, forward: bool) -> int:
    """Where in the pattern the content of a chunk begins; it differs by direction and slot."""
    return STRIDE_BYTES * (SLOTS * forward + number % SLOTS)


class Stream(Generic[Chunk]):
    """One direction; ``forward`` is from the pair's first to its second."""

    def __init__(
        self, channel: Channel[Chunk], memory: Memory[Chunk], timing: Timing, *, forward: bool
    ) -> None:
        self._channel, self._memory, self._forward = channel, memory, forward
        self._windows, self._pace = Windows(timing), Pace(channel.max_chunk_bytes)
        self._under_way: deque[tuple[Pending, int]] = deque()
        self._cpu_before = read_cpu_times()
        self._began_s, self._checking_s = time.monotonic(), 0.0

    def send(self) -> Sent:
        """Send until time or bytes are used up; raises StalledError or PeerLostError."""
        announced = deque([FIRST_CHUNK_BYTES] * IN_FLIGHT)
        self._memory.restart()
        for number in count():
            if len(self._under_way) == IN_FLIGHT:
                self._finish_oldest()
            if not announced:
                break
            size = announced.popleft()
            # What was announced is sent, but once it is enough nothing more is announced.
            enough = self._windows.enough(time.monotonic())
            following = 0 if enough else self._pace.chunk_bytes
            if following:
                announced.append(following)
            header = _header(number, following)
            self._memory.fill(number, size, header, forward=self._forward)
            work = self._channel.send(self._memory.slot(number, size))
            self._under_way.append((work, size))
        while self._under_way:
            self._finish_oldest()
        return Sent(payload_bytes=self._windows.payload_bytes, idle=self._idle())

    def receive(self) -> Received:
        """Receive to the end; raises DamagedError, StalledError or PeerLostError."""
        for number in range(IN_FLIGHT):
            self._post(number, FIRST_CHUNK_BYTES)
        for number in count():
            if not self._under_way:
                break
            size = self._finish_oldest()
            found, following = _read_header(self._memory.header(number))
            if found != number or following not in _sizes(self._channel.max_chunk_bytes):
                raise DamagedError("payload arrived damaged: a chunk is not the one expected")
            if following:
                self._post(number + IN_FLIGHT, following)
            self._check(number, size)
        return self._windows.result(self._idle())

    def _post(self, number: int, size: int) -> None:
        work = self._channel.receive(self._memory.slot(number, size))
        self._under_way.append((work, size))

    def _finish_oldest(self) -> int:
        work, size = self._under_way.popleft()
        work.wait()
        now_s = time.monotonic()
        self._windows.add(now_s, size)
        self._pace.add(now_s, size)
        return size

    def _check(self, number: int, size: int) -> None:
        """Compare a chunk with what it should be, unless that has taken too long already."""
        begin_s = time.monotonic()
        if self._checking_s > _CHECK_SHARE * (begin_s - self._began_s):
            return
        if not self._memory.is_as_sent(number, size, forward=self._forward):
            raise DamagedError("payload arrived damaged")
        self._checking_s += time.monotonic() - begin_s

    def _idle(self) -> float | None:
        return read_cpu_times().idle_share_since(self._cpu_before)


def _header(number: int, following_bytes: int) -> int:
    """Number and following size, which is a power of two or nothing, in 64 bits."""
    return number << 8 | following_bytes.bit_length()


def _read_header(value: int) -> tuple[int, int]:
    exponent = value & 0xFF
    return value >> 8, 1 << (exponent - 1) if exponent else 0


@cache
def _sizes(most: int) -> frozenset[int]:
    """What a header may announce: nothing, or a power of two within limits."""
    least = FIRST_CHUNK_BYTES.bit_length()
    return frozenset({0, *(1 << power - 1 for power in range(least, most.bit_length() + 1))})


def greet(channel: Channel[Chunk], token: Chunk, *, first: bool) -> None:
    """Return when the other side has come this far too; raises StalledError or PeerLostError."""
    for sending in (first, not first):
        (channel.send(token) if sending else channel.receive(token)).wait()
