"""The arithmetic of a transfer: windows of time that become a rate, and the size of chunks."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.halves import Received

# A median of fewer says nothing about how steady a link is.
MIN_WINDOWS = 3
# A slow link is given this much longer to fill its windows; the pair's deadline leaves room for it.
EXTENSION_S = 2.0

# Small enough for a window of 0.13 s at 1 Mbit/s.
FIRST_CHUNK_BYTES = 16 * 1024
# A chunk should last about this long: shorter ones cost a CPU time, longer ones make the end of
# a direction late and its windows coarse.
_CHUNK_S = 0.005
# The rate that chooses a chunk's size is taken over this much of the past.
_MEMORY_S = 0.05
# Chunks double at most this often: what buffers on the way take at once, a token bucket above all,
# passes for a fast link at first. From the first size to 64 MiB it takes the warm-up.
_STEP_S = 0.008


@dataclass(slots=True)
class Windows:
    """Turns completed chunks into windows of equal length, after a warm-up."""

    timing: Timing
    payload_bytes: int = 0
    rates_gbit_per_s: list[float] = field(default_factory=list)
    _began: float | None = None
    _measuring_since: float | None = None
    _window_since: float = 0.0
    _window_bytes: int = 0
    _bytes: int = 0

    def add(self, now_s: float, size_bytes: int) -> None:
        """Count a chunk that was complete at ``now_s``."""
        self.payload_bytes += size_bytes
        if self._began is None:
            self._began = now_s
        if self._measuring_since is None:
            if now_s - self._began >= self.timing.warmup_s:
                self._measuring_since = self._window_since = now_s
            return
        self._window_bytes += size_bytes
        # Ends lie on a grid, so that the length of chunks does not add up and cost a window.
        end_s = self._measuring_since + (len(self.rates_gbit_per_s) + 1) * self.timing.window_s
        if now_s >= end_s and now_s > self._window_since:
            self._close(now_s)

    def _close(self, now_s: float) -> None:
        self.rates_gbit_per_s.append(self._window_bytes * 8e-9 / (now_s - self._window_since))
        self._bytes += self._window_bytes
        self._window_since, self._window_bytes = now_s, 0

    def enough(self, now_s: float) -> bool:
        """Whether time or bytes are used up; a slow link is given longer for its windows."""
        if self._began is None:
            return False
        over_s = now_s - self._began - self.timing.warmup_s - self.timing.measure_s
        if over_s >= EXTENSION_S:
            return True
        most = self.timing.max_bytes
        used_up = over_s >= 0 or (most is not None and self._bytes + self._window_bytes >= most)
        return used_up and len(self.rates_gbit_per_s) >= MIN_WINDOWS

    def result(self, idle: float | None) -> Received:
        """What the target of a direction reports."""
        rates = self.rates_gbit_per_s
        return Received(
            payload_bytes=self.payload_bytes,
            bytes=self._bytes,
            seconds=self._window_since - self._measuring_since if self._measuring_since else 0.0,
            windows=len(rates),
            median_gbit_per_s=median(rates) if rates else None,
            worst_gbit_per_s=min(rates, default=None),
            idle=idle,
        )


@dataclass(slots=True)
class Pace:
    """Chooses sizes of chunks, a power of two each, from the rate of the chunks before."""

    max_chunk_bytes: int
    chunk_bytes: int = FIRST_CHUNK_BYTES
    _done: deque[tuple[float, int]] = field(default_factory=deque)
    _done_bytes: int = 0
    _changed_s: float = 0.0

    def add(self, now_s: float, size_bytes: int) -> None:
        """Count a chunk that was complete at ``now_s``, and choose the size of the next."""
        if not self._done:
            self._changed_s = now_s
        self._done.append((now_s, size_bytes))
        self._done_bytes += size_bytes
        while len(self._done) > 2 and now_s - self._done[1][0] > _MEMORY_S:
            self._done_bytes -= self._done.popleft()[1]
        wanted = self._wanted_bytes()
        if wanted < self.chunk_bytes:
            self.chunk_bytes = max(wanted, FIRST_CHUNK_BYTES)
        elif wanted > self.chunk_bytes and now_s - self._changed_s >= _STEP_S:
            self.chunk_bytes = min(2 * self.chunk_bytes, self.max_chunk_bytes)
            self._changed_s = now_s

    def _wanted_bytes(self) -> int:
        """How much moved lately in the time that a chunk should last."""
        (since_s, first), (now_s, _) = self._done[0], self._done[-1]
        moved = self._done_bytes - first
        return power_of_two(int(moved * _CHUNK_S / max(now_s - since_s, 1e-6)))


def power_of_two(number: int) -> int:
    """The greatest power of two that is not above ``number``, at least 1."""
    return 1 << max(0, number.bit_length() - 1)
