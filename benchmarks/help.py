"""How long ``ncdiag --help`` takes, beside what it must not load.

python benchmarks/help.py
"""

import statistics
import subprocess
import sys
import time

PROGRAMS = {
    "python, doing nothing": ["-c", "pass"],
    "ncdiag --help": ["-m", "ncdiag", "--help"],
    "import distributed": ["-c", "import distributed"],
    "import pandas, matplotlib.figure": ["-c", "import pandas, matplotlib.figure"],
    "import torch": ["-c", "import torch"],
}
RUNS = 5


def seconds(arguments: list[str]) -> float:
    """One run of Python from start to end."""
    began = time.monotonic()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def main() -> None:
    """Print the median of each, and its ratio to ``ncdiag --help``."""
    medians = {
        name: statistics.median(seconds(arguments) for _ in range(RUNS))
        for name, arguments in PROGRAMS.items()
    }
    for name, median in medians.items():
        print(f"{name:34} {median:5.2f} s  {median / medians['ncdiag --help']:5.2f} times")


main()
