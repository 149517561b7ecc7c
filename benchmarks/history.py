"""How long a store of many sweeps takes to answer, to grow, and how large it gets.

python benchmarks/history.py [SWEEPS [HOSTS]]

Whole commands, from the start of Python to its end, beside one that looks nothing up.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ncdiag.model.units import format_count
from ncdiag.model.verdict import (
    Diagnosis,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepPlan,
    SweepReport,
    Verdict,
)
from ncdiag.store.store import Store

RUNS = 5
LIMIT_S = 2.0
# A report of 512 hosts takes longer to make than to store: a few are recorded again and again,
# each time as another sweep.
DIFFERENT = 4
EXPECTED_GBIT_PER_S = 392.0


def sweep(hosts: int, seed: int) -> SweepReport:
    """A full sweep whose figures scatter like measured ones, all digits of them."""
    noise = random.Random(seed)
    names = [f"gpu{number:04}" for number in range(hosts)]

    def link(source: str, target: str, round_number: int) -> LinkVerdict:
        figure = EXPECTED_GBIT_PER_S * noise.uniform(0.96, 1.0)
        return LinkVerdict(
            source=source,
            target=target,
            rail=0,
            status=LinkStatus.HEALTHY,
            measured_gbit_per_s=figure,
            min_gbit_per_s=figure * noise.uniform(0.9, 1.0),
            expected_gbit_per_s=EXPECTED_GBIT_PER_S,
            expected_from="400 Gbit/s x 0.98 RoCE at MTU 4096",
            fleet_gbit_per_s=EXPECTED_GBIT_PER_S * 0.98,
            bytes=round(figure * 0.4e9 / 8),
            tests=1,
            idle=round(noise.uniform(0.5, 0.9), 3),
            round=round_number,
        )

    links = tuple(
        link(source, target, (row + column) % hosts)
        for row, source in enumerate(names)
        for column, target in enumerate(names)
        if row != column
    )
    return SweepReport(
        started="",
        seconds=600.0,
        plan=SweepPlan(
            mode="full",
            hosts=hosts,
            rounds=hosts - 1,
            pairs=hosts * (hosts - 1) // 2,
            engine="torch",
            launcher="slurm",
        ),
        diagnosis=Diagnosis(
            verdict=Verdict.HEALTHY,
            links=links,
            hosts=tuple(
                HostVerdict(name=name, status=HostStatus.HEALTHY, efficiency=0.98) for name in names
            ),
        ),
    )


def fill(path: Path, sweeps: int, hosts: int) -> list[float]:
    """Record so many sweeps; the seconds that each took to add."""
    reports = [sweep(hosts, seed) for seed in range(DIFFERENT)]
    began = datetime(2026, 1, 1, tzinfo=UTC)
    seconds = []
    for number in range(sweeps):
        started = f"{began + timedelta(days=number):%Y-%m-%dT%H:%M:%SZ}"
        report = replace(reports[number % DIFFERENT], started=started)
        start = time.monotonic()
        with Store.open(path, write=True) as store:
            store.add(report)
        seconds.append(time.monotonic() - start)
    return seconds


def command_s(arguments: list[str]) -> float:
    """The median of some runs of a whole command."""
    seconds = []
    for _ in range(RUNS):
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "ncdiag", *arguments], check=False, stdout=subprocess.DEVNULL
        )
        seconds.append(time.monotonic() - start)
        if done.returncode != 0:
            sys.exit(f"ncdiag {' '.join(arguments)} exited with {done.returncode}")
    return statistics.median(seconds)


def main() -> None:
    """Fill a store, ask it, and print what that took."""
    sweeps, hosts = [*map(int, sys.argv[1:]), *(100, 512)[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.sqlite"
        adding = fill(path, sweeps, hosts)
        links = hosts * (hosts - 1)
        megabytes = path.stat().st_size / 1e6
        print(f"{format_count(sweeps, 'sweep')} of {hosts} hosts, {links * sweeps:,} links")
        print(
            f"file {megabytes:,.0f} MB, {megabytes / sweeps:.1f} MB a sweep, "
            f"{megabytes * 1e6 / links / sweeps:.1f} bytes a link"
        )
        print(
            f"adding one: median {statistics.median(adding):.2f} s, the first {adding[0]:.2f} s, "
            f"the last {adding[-1]:.2f} s, the slowest {max(adding):.2f} s"
        )
        store = ["--store", str(path)]
        yardstick = command_s(["--version"])
        print(f"{'ncdiag --version':66} {yardstick:5.2f} s")
        for command in (
            ["history"],
            ["history", "host", "gpu0003"],
            ["history", "host", "gpu0003", "--last", f"{sweeps}"],
            ["history", "link", "gpu0003", "gpu0500"],
            ["history", "link", "gpu0003->gpu0500", "--last", f"{sweeps}", "--format", "json"],
        ):
            took = command_s([*command, *store])
            within = "" if took < LIMIT_S else f"   MORE THAN {LIMIT_S:g} s"
            shown = " ".join(["ncdiag", *command])
            print(f"{shown:66} {took:5.2f} s  {took / yardstick:4.1f} times{within}")


main()
