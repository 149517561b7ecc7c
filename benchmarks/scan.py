"""How fast ``ncdiag parse-log`` reads a large log, beside ripgrep and grep on the same file.

python benchmarks/scan.py [--megabytes 3000] [--files 10000] [--directory /tmp] [--runs 3]
python benchmarks/scan.py --log 0.04=FILE --log 0.001=FILE

Both logs look like a job of 256 hosts that prints ``NCCL_DEBUG=INFO``: one in which 4 % of the
lines are messages that matter, and one with 0.1 %. The whole command is timed, from start to end.
Then it reads one small log, and a folder of many. With ``--log`` only such logs are read as are
there already; the share is that of the lines that matter (0.04 or 0.001).
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOSTS = [f"rack{rack:02d}-node{node:02d}" for rack in range(16) for node in range(16)]
ORDINARY = [
    "INFO Channel {c:02d}/0 : {a}[{g}] -> {b}[{h}] via P2P/IPC",
    "INFO Channel {c:02d}/0 : {a}[{g}] -> {b}[{h}] [send] via NET/IB/{n}/GDRDMA",
    "INFO Channel {c:02d}/0 : {b}[{h}] -> {a}[{g}] [receive] via NET/IB/{n}/GDRDMA",
    "INFO Trees [{c}] {a}/{b}/-1->{g}->{h}",
    "INFO comm 0x{p:012x} rank {a} nRanks 2048 nNodes 256 localRanks 8 localRank {g} MNNVL 0",
    (
        "INFO AllReduce: opCount {o:x} sendbuff 0x{p:012x} recvbuff 0x{p:012x} count {o} datatype 7"
        " op 0 root 0 comm 0x{p:012x} [nranks=2048] stream 0x{p:012x}"
    ),
    "INFO NCCL_SOCKET_IFNAME set by environment to bond0",
    "INFO NET/IB : Using [0]mlx5_2:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB bond0:10.44.{g}.{h}<0>",
    "INFO Connected all trees",
    "INFO threadThresholds 8/8/64 | 16384/8/64 | 512 | 512",
    "INFO Setting affinity for GPU {g} to ff,ffff0000,00ffffff",
    (
        "INFO 16 coll channels, 16 collnet channels, 8 nvls channels, 16 p2p channels,"
        " 2 p2p channels per peer"
    ),
]
MESSAGES = [
    "WARN Call to ibv_create_qp failed with error Invalid argument",
    "WARN Call to ibv_modify_qp failed with error No such device",
    (
        "WARN NET/IB : Got completion from peer 10.44.{g}.{h}<{o}> with status=12 opcode=0 len=0"
        " vendor err 129 (Send) localGid fe80::a remoteGids fe80::b hca mlx5_{n}"
    ),
    "WARN NET/IB : mlx5_{n}:1 Got async event : port error",
    "WARN socketProgress: Connection closed by remote peer rack03-node{g:02d}<{o}>",
    "WARN socketStartConnect: Connect to 10.44.{g}.{h}<{o}> failed : Connection refused",
    "WARN Cuda failure 'unspecified launch failure'",
    "WARN Cuda failure 2 'out of memory'",
    "WARN Error while creating shared memory segment /dev/shm/nccl-Q{o} (size 9637888)",
    "WARN Duplicate GPU detected : rank {a} and rank {b} both on CUDA device {g}000",
    "WARN [Proxy Service {a}] Failed to execute operation Connect from rank {b}, retcode 3",
    "INFO Bootstrap : no socket interface found",
    "INFO Using network Socket",
    "INFO GPU Direct RDMA Disabled for GPU {g} / HCA {n} (distance 7 > 4)",
    "INFO Channel {c:02d} : {a}[{g}] -> {b}[{h}] via SHM/direct/direct",
    "INFO comm 0x{p:012x} rank {a} nranks 2048 cudaDev {g} busId 4b000 - Abort COMPLETE",
    "INFO proxy.cc:{o} -> 3",
]
# What to look for where nobody names a better list: a pattern for each message above.
PATTERNS = """\
Call to ibv_[a-z_]+ failed
Got completion from peer .* status=12
Got async event : port error
Connection closed by remote peer
Connect to .* failed : Connection refused
Cuda failure '[a-z ]+'
Cuda failure [0-9]+ '
Error while creating shared memory segment
Duplicate GPU detected
Failed to execute operation
no socket interface found
Using network Socket
GPU Direct RDMA Disabled for GPU [0-9]+
via SHM/direct
Abort COMPLETE
\\.cc:[0-9]+ -> [0-9]+
"""
BESIDE = Path(__file__).parents[2] / "shared" / "tools" / "scan_patterns.txt"
AIMS = {0.04: 0.4, 0.001: 0.6}
MEMORY_AIM_MB = 300
SMALL_MEGABYTES = 30
FILE_BYTES = 300_000
# Longer logs say the same again: making up lines takes longer than all that is measured.
_BASE_BYTES = 150_000_000
_BATCH_LINES = 20_000


def write_log(path: Path, megabytes: int, share: float) -> None:
    """A log of which ``share`` of the lines matter."""
    chance = random.Random(11)
    left = megabytes * 1_000_000
    with path.open("w+b") as file:
        while left > 0 and file.tell() < _BASE_BYTES:
            batch = "".join(line(chance, share) for _ in range(_BATCH_LINES)).encode()[:left]
            left -= file.write(batch)
        again = 0
        while left > 0:
            batch = os.pread(file.fileno(), min(left, 1 << 20), again)
            again += len(batch)
            left -= file.write(batch)
            file.flush()


def write_files(folder: Path, count: int, log: Path) -> None:
    """Pieces of ``log`` as so many files, as jobs write that have one for each rank."""
    folder.mkdir()
    with log.open("rb") as file:
        for number in range(count):
            piece = file.read(FILE_BYTES)
            if len(piece) < FILE_BYTES:
                file.seek(0)
                piece = file.read(FILE_BYTES)
            (folder / f"rank{number:05d}.log").write_bytes(piece)


def line(chance: random.Random, share: float) -> str:
    a, b = chance.randrange(2048), chance.randrange(2048)
    form = chance.choice(MESSAGES if chance.random() < share else ORDINARY)
    text = form.format(
        a=a,
        b=b,
        g=a % 8,
        h=b % 8,
        c=chance.randrange(16),
        n=chance.randrange(8),
        o=chance.randrange(1 << 26),
        p=chance.randrange(1 << 47),
    )
    return f"{HOSTS[a // 8]}:{30000 + a}:{30700 + a} [{a % 8}] NCCL {text}\n"


def timed(argv: list[str], **environment: str) -> tuple[float, float, bytes]:
    """Seconds, the memory of the largest process in MB, and what a run printed."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, stdout=out, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - began
        out.seek(0)
        return took, usage.ru_maxrss / 1024, out.read()


def ncdiag(path: Path, jobs: int = 2) -> list[str]:
    arguments = ["parse-log", "--format", "json", "--jobs", str(jobs), str(path)]
    return [sys.executable, "-m", "ncdiag", *arguments]


def compare(path: Path, share: float, patterns: Path, runs: int) -> None:
    """Print the speed of each program on ``path``, and its ratio to ripgrep's."""
    size = path.stat().st_size
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    rg = shutil.which("rg", path=beside)
    if rg is None:
        sys.exit("rg is missing: pip install 'ripgrep==14.1.*'")
    programs: dict[str, tuple[list[str], dict[str, str]]] = {
        "rg -c -f": ([rg, "-c", "-f", str(patterns), str(path)], {}),
        "grep -cE -f": (["grep", "-cE", "-f", str(patterns), str(path)], {"LC_ALL": "C"}),
        "ncdiag parse-log --jobs 2": (ncdiag(path), {}),
    }
    results: dict[str, list[tuple[float, float, bytes]]] = {name: [] for name in programs}
    for _ in range(runs):
        for name, (argv, environment) in programs.items():
            results[name].append(timed(argv, **environment))
    print(f"\n{share:.1%} of the lines matter, {size / 1e6:,.0f} MB")
    yardstick = statistics.median(took for took, _, _ in results["rg -c -f"])
    for name, measured in results.items():
        took = statistics.median(took for took, _, _ in measured)
        memory = max(memory for _, memory, _ in measured)
        ratio = yardstick / took
        aim = f" (aim {AIMS[share]})" if name.startswith("ncdiag") else ""
        speed = f"{size / took / 1e6:8,.0f} MB/s"
        print(f"{name:28} {took:6.2f} s {speed} {ratio:5.2f} of rg{aim}, {memory:,.0f} MB")


def engines_agree(directory: Path) -> None:
    """Whether both engines lead to the same answer on a smaller log."""
    path = directory / "small.log"
    write_log(path, SMALL_MEGABYTES, 0.04)
    answers = [
        json.loads(timed(ncdiag(path, jobs), NCDIAG_SCAN=engine)[2])
        for engine, jobs in (("hyperscan", 1), ("re", 1))
    ]
    print(f"re and hyperscan agree on {SMALL_MEGABYTES} MB: {answers[0] == answers[1]}")


def small_log(directory: Path) -> None:
    path = directory / "tiny.log"
    path.write_text("".join(line(random.Random(3), 0.2) for _ in range(200)))
    took = statistics.median(timed(ncdiag(path))[0] for _ in range(5))
    print(f"a log of 200 lines: {took:.2f} s from start to end (aim 0.6)")


def many_files(directory: Path, log: Path, count: int) -> None:
    folder = directory / "ranks"
    write_files(folder, count, log)
    took, memory, said = timed(ncdiag(folder))
    read = len(json.loads(said)["inputs"])
    print(
        f"\n{read} of {count} files of {FILE_BYTES // 1000} KB read: {took:.1f} s, {memory:,.0f} MB"
    )
    print(f"(memory is that of the largest process, aim {MEMORY_AIM_MB})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=3000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--log", action="append", default=[], metavar="SHARE=FILE")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as name:
        directory = Path(name)
        patterns = BESIDE
        if not patterns.exists():
            patterns = directory / "patterns.txt"
            patterns.write_text(PATTERNS)
        for given in chosen.log:
            share, _, file = given.partition("=")
            compare(Path(file), float(share), patterns, chosen.runs)
        if chosen.log:
            return
        small_log(directory)
        engines_agree(directory)
        for share in AIMS:
            path = directory / "large.log"
            write_log(path, chosen.megabytes, share)
            compare(path, share, patterns, chosen.runs)
        many_files(directory, path, chosen.files)


if __name__ == "__main__":
    main()
