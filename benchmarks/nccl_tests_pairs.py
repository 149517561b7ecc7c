"""Thousands of pairs by the engine nccl-tests, 64 at a time, with a driver that is killed half-way.

``python benchmarks/nccl_tests_pairs.py [HOSTS [AT_A_TIME]]``: 129 hosts of this machine are 8,256
pairs in rounds of 64, whose programs play nccl-tests; 101 hosts are 5,050 in rounds of 50. Prints
how long a pair took, the most commands and the most memory of the driver, and whether every figure
is right, none is missing and none is there twice. Takes a sixth of a second of CPU a pair.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/unit/importable"))
from nccl_tests_programs import install, install_mpiexec

SLOW, WRONG = "n007", "n031"


def main() -> int:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 129
    at_a_time = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    pairs = hosts * (hosts - 1) // 2
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        out, options = root / "out", prepare(root, hosts)
        began_s = time.monotonic()
        first = watch(["--output", str(out), "--at-a-time", str(at_a_time), *options], out, pairs)
        print(f"killed after {len(directions(out)) // 2} of {pairs} pairs")
        second = watch(["--resume", str(out), "--at-a-time", str(at_a_time)], out, None)
        seconds = time.monotonic() - began_s
        faults = list(wrong(directions(out), pairs))
    commands, memory = max(first[0], second[0]), max(first[1], second[1])
    print(f"{pairs} pairs in {seconds:.0f} s: {seconds / pairs * 1e3:.0f} ms a pair")
    print(f"at most {commands} of {at_a_time} commands at a time; driver {memory >> 20} MiB")
    print("every figure is right, each once" if not faults else f"WRONG: {faults[:5]}")
    return bool(faults) or commands > at_a_time


def prepare(root: Path, hosts: int) -> list[str]:
    """The programs, and the options of the sweep."""
    programs = install(
        root / "nccl-tests",
        TRAFFIC="lo",
        PLATEAU="10",
        LATENCY_US="0",
        SLOW_HOSTS=f"{SLOW}=0.25",
        WRONG_HOSTS=WRONG,
    )
    os.environ["PATH"] = f"{install_mpiexec(root / 'mpi')}:{os.environ['PATH']}"
    file = root / "hosts.txt"
    file.write_text(
        "".join(f"n{n:03d} address=127.0.1.{n} nic=lo rate=80gbit\n" for n in range(1, hosts + 1))
    )
    return [
        *("--nodes", str(file), "--engine", "nccl-tests", "--nccl-tests-dir", str(programs)),
        *("--max-bytes", "64K"),
    ]


def watch(arguments: list[str], out: Path, pairs: int | None) -> tuple[int, int]:
    """Run a sweep, or kill it at half of ``pairs``; the most commands and bytes it had."""
    process = subprocess.Popen([sys.executable, "-m", "ncdiag", "sweep", "--quiet", *arguments])
    commands = memory = 0
    while process.poll() is None and not (out / "report.json").exists():
        commands = max(commands, launches(process.pid))
        memory = max(memory, resident_bytes(process.pid))
        if pairs is not None and len(directions(out)) >= pairs:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.5)
    process.wait()
    return commands, memory


def launches(pid: int) -> int:
    count = 0
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
            commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
        except OSError:
            continue
        count += sum(b"mpiexec" in command for command in commands)
    return count


def resident_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int((text.partition("VmRSS:")[2].split() or ["0"])[0]) * 1024


def directions(out: Path) -> list[dict[str, object]]:
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    found = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [line for line in found if line["kind"] == "direction" and line["purpose"] == "round"]


def wrong(found: list[dict[str, object]], pairs: int) -> list[str]:
    """What is not as it was planted."""
    faults = []
    times = Counter((line["source"], line["target"]) for line in found)
    if len(times) != 2 * pairs or set(times.values()) != {1}:
        faults.append(f"{len(times)} directions of {2 * pairs}, {max(times.values())} times")
    for line in found:
        ends, figure = {line["source"], line["target"]}, line["measured_gbit_per_s"]
        if WRONG in ends:
            right = str(line["error"]).startswith("wrong data")
        else:
            rate = 20 if SLOW in ends else 80
            right = isinstance(figure, float) and abs(figure / rate - 1) < 0.02
        if not right:
            faults.append(f"{line['source']}->{line['target']}: {figure} {line['error']}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
