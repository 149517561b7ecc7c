"""What a round costs besides measuring, and how soon the first one begins.

    python benchmarks/rounds.py

Eight lab hosts, seven rounds, nothing else on the machine. Beside ncdiag's own figures stand
the same rounds in one bare MPI launch, and the same pairs one after the other. Needs root.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lab import lab
from soak import HEALTHY

from ncdiag.cli.run_sweep import Way
from ncdiag.cluster.inventory import read_hosts
from ncdiag.measure.engines import open_engine
from ncdiag.measure.engines.base import Endpoint, Engine, EngineOptions, PairOrder, Timing
from ncdiag.measure.schedule import full
from ncdiag.model.host import HostFacts
from ncdiag.model.measurement import PairKey, Purpose

TIMING = Timing()
MPI_PROGRAM = Path(__file__).with_name("mpi_rounds.py")


def main() -> int:
    """Print the figures."""
    with lab(HEALTHY) as directory:
        started = time.monotonic()
        hosts = read_hosts(str(directory / "hosts.txt"))
        way = Way(launcher="ssh", ssh_options=[f"-F{directory / 'ssh_config'}"])
        engine = open_engine("torch", hosts, way.launcher_for(hosts), EngineOptions(timing=TIMING))
        try:
            facts = engine.start(lambda _host, _text: None)
            start_s = time.monotonic() - started
            rounds = [planned.pairs for planned in full(list(facts), dict.fromkeys(facts, 1))]
            together_s = timed(engine, facts, rounds)
            alone = [(pair,) for pairs in rounds for pair in pairs]
            alone_s = timed(engine, facts, alone)
        finally:
            engine.close()
        mpi_s = mpi_rounds_s(directory, [host.name for host in hosts])
    count = len(rounds)
    print(f"start-up to the first measurement   {start_s:6.2f} s")
    print(f"besides measuring, a round          {together_s / count - TIMING.pair_s:6.3f} s")
    print(f"the same in one bare MPI launch     {mpi_s / count - TIMING.pair_s:6.3f} s")
    print(f"{count} rounds                            {together_s:6.2f} s")
    print(f"the same, pair by pair              {alone_s:6.2f} s: {alone_s / together_s:.1f} times")
    print(f"against the bare MPI rounds          {together_s / mpi_s:5.2f} times")
    return 0


def timed(
    engine: Engine, facts: dict[str, HostFacts], rounds: Sequence[Sequence[PairKey]]
) -> float:
    """Seconds that ``rounds`` take, one after the other; fails where a pair does."""
    began = time.monotonic()
    for number, pairs in enumerate(rounds):
        orders = [
            PairOrder(
                first=Endpoint(pair.first, facts[pair.first].nics[0]),
                second=Endpoint(pair.second, facts[pair.second].nics[0]),
                rail=0,
                round=number,
                purpose=Purpose.ROUND,
            )
            for pair in pairs
        ]
        for result in engine.measure(orders):
            if result.error:
                raise SystemExit(f"{result.link}: {result.error}")
    return time.monotonic() - began


def mpi_rounds_s(directory: Path, names: Sequence[str]) -> float:
    """Seconds of the same rounds in one launch of MPI ranks, one a host, over the same links."""
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder, "ssh")
        wrapper.write_text(f'#!/bin/sh\nexec ssh -F {directory / "ssh_config"} "$@"\n')
        wrapper.chmod(0o755)
        status = subprocess.run(
            [Path(sys.executable).parent.parent.parent / "bin/netlab", "status", directory.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        driver = status.split("--driver-address ", 1)[1].split()[0]
        command = [
            Path(sys.executable).with_name("mpiexec"),
            *("-launcher", "ssh", "-launcher-exec", wrapper, "-localhost", driver),
            # Else UCX takes shared memory, since all lab hosts share one kernel.
            *("-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", "eth0"),
            *("-hosts", ",".join(names), "-n", str(len(names))),
            *(sys.executable, MPI_PROGRAM, str(TIMING.warmup_s), str(TIMING.measure_s)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.strip())


if __name__ == "__main__":
    sys.exit(main())
