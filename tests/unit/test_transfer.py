"""Windows, chunk sizes and the stream of chunks, over a channel in memory."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.measure.engines import stream
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.halves import Received, Sent
from ncdiag.measure.engines.windows import (
    EXTENSION_S,
    FIRST_CHUNK_BYTES,
    MIN_WINDOWS,
    Pace,
    Windows,
    power_of_two,
)

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

from ncdiag.measure.engines.torch.errors import one_line  # noqa: E402 - it needs torch
from ncdiag.measure.engines.torch.memory import TensorMemory  # noqa: E402

MAX_CHUNK = 64 * 1024
TIMING = Timing(warmup_s=0.01, window_s=0.01, measure_s=0.05)


def steady(timing: Timing, rate_bytes_per_s: float, chunk: int) -> tuple[Windows, float]:
    """Windows after chunks at a constant rate, until it is enough; and the time it took."""
    windows, now_s = Windows(timing), 0.0
    while not windows.enough(now_s):
        now_s += chunk / rate_bytes_per_s
        windows.add(now_s, chunk)
    return windows, now_s


@pytest.mark.parametrize("chunk", [16 * 1024, 256 * 1024, 1024 * 1024])
def test_a_constant_rate_is_measured_exactly(chunk: int) -> None:
    windows, _ = steady(Timing(), 60e6, chunk)
    result = windows.result(idle=0.5)
    assert result.median_gbit_per_s == pytest.approx(0.48)
    assert result.worst_gbit_per_s == pytest.approx(0.48)
    assert result.bytes == pytest.approx(60e6 * result.seconds)
    assert result.payload_bytes > result.bytes
    assert result.idle == 0.5


def test_four_windows_fit_into_the_standard_time_with_chunks_of_any_length() -> None:
    windows, took_s = steady(Timing(), 60e6, 512 * 1024)
    # The receiver gets what is in flight when the sender has enough.
    windows.add(took_s + 0.009, 512 * 1024)
    assert windows.result(None).windows == 4
    assert took_s < 0.55


def test_the_warm_up_is_not_counted() -> None:
    windows, now_s = Windows(Timing()), 0.0
    while now_s < 0.099:
        now_s += 0.01
        windows.add(now_s, 1_000)  # a hundredth of what comes after
    while not windows.enough(now_s):
        now_s += 0.01
        windows.add(now_s, 100_000)
    assert windows.result(None).worst_gbit_per_s == pytest.approx(0.08)


def test_one_slow_window_lowers_the_worst_and_not_the_median() -> None:
    windows = Windows(Timing(measure_s=1.0))
    now_s = 0.0
    while not windows.enough(now_s):
        now_s += 0.04 if 0.5 < now_s < 0.6 else 0.005
        windows.add(now_s, 100_000)
    result = windows.result(None)
    assert result.median_gbit_per_s == pytest.approx(0.16, rel=0.02)
    assert result.worst_gbit_per_s is not None
    assert result.worst_gbit_per_s < 0.05


def test_a_link_of_one_mbit_still_fills_enough_windows() -> None:
    windows, took_s = steady(Timing(), 125_000, FIRST_CHUNK_BYTES)
    assert windows.result(None).windows >= MIN_WINDOWS
    assert windows.result(None).median_gbit_per_s == pytest.approx(0.001)
    assert took_s < 1.0


def test_a_link_that_fills_no_window_is_given_up_in_time() -> None:
    timing = Timing()
    windows, took_s = steady(timing, 10_000, FIRST_CHUNK_BYTES)
    assert windows.result(None).windows < MIN_WINDOWS
    assert took_s < timing.pair_s + EXTENSION_S + 3


def test_bytes_end_a_measurement_before_its_time() -> None:
    windows, took_s = steady(Timing(measure_s=10.0, max_bytes=30_000_000), 60e6, 64 * 1024)
    assert took_s < 1.0
    assert windows.result(None).bytes == pytest.approx(30e6, rel=0.2)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e5, 1e11), st.integers(0, 50))
def test_chunks_grow_to_a_few_milliseconds_and_stay_there(rate: float, extra: int) -> None:
    most = 8 * 1024 * 1024
    pace, now_s = Pace(most), 0.0
    while now_s < 0.1 + extra / 1000:
        size = pace.chunk_bytes
        assert size == power_of_two(size)
        assert FIRST_CHUNK_BYTES <= size <= most
        now_s += size / rate + 20e-6  # what a chunk costs besides
        pace.add(now_s, size)
    size = pace.chunk_bytes
    assert size in (FIRST_CHUNK_BYTES, most) or 0.002 <= size / rate <= 0.0051


def test_a_burst_does_not_make_chunks_of_a_slow_link_long() -> None:
    pace, now_s, moved = Pace(8 * 1024 * 1024), 0.0, 0
    for _ in range(50):
        size = pace.chunk_bytes
        moved += size
        # A bucket of 256 KiB passes at once, then 1 Mbit/s.
        now_s += size / (1e9 if moved < 256 * 1024 else 125_000)
        pace.add(now_s, size)
        assert pace.chunk_bytes <= 2 * FIRST_CHUNK_BYTES


class Done:
    """A chunk that is complete once its event is set."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def wait(self) -> None:
        if not self.event.wait(5):
            raise stream.StalledError("nothing moved")


class MemoryChannel:
    """One end of a wire in memory: a chunk moves once the other end has posted a receive."""

    max_chunk_bytes = MAX_CHUNK
    device = torch.device("cpu")

    def __init__(self, out: queue.Queue, into: queue.Queue) -> None:
        self.out, self.into = out, into
        self.alter: Callable[[int, torch.Tensor], torch.Tensor | None] = lambda _, chunk: chunk
        self.sent = 0

    def send(self, chunk: torch.Tensor) -> Done:
        done, offer = Done(), self.out.get(timeout=5)
        if offer is None:
            raise stream.PeerLostError("the other side is gone")
        posted, receiver = offer
        moved = self.alter(self.sent, chunk)
        self.sent += 1
        if moved is not None:
            assert posted.numel() == chunk.numel(), "both sides agree on the size of each chunk"
            posted.copy_(moved)
            receiver.event.set()
        done.event.set()
        return done

    def receive(self, chunk: torch.Tensor) -> Done:
        done = Done()
        self.into.put((chunk, done))
        return done

    def close(self) -> None:
        self.into.put(None)


def wire() -> tuple[MemoryChannel, MemoryChannel]:
    there, back = queue.Queue(), queue.Queue()
    return MemoryChannel(there, back), MemoryChannel(back, there)


def transferred(
    source: MemoryChannel, target: MemoryChannel, timing: Timing = TIMING, *, forward: bool = True
) -> tuple[Sent, Received]:
    def end(channel: MemoryChannel) -> stream.Stream[torch.Tensor]:
        memory = TensorMemory(channel.max_chunk_bytes, channel.device)
        return stream.Stream(channel, memory, timing, forward=forward)

    with ThreadPoolExecutor(2) as pool:
        receiving = pool.submit(end(target).receive)
        sending = pool.submit(end(source).send)
        try:
            received = receiving.result()
        finally:
            target.close()
        return sending.result(), received


@pytest.mark.parametrize("forward", [True, False])
def test_both_sides_agree_on_what_was_moved(forward: bool) -> None:  # noqa: FBT001 - the case
    sent, received = transferred(*wire(), forward=forward)
    assert sent.payload_bytes == received.payload_bytes
    assert received.windows >= MIN_WINDOWS


def flip(position: int, at_chunk: int) -> Callable[[int, torch.Tensor], torch.Tensor]:
    def alter(number: int, chunk: torch.Tensor) -> torch.Tensor:
        if number != at_chunk:
            return chunk
        damaged = chunk.clone()
        damaged[position] ^= 1
        return damaged

    return alter


@pytest.mark.parametrize("position", [0, 1, 7, 8, 5_000, FIRST_CHUNK_BYTES - 1])
def test_one_wrong_bit_is_found(position: int) -> None:
    source, target = wire()
    source.alter = flip(position, at_chunk=0)
    with pytest.raises(stream.DamagedError, match="payload arrived damaged"):
        transferred(source, target)


def test_a_chunk_that_arrives_instead_of_another_is_found() -> None:
    source, target = wire()
    kept: list[torch.Tensor] = []

    def replay(number: int, chunk: torch.Tensor) -> torch.Tensor:
        kept.append(chunk.clone())
        return kept[0] if number == 1 else chunk

    source.alter = replay
    with pytest.raises(stream.DamagedError, match="not the one expected"):
        transferred(source, target)


def test_payload_of_the_other_direction_is_not_taken_for_ones_own() -> None:
    memory = TensorMemory(MAX_CHUNK, torch.device("cpu"))
    seen = {
        bytes(memory.expected(number, 8, 4096, forward=forward).numpy())
        for number in range(3)
        for forward in (True, False)
    }
    assert len(seen) == 6


def test_a_chunk_that_never_arrives_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Done, "wait", lambda self: self.event.wait(0.2) or _stall())
    source, target = wire()
    source.alter = lambda number, chunk: None if number == 5 else chunk
    with pytest.raises(stream.StalledError):
        transferred(source, target)


def _stall() -> None:
    raise stream.StalledError("nothing moved")


def test_both_sides_meet_in_a_greeting() -> None:
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(stream.greet, channel, torch.zeros(8, dtype=torch.uint8), first=is_first)
            for channel, is_first in zip(wire(), (True, False), strict=True)
        ]
        assert [future.result(timeout=5) for future in futures] == [None, None]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            (
                "[/__w/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4711. "
                "This is typically caused by a network issue\nException raised from ..."
            ),
            "Connection closed by peer [127.0.0.1]:4711",
        ),
        ("first\nsecond", "first"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("", "RuntimeError"),
    ],
)
def test_an_error_of_torch_becomes_one_clear_line(said: str, line: str) -> None:
    assert one_line(RuntimeError(said)) == line
