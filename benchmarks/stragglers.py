"""False alarms of ``ncdiag stragglers``, stated and seen; slow ranks found; and how fast it is.

    python benchmarks/stragglers.py [RANKS] [TABLES]

Prints, for healthy tables of 50 iterations with noise of several shapes, how many ranks should be
named on average and how many are; of ranks 20 % slower with noise of 5 % a step, the share found;
then seconds a table and the rate at which a CSV file of that many ranks is read.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ncdiag.diagnose.stragglers import Settings, find_stragglers
from ncdiag.model.straggler import IterationTable, TimeKind
from ncdiag.read.iteration_times import TimesReader

Floats = npt.NDArray[np.float64]
ITERATIONS = 50
STEP = 0.05
WANTED = 5.0


def in_a_row(normal: Floats) -> Floats:
    """Noise in which an iteration is much like the one before."""
    for number in range(1, len(normal)):
        normal[number] = 0.9 * normal[number - 1] + np.sqrt(1 - 0.81) * normal[number]
    return np.asarray(1 + STEP * normal)


def hosts(normal: Floats) -> Floats:
    """Hosts of 8 ranks that differ by 2 % for good."""
    ranks = normal.shape[1]
    each = np.random.default_rng(int(abs(normal[0, 0]) * 1e6)).standard_normal(-(-ranks // 8))
    return np.asarray((1 + 0.02 * each.repeat(8)[:ranks]) * (1 + STEP * normal))


NOISES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda normal: 1 + STEP * normal,
    "log-normal": lambda normal: np.exp(0.3 * normal),
    "skewed": lambda normal: 0.8 + 0.01 * np.exp(2 * normal),
    "long tails": lambda normal: np.exp(STEP * np.sinh(normal)),
    "in a row": in_a_row,
    "hosts differ": hosts,
}


def table(seconds: Floats) -> IterationTable:
    return IterationTable(ranks=tuple(range(seconds.shape[1])), seconds=seconds)


def false_alarms(ranks: int, tables: int) -> None:
    wanted = Settings(false_alarms=min(WANTED, ranks / 100), least_slower=0.0)
    for name, noise in NOISES.items():
        chance, seen, stated = np.random.default_rng(1), 0, 0.0
        began = time.perf_counter()
        for _ in range(tables):
            seconds = noise(chance.standard_normal((ITERATIONS, ranks)))
            report = find_stragglers(table(seconds), TimeKind.COMPUTE, wanted)
            seen, stated = seen + len(report.slow), stated + report.expected_false_alarms
        each = (time.perf_counter() - began) / tables
        print(f"{name:13} stated {stated:7.1f}   seen {seen:5}   {each:.2f} s a table", flush=True)


def found(ranks: int, tables: int) -> None:
    for kind in (TimeKind.COMPUTE, TimeKind.COLLECTIVE):
        for share in (0.0, 0.01, 0.1):
            chance, right, wrong, total = np.random.default_rng(2), 0, 0, 0
            for _ in range(tables):
                slow = chance.choice(ranks, max(1, round(share * ranks)), replace=False)
                seconds = 1 + STEP * chance.standard_normal((ITERATIONS, ranks))
                seconds[:, slow] *= 1.2 if kind is TimeKind.COMPUTE else 1 / 1.2
                named = {one.rank for one in find_stragglers(table(seconds), kind).slow}
                right, total = right + len(named & set(slow.tolist())), total + len(slow)
                wrong += len(named - set(slow.tolist()))
            print(f"{kind:10} {total:6} slow: {right / total:.2%} found, {wrong} wrong", flush=True)


def reading(ranks: int) -> None:
    iterations = max(1, 500_000 // ranks)
    lines = [
        f"{rank},{iteration},{400 + (rank * 7 + iteration * 13) % 29}.125,h{rank // 8}"
        for iteration in range(iterations)
        for rank in range(ranks)
    ]
    data = "\n".join(["rank,iteration,compute_time_ms,host", *lines]).encode()
    reader = TimesReader()
    began = time.process_time()
    for start in range(0, len(data), 1 << 20):
        reader.feed(data[start : start + (1 << 20)])
    reader.end_file("times.csv")
    reader.table()
    took = time.process_time() - began
    print(f"reading {len(lines):,} rows: {len(data) / took / 1e6:.1f} MB/s, {took:.1f} s of a core")


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 16_384
    tables = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    false_alarms(ranks, tables)
    found(ranks, max(1, tables // 2))
    reading(ranks)


if __name__ == "__main__":
    main()
