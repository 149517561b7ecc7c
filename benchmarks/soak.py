"""Healthy sweeps in a row, idle and beside a load on one core: how many are called healthy.

    python benchmarks/soak.py [--sweeps 10]

Needs root, for the lab. Exits with 1 when a healthy fleet was called anything else.
"""

import argparse
import subprocess
import sys

from lab import lab, sweep

HEALTHY = """
name = "soak"
rate = "500mbit"

[leaves]
leaf1 = ["h[1-4]"]
leaf2 = ["h[5-8]"]
"""


def main() -> int:
    """Run the sweeps and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=10, help="sweeps, idle and again loaded")
    count = parser.parse_args().sweeps
    wrong = 0
    with lab(HEALTHY) as directory:
        for loaded in (False, True):
            for number in range(1, count + 1):
                load = (
                    subprocess.Popen([sys.executable, "-c", "while True: pass"]) if loaded else None
                )
                try:
                    code, report = sweep(directory)
                finally:
                    if load:
                        load.kill()
                        load.wait()
                worst = min(link["efficiency"] or 0 for link in report["links"])
                again = sum(link["tests"] > 1 for link in report["links"])
                wrong += code != 0
                print(
                    f"{'beside a load' if loaded else 'idle':13} {number:3}  exit {code}  "
                    f"{report['verdict']}  worst {worst:.3f} of expected, "
                    f"{again} directions measured again, {report['seconds']:.1f} s",
                    flush=True,
                )
    print(f"{wrong} of {2 * count} sweeps of a healthy fleet were not called healthy")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
