"""How long decisions over a large fleet take: a million pieces of evidence over 10,000 hosts.

    python benchmarks/isolation.py [HOSTS] [PIECES]

Prints seconds and peak memory of keeping the evidence, reading it as columns, and deciding, each in
one run; the last two together are what 'ncdiag isolate plan' waits for.
"""

import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ncdiag.isolate.decide import decide
from ncdiag.isolate.policy import read_policy
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.store.ledger import Ledger

NOW_S = 1_790_000_000.0
DAY_S = 86400.0
CLASSES = (
    (EvidenceKind.BANDWIDTH, "slow_host"),
    (EvidenceKind.BANDWIDTH, "slow_nic"),
    (EvidenceKind.CRASH, "gpu_fell_off_bus"),
    (EvidenceKind.CRASH, "nvlink_error"),
    (EvidenceKind.CRASH, "process_crash"),
    (EvidenceKind.HEALTH, "gpu_memory_error"),
    (EvidenceKind.HEALTH, "pcie_error"),
    (EvidenceKind.HEALTH, "thermal_power"),
    (EvidenceKind.STRAGGLER, "slow_rank"),
    (EvidenceKind.DATA, "damaged_data"),
)


def evidence(hosts: int, pieces: int) -> Iterator[EvidencePiece]:
    """Evidence of sixty days, of which a tenth clears: each run tells of a few hundred hosts."""
    chance = random.Random(1)
    names = [f"gpu{number:05d}" for number in range(hosts)]
    in_a_run = max(pieces // 3000, 1)
    for number in range(pieces):
        kind, class_ = chance.choice(CLASSES)
        run = f"run {number // in_a_run}"
        clears = chance.random() < 0.1
        yield EvidencePiece(
            host=chance.choice(names),
            kind=kind,
            class_="clean" if clears else class_,
            source="sweep",
            run=run,
            seen_s=NOW_S - 60 * DAY_S * (1 - number / pieces),
            text=f"{class_} seen by {chance.randrange(500)}",
            confidence=chance.uniform(0.7, 1.0),
            conclusive=chance.random() < 0.7,
            clears=clears,
            partners=tuple(chance.sample(names, 2)) if kind is EvidenceKind.BANDWIDTH else (),
            component=f"gpu{chance.randrange(8)}",
        )


def peak_mb() -> float:
    """The most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    pieces = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        began = time.perf_counter()
        with Ledger.open(path, write=True) as ledger:
            batch: list[EvidencePiece] = []
            for piece in evidence(hosts, pieces):
                batch.append(piece)
                if len(batch) == 50_000:
                    ledger.add(batch, now_s=NOW_S)
                    batch.clear()
            ledger.add(batch, now_s=NOW_S)
        size_mb = path.stat().st_size / 1e6
        print(f"kept     {time.perf_counter() - began:6.1f} s, {size_mb:.0f} MB on disk")
        print(f"         {peak_mb():6.0f} MB at most so far")
        with Ledger.open(path) as ledger:
            began, cpu = time.perf_counter(), time.process_time()
            table = ledger.table()
            read = time.perf_counter()
            print(
                f"read     {read - began:6.1f} s, {len(table):,} pieces, {len(table.hosts):,} hosts"
            )
            decisions = decide(table, read_policy(None), NOW_S)
            done = time.perf_counter()
        print(f"decided  {done - read:6.1f} s, {len(decisions):,} decisions")
        cpu = time.process_time() - cpu
        print(f"together {done - began:6.1f} s ({cpu:.1f} of CPU), {peak_mb():.0f} MB at most")


if __name__ == "__main__":
    main()
