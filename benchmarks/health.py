"""How long it takes to ask hosts for their health: this one, and many loopback ones.

    python benchmarks/health.py [HOSTS]

A host costs two plain Pythons, of which the second collects, and the CPUs of this machine are all
there are: the yardstick is as many starts of a Python that imports what answers, side by side.
The fleet has to be asked in less than 30 s by two cores that are otherwise idle.
"""

import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from ncdiag.cluster.launchers import choose
from ncdiag.health.collect import collect_health
from ncdiag.health.fleet_health import ask_by_launcher
from ncdiag.health.tell_health import MODULE
from ncdiag.model.host import Host

MOST_S = 30.0


def cpu_s() -> float:
    """CPU time of all that has been started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(_host: Host) -> None:
    """Start a Python that imports what answers on a host."""
    subprocess.run((sys.executable, "-P", "-c", f"import {MODULE}"), check=True)


def main() -> int:
    number = int(sys.argv[1]) if sys.argv[1:] else 64
    began_s = time.monotonic()
    collect_health()
    one_s = time.monotonic() - began_s
    hosts = [Host(name=f"127.0.0.{n}", address=f"127.0.0.{n}") for n in range(2, number + 2)]
    launcher = choose("local", hosts)
    began_s, before_s = time.monotonic(), cpu_s()
    readings = ask_by_launcher(hosts, launcher, lambda *_: None)
    fleet_s, fleet_cpu_s = time.monotonic() - began_s, cpu_s() - before_s
    began_s = time.monotonic()
    with ThreadPoolExecutor(launcher.starts_at_a_time) as pool:
        list(pool.map(start, hosts))
    bare_s = time.monotonic() - began_s
    print(f"collection of one host         {one_s:6.2f} s")
    print(f"{number} hosts asked                 {fleet_s:6.2f} s (at most {MOST_S:g})")
    print(f"CPU time of it, a host         {fleet_cpu_s / number:6.2f} s")
    print(f"{number} starts of a bare Python     {bare_s:6.2f} s")
    print(f"ratio                          {fleet_s / bare_s:6.2f} times")
    print(f"load of this machine           {os.getloadavg()[0]:6.2f}")
    return 0 if len(readings.facts) == number and fleet_s <= MOST_S else 1


if __name__ == "__main__":
    sys.exit(main())
