"""Runs of collectives made by hand, for the tests of judging and reporting them."""

import random
from collections.abc import Callable, Mapping, Sequence

from ncdiag.expect.traffic import Collective, bus_factor
from ncdiag.model.bench import BenchRun
from ncdiag.model.benchmark import Benchmark, IterationTimes, TableRow
from ncdiag.model.place import Place

SIZES = tuple(2**power for power in range(3, 34))


def rising(best: float, half_bytes: float = 4 * 2**20) -> Callable[[int], float]:
    """Latency plus bytes over bandwidth: half of ``best`` is reached at ``half_bytes``."""
    return lambda size: best * size / (size + half_bytes)


USUAL = rising(100.0)


def run(
    hosts: int | Sequence[str] = 2,
    *,
    ranks_per_host: int = 8,
    rate: Callable[[int], float] = USUAL,
    sizes: Sequence[int] = SIZES,
    shares: Mapping[int, float] | None = None,
    wrong: Mapping[int, int] | None = None,
    noise: float = 0.01,
    seed: int = 1,
    slow_process: int | None = None,
    slow_by: float = 1.3,
    error: str | None = None,
    collective: Collective = Collective.ALL_REDUCE,
    in_place: bool = True,
) -> BenchRun:
    """A run in which ``shares`` of the rate are reached at some sizes."""
    names = (
        tuple(f"n{number:02d}" for number in range(1, hosts + 1))
        if isinstance(hosts, int)
        else tuple(hosts)
    )
    chance = random.Random(seed)
    ranks = len(names) * ranks_per_host
    factor = bus_factor(collective, ranks)

    def half(size: int) -> tuple[float, float]:
        reached = rate(size) * (shares or {}).get(size, 1.0) * (1 + chance.uniform(-noise, noise))
        return size / (reached / factor) / 1e3, round(reached, 2)

    def iterations(time_us: float) -> IterationTimes | None:
        if slow_process is None:
            return None
        return IterationTimes(
            process_max_us=tuple(
                tuple(
                    time_us * (slow_by if one == slow_process else 1) * chance.uniform(0.98, 1.02)
                    for _ in range(10)
                )
                for one in range(ranks)
            )
        )

    rows = []
    for size in sizes:
        (time, busbw), (time_in, busbw_in) = half(size), half(size)
        bad = None if wrong is None else wrong.get(size, 0)
        rows.append(
            TableRow(
                size=size,
                type="float",
                redop="sum",
                out_of_place_busbw=busbw,
                in_place_busbw=busbw_in if in_place else None,
                out_of_place_wrong=bad,
                in_place_wrong=None,
                out_of_place_time_us=time,
                in_place_time_us=time_in if in_place else None,
                out_of_place_iterations=iterations(time),
            )
        )
    benchmark = Benchmark(place=Place("stdout", 1), rows=rows, complete=error is None)
    return BenchRun(hosts=names, ranks_per_host=ranks_per_host, benchmark=benchmark, error=error)
