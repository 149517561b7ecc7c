"""How large messages are and how often they are sent, so that a pair takes the time planned."""

from dataclasses import dataclass
from typing import Final

from ncdiag.measure.engines.base import Timing

# Bytes that cross a NIC in each direction, of a message's bytes, with two ranks: what nccl-tests
# calls bus bandwidth over algorithm bandwidth (its PERFORMANCE.md).
WIRE_SHARE: Final = {"sendrecv": 1.0, "all_reduce": 1.0, "alltoall": 0.5}
# Each size is run out of place and in place.
_HALVES = 2
_ITERATIONS = 20
# Enough for a median where a link's rate is not known, and messages are large for safety.
_FEW_ITERATIONS = 8
_UNKNOWN_BYTES = 64 << 20
# Above the first, the time of a message is that of its bytes at any rate worth measuring; the
# second times three buffers fits into any GPU.
_MIN_BYTES = 1 << 20
_MAX_BYTES = 1 << 30
# --max-bytes may go below that, down to a length where nothing but latency would be measured.
_LEAST_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Shape:
    """Two sizes, ``size_bytes`` and half of it, each ``iterations`` times and as often in place."""

    size_bytes: int
    iterations: int
    warmups: int

    @property
    def sizes_bytes(self) -> tuple[int, int]:
        """The sizes, the smaller first."""
        return self.size_bytes // 2, self.size_bytes

    def timed_bytes(self, pair_test: str) -> int:
        """What must cross each NIC in each direction while time is taken; more does."""
        messages = _HALVES * self.iterations * sum(self.sizes_bytes)
        return int(messages * WIRE_SHARE[pair_test])


def shape_for(pair_test: str, rate_gbit_per_s: float | None, timing: Timing) -> Shape:
    """What fits into ``timing`` at this rate; both directions are measured at the same time."""
    iterations = _ITERATIONS if rate_gbit_per_s else _FEW_ITERATIONS
    # Of all messages together those of the full size are two thirds.
    of_full_size = _HALVES * iterations * 1.5 * WIRE_SHARE[pair_test]
    size = _UNKNOWN_BYTES
    if rate_gbit_per_s:
        wanted = rate_gbit_per_s * 1.25e8 * 2 * timing.measure_s / of_full_size
        size = min(max(_power_of_two(wanted), _MIN_BYTES), _MAX_BYTES)
    if timing.max_bytes is not None:
        most = _power_of_two(2 * timing.max_bytes / of_full_size)
        size = max(min(size, most), _LEAST_BYTES)
    share = timing.warmup_s / timing.measure_s
    return Shape(size, iterations, max(1, round(share * iterations)))


def arguments(shape: Shape, options: frozenset[str], timeout_s: float) -> tuple[str, ...]:
    """The program's arguments; ``options`` are those that it knows on every host.

    Data are checked, and the slowest process's time counts where the program can tell.
    """
    small, large = shape.sizes_bytes
    wanted = {
        "b": str(small),
        "e": str(large),
        "f": "2",
        "n": str(shape.iterations),
        "w": str(shape.warmups),
        "g": "1",
        "c": "1",
        "a": "3",
        "I": "1",
        "T": f"{timeout_s:.0f}",
    }
    return tuple(
        word for letter, value in wanted.items() if letter in options
        for word in (f"-{letter}", value)
    )  # fmt: skip


def _power_of_two(number: float) -> int:
    return 1 << max(0, int(number).bit_length() - 1)
