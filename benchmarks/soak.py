"""Healthy sweeps in a row, idle and beside a load on one core: how many are called healthy.

    python benchmarks/soak.py [--sweeps 10]
    python benchmarks/soak.py --burn-ins 10

With --burn-ins whole burn-ins are run instead; what each isolated or rejected is printed. Needs
root, for the lab. Exits with 1 when a healthy fleet was called anything else, or when a burn-in
isolated or rejected anybody.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from lab import NCDIAG, lab, sweep

HEALTHY = """
name = "soak"
rate = "500mbit"

[leaves]
leaf1 = ["h[1-4]"]
leaf2 = ["h[5-8]"]
"""
# Hosts that also compute leave less of a small machine for the network.
HEALTHY_BURN_IN = HEALTHY.replace("500mbit", "300mbit")
NEED, SPARES = 6, 2


def main() -> int:
    """Run what was asked for and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=10, help="sweeps, idle and again loaded")
    parser.add_argument("--burn-ins", type=int, metavar="N", help="burn-ins, and no sweeps")
    parser.add_argument("--budget", default="3m", help="of each burn-in")
    asked = parser.parse_args()
    return (
        sweeps(asked.sweeps) if asked.burn_ins is None else burn_ins(asked.burn_ins, asked.budget)
    )


def sweeps(count: int) -> int:
    """Sweeps in a row, idle and loaded; 1 where one was not called healthy."""
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


def burn_ins(count: int, budget: str) -> int:
    """Burn-ins in a row; 1 where one isolated or rejected anybody of a healthy fleet."""
    accused = 0
    with lab(HEALTHY_BURN_IN) as directory:
        for number in range(1, count + 1):
            code, report = burn_in(directory, budget)
            rejected = [host for host in report["hosts"] if host["outcome"] == "rejected"]
            undecided = [host for host in report["hosts"] if host["outcome"] == "undecided"]
            accused += bool(report["isolate"] or rejected)
            print(
                f"{number:3}  exit {code}  {report['verdict']:9}  {len(report['chosen'])} chosen, "
                f"{len(report['spares'])} spares, isolated {len(report['isolate'])}, rejected "
                f"{len(rejected)}, undecided {len(undecided)}, {report['seconds']:.0f} s",
                flush=True,
            )
            for host in (*rejected, *undecided):
                print(f"       {host['name']}: {'; '.join(host['reasons'])}", flush=True)
    print(f"{accused} of {count} burn-ins of a healthy fleet isolated or rejected anybody")
    return 1 if accused else 0


def burn_in(directory: Path, budget: str) -> tuple[int, dict]:
    """Run a quick burn-in of the lab in ``directory``; its exit code and its ``report.json``."""
    with tempfile.TemporaryDirectory() as output:
        command = [
            *(*NCDIAG, "burn-in", "--nodes", str(directory / "hosts.txt")),
            *("--ssh-option", f"-F {directory / 'ssh_config'}"),
            *("--need", str(NEED), "--spares", str(SPARES)),
            *("--level", "quick", "--budget", budget, "--output", output, "--quiet"),
        ]
        code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
        return code, json.loads(Path(output, "report.json").read_text())


if __name__ == "__main__":
    sys.exit(main())
