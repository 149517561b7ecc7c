"""How ``ncdiag serve`` holds under load: every request answered, in memory that does not grow.

    python benchmarks/serve.py [--seconds 30] [--connections 64]

wrk asks for the index, the metrics and a report in turn, over connections that it keeps. Where wrk
is missing that is said, and a client in this file asks, less often.
"""

import argparse
import http.client
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from ncdiag.model.bench import BenchReport
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
from ncdiag.report.bench.write import write_all as write_bench
from ncdiag.report.write import write_all

HOSTS = 32
PAGES = ("/", "/metrics", "/healthz", "/reports/sweep-1/report.html")
WARM_UP_S = 3


def write_reports(folder: Path) -> None:
    names = [f"gpu{number:03}" for number in range(HOSTS)]
    links = tuple(
        LinkVerdict(source=one, target=two, rail=0, status=LinkStatus.HEALTHY,
                    measured_gbit_per_s=395.0, expected_gbit_per_s=400.0, efficiency=0.98)
        for one in names
        for two in names
        if one != two
    )  # fmt: skip
    plan = SweepPlan(
        mode="full", hosts=HOSTS, rounds=HOSTS - 1, pairs=len(links) // 2, engine="torch",
        launcher="ssh",
    )  # fmt: skip
    hosts = tuple(HostVerdict(name=name, status=HostStatus.HEALTHY) for name in names)
    diagnosis = Diagnosis(verdict=Verdict.HEALTHY, links=links, hosts=hosts, good=tuple(names))
    for number in range(1, 11):
        report = SweepReport(
            started=f"2026-01-{number:02}T00:00:00Z", seconds=60.0, plan=plan, diagnosis=diagnosis
        )
        write_all(report, folder / f"sweep-{number}")
    bench = BenchReport(
        started="2026-01-01T00:00:00Z", seconds=1.0, collective="all_reduce", engine="torch",
        launcher="ssh", verdict=Verdict.INCONCLUSIVE, curves=(),
    )  # fmt: skip
    write_bench(bench, folder / "bench-1")


def start(folder: Path) -> tuple[subprocess.Popen[str], int]:
    argv = [sys.executable, "-m", "ncdiag", "serve", "--reports", str(folder), "--port", "0"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline() if process.stderr else ""
    found = re.search(r":(\d+)/$", line.strip())
    if found is None:
        sys.exit(f"serve did not start: {line}")
    return process, int(found[1])


def wrk(port: int, seconds: int, connections: int, script: Path) -> tuple[int, int, float]:
    """Requests, errors of any sort, and requests a second."""
    paths = ", ".join(f'"{page}"' for page in PAGES)
    script.write_text(
        f"local paths = {{{paths}}}\nlocal at = 0\n"
        "request = function() at = at % #paths + 1; return wrk.format('GET', paths[at]) end\n"
    )
    argv = ["wrk", "-t", "2", "-c", str(connections), "-d", f"{seconds}s", "-s", str(script)]
    done = subprocess.run(
        [*argv, "--timeout", "10s", f"http://127.0.0.1:{port}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    sockets = re.search(r"Socket errors: (.*)", done.stdout)
    errors = sum(map(int, re.findall(r"\d+", sockets[1]))) if sockets else 0
    errors += int(figure(r"Non-2xx or 3xx responses: (\d+)", done.stdout))
    requests = figure(r"(\d+) requests in", done.stdout)
    return int(requests), errors, figure(r"Requests/sec:\s+([\d.]+)", done.stdout)


def figure(pattern: str, text: str) -> float:
    """The number that ``pattern`` finds; wrk leaves out what is none."""
    found = re.search(pattern, text)
    return float(found[1]) if found else 0.0


def own_client(port: int, seconds: int, connections: int) -> tuple[int, int, float]:
    """As :func:`wrk`, by threads."""
    counts = [[0, 0] for _ in range(connections)]
    until = time.monotonic() + seconds

    def ask(count: list[int]) -> None:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        while time.monotonic() < until:
            try:
                client.request("GET", PAGES[count[0] % len(PAGES)])
                with client.getresponse() as answer:
                    answer.read()
                    count[1] += answer.status != 200
            except OSError:
                count[1] += 1
                client.close()
            count[0] += 1

    threads = [threading.Thread(target=ask, args=(count,)) for count in counts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    requests = sum(count[0] for count in counts)
    return requests, sum(count[1] for count in counts), requests / seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--connections", type=int, default=64)
    asked = parser.parse_args()
    has_wrk = shutil.which("wrk") is not None
    if not has_wrk:
        print("wrk is missing (package wrk): asked by threads of Python instead, which ask less")
    with tempfile.TemporaryDirectory() as folder:
        write_reports(Path(folder, "reports"))
        process, port = start(Path(folder, "reports"))
        try:
            memory = psutil.Process(process.pid).memory_info

            def load(seconds: int) -> tuple[int, int, float]:
                if has_wrk:
                    return wrk(port, seconds, asked.connections, Path(folder, "pages.lua"))
                return own_client(port, seconds, asked.connections)

            load(WARM_UP_S)
            before = memory().rss
            requests, errors, rate = load(asked.seconds)
            after = memory().rss
        finally:
            process.terminate()
            code = process.wait(10)
    print(f"{requests:,} requests over {asked.connections} connections in {asked.seconds} s")
    print(f"{rate:,.0f} requests/s, {errors} errors")
    print(
        f"memory {before / 2**20:.1f} MiB after {WARM_UP_S} s, {after / 2**20:.1f} MiB at the end"
    )
    print(f"exit code {code} on SIGTERM")
    return int(errors > 0 or after > before * 1.1)


if __name__ == "__main__":
    sys.exit(main())
