"""What a host measures by itself with torch: arithmetic, memory, copies between devices.

All numbers are small whole ones, so that every sum is exact and a wrong bit shows.
"""

import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import torch

from ncdiag.measure.burn_in.messages import LocalFigure, LocalFigures, LocalTest

# Large enough to fill a GPU of today, small enough for a CPU to do many in a second.
_MATRIX = {"cpu": 384, "cuda": 8192}
_COPY_BYTES = {"cpu": 32 << 20, "cuda": 1 << 30}
# All GPUs of a host copy to all others at once, and pin memory of the host: that adds up.
_COPY_ACROSS_BYTES = 256 << 20
_LEAST_TIMES = 5
_MOST_TIMES = 10_000
_WARMUP = 2


def numbers(rows: int, device: torch.device, seed: int) -> torch.Tensor:
    """A square matrix of whole numbers from -2 to 2, the same for the same seed.

    Their products add up exactly: in bfloat16 each number is exact, and sums are kept in float32.
    """
    generator = torch.Generator().manual_seed(seed)
    found = torch.randint(-2, 3, (rows, rows), generator=generator)
    return found.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32)


def test_here(asked: LocalTest) -> LocalFigures:
    """All figures of one GPU, or of the CPU; raises what torch raises."""
    device = torch.device("cpu") if asked.gpu is None else torch.device("cuda", asked.gpu)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    figures, wrong = [], 0
    for figure, differing in _measure(device, asked.seconds):
        figures.append(figure)
        wrong += differing
        if device.type == "cuda":  # others on the host need it, and a GPU has none to spare
            torch.cuda.empty_cache()
    return LocalFigures(figures=tuple(figures), wrong=wrong, device=_model(device))


def _model(device: torch.device, cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """What the GPU or CPU is called, or at least its architecture."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _measure(device: torch.device, seconds: float) -> Iterator[tuple[LocalFigure, int]]:
    own = f"gpu{device.index}" if device.type == "cuda" else None
    yield _multiply(device, seconds, own)
    yield _copy("memory_gb_per_s", device, device, seconds, own)
    if device.type != "cuda":
        return
    host = torch.device("cpu")
    yield _copy("host_to_device_gb_per_s", host, device, seconds, own)
    yield _copy("device_to_host_gb_per_s", device, host, seconds, own)
    others = [index for index in range(torch.cuda.device_count()) if index != device.index]
    for index in others:
        peer = torch.device("cuda", index)
        if torch.cuda.can_device_access_peer(device, peer):
            # All peers together have the time of one figure, however many there are.
            each_s, between = seconds / len(others), f"{own}->gpu{index}"
            yield _copy("device_to_device_gb_per_s", device, peer, each_s, between)


def _multiply(
    device: torch.device, seconds: float, component: str | None
) -> tuple[LocalFigure, int]:
    rows = _MATRIX[device.type]
    left, right = (numbers(rows, device, seed) for seed in (1, 2))
    product = torch.mm(left, right)
    first = product.clone()
    wrong = 0
    if device.type == "cpu":  # bfloat16 rounds each element of a product
        # Both ways to multiply with a vector agree, or the first product is wrong already.
        ones = torch.ones(rows, 1, dtype=torch.float64)
        wanted = left.double() @ (right.double() @ ones)
        wrong += int((product.double() @ ones != wanted).sum().item())
    took_s = _usual_s(lambda: torch.mm(left, right, out=product), device, seconds)
    wrong += int((product != first).sum().item())
    return LocalFigure("gemm_tflop_per_s", 2 * rows**3 / took_s / 1e12, component), wrong


def _copy(
    name: str, source: torch.device, target: torch.device, seconds: float, component: str | None
) -> tuple[LocalFigure, int]:
    """One copy at a time; what is read and what is written both count within one memory."""
    on_gpu = "cuda" in {source.type, target.type}
    pinned = source != target
    count = (_COPY_ACROSS_BYTES if pinned else _COPY_BYTES["cuda" if on_gpu else "cpu"]) // 4
    start = torch.arange(count, dtype=torch.int32, device=source)
    end = torch.zeros(count, dtype=torch.int32, device=target)
    if pinned and source.type == "cpu":
        start = start.pin_memory()
    if pinned and target.type == "cpu":
        end = end.pin_memory()
    clock = source if source.type == "cuda" else target
    took_s = _usual_s(lambda: end.copy_(start, non_blocking=True), clock, seconds)
    moved = (2 if source == target else 1) * 4 * count
    wrong = int((end != start.to(target)).sum().item())
    return LocalFigure(name, moved / took_s / 1e9, component), wrong


def _usual_s(work: Callable[[], object], device: torch.device, seconds: float) -> float:
    """How long ``work`` takes: the median on a GPU, which nobody shares, the best on a CPU.

    Whatever else runs on a CPU takes time from some rounds, and gives none to any.
    """
    for _ in range(_WARMUP):
        work()
    _wait(device)
    times: list[float] = []
    end_s = time.perf_counter() + seconds
    while len(times) < _MOST_TIMES:
        began_s = time.perf_counter()
        work()
        _wait(device)
        now_s = time.perf_counter()
        times.append(now_s - began_s)
        if now_s >= end_s and len(times) >= _LEAST_TIMES:
            break
    return median(times) if device.type == "cuda" else min(times)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
