"""What a full sweep by the mpi engine costs against the time that its measuring needs.

    python benchmarks/mpi_sweep.py

Eight lab hosts, seven rounds, nothing else on the machine. The yardstick is rounds x 2 x (warm-up +
window), both directions of each round; the rounds have to stay below 1.3 times that. Needs root.
"""

import sys
import time

from lab import lab
from rounds import timed
from soak import HEALTHY

from ncdiag.cli.run_sweep import Way
from ncdiag.cluster.inventory import read_hosts
from ncdiag.measure.engines import open_engine
from ncdiag.measure.engines.base import EngineOptions, Timing
from ncdiag.measure.schedule import full

TIMING = Timing()
MOST = 1.3


def main() -> int:
    with lab(HEALTHY) as directory:
        began = time.monotonic()
        hosts = read_hosts(str(directory / "hosts.txt"))
        way = Way(launcher="ssh", ssh_options=[f"-F{directory / 'ssh_config'}"])
        engine = open_engine("mpi", hosts, way.launcher_for(hosts), EngineOptions(timing=TIMING))
        try:
            facts = engine.start(lambda _host, _text: None)
            start_s = time.monotonic() - began
            rounds = [planned.pairs for planned in full(list(facts), dict.fromkeys(facts, 1))]
            rounds_s = timed(engine, facts, rounds)
        finally:
            engine.close()
        whole_s = time.monotonic() - began
    needed_s = len(rounds) * TIMING.pair_s
    print(f"measured with                      {facts['h1'].versions['mpi']}")
    print(f"start-up to the first measurement  {start_s:6.2f} s")
    print(f"{len(rounds)} rounds                           {rounds_s:6.2f} s")
    print(f"rounds x 2 x (warm-up + window)    {needed_s:6.2f} s")
    print(f"without start-up                   {rounds_s / needed_s:6.2f} times (at most {MOST})")
    print(f"with start-up and end              {whole_s / needed_s:6.2f} times")
    return 0 if rounds_s <= MOST * needed_s else 1


if __name__ == "__main__":
    sys.exit(main())
