"""How fast ``ncdiag topo`` compares the dumps of a fleet, beside xml.etree only parsing them.

python benchmarks/topology.py [--hosts 10000] [--directory /tmp] [--runs 5]

The dumps are of servers with eight GPUs, four NVLink switches and eight cards of two ports. All
differ in what healthy hosts differ in, and seven hosts have a fault, which must be named. Time and
memory are those of the whole command.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PARSE = (
    "import sys, xml.etree.ElementTree as tree\n"
    "for path in sys.stdin.read().splitlines(): tree.parse(path)"
)
LINK = 'link_speed="32.0 GT/s PCIe" link_width="{lanes}"'
FAULTS = ("links", "card", "port", "width", "generation", "gpu", "socket")


class Run(NamedTuple):
    """One process: elapsed and CPU seconds, most memory of one, its output."""

    seconds: float
    cpu_seconds: float
    megabytes: float
    output: str


def device(number: int, kind: str, link: str = LINK.format(lanes=16)) -> str:
    """The opening of one ``pci`` element; ``kind`` is its class and its model."""
    return f'<pci busid="0000:{number:02x}:00.0" {kind} {link}>'


def gpu(number: int, at: int, host: int, chance: random.Random, fault: str | None) -> str:
    """One GPU with its links to four switches."""
    counts = [5, 5, 4, 4]
    chance.shuffle(counts)
    if fault == "links" and at == 3:
        counts.pop()
    rows = "".join(
        f'<nvlink target="0000:0{switch}:00.0" count="{count}" tclass="0x068000"/>'
        for switch, count in enumerate(counts, 1)
    )
    opening = device(number, 'class="0x030200" vendor="0x10de" device="0x2330"')
    return f'{opening}<gpu dev="{at}" sm="90" rank="{8 * host + at}" gdr="1">{rows}</gpu></pci>'


def card(number: int, at: int, chance: random.Random, fault: str | None) -> str:
    """One card with two ports."""
    odd = at == 5
    link = LINK.format(lanes=8 if fault == "width" and odd else 16)
    if fault == "generation" and odd:
        link = link.replace("32.0", "8.0")
    ports = "".join(
        f'<net name="mlx5_{2 * at + port}" dev="{2 * at + port}" port="{port + 1}" latency="0.0" '
        f'speed="{100000 if fault == "port" and odd and port else 200000}" '
        f'guid="0x{chance.getrandbits(64):x}" maxconn="131072" gdr="1"/>'
        for port in range(2)
    )
    opening = device(number, 'class="0x020700" vendor="0x15b3" device="0x1021"', link)
    return f"{opening}<nic>{ports}</nic></pci>"


def dump(host: int, fault: str | None) -> str:
    """The topology of one host."""
    chance = random.Random(host)
    sockets = []
    moved = ""
    for socket in range(2):
        slots = []
        for at in range(4 * socket, 4 * socket + 4):
            number = 0x10 + 0x10 * at
            below = "" if fault == "gpu" and at == 2 else gpu(number + 4, at, host, chance, fault)
            adapter = card(number + 2, at, chance, fault)
            if fault == "socket" and at == 1:
                moved, adapter = adapter, ""
            if fault == "card" and at == 6:
                adapter = ""
            opening = device(number, 'class="0x060400" vendor="0x1000" device="0xc030"')
            slots.append(f"{opening}{below}{adapter}</pci>")
        rest = moved if socket else ""
        sockets.append(
            f'<cpu numaid="{socket}" host_hash="0x{host:x}" affinity="ffff" arch="x86_64" '
            f'vendor="GenuineIntel" familyid="6" modelid="143">{"".join(slots)}{rest}</cpu>'
        )
    return f'<system version="1">{"".join(sockets)}</system>'.replace("><", ">\n<")


def write(folder: Path, hosts: int) -> set[str]:
    """Write the dumps of a fleet; the names of the hosts with a fault."""
    odd = dict(zip(random.Random(1).sample(range(hosts), len(FAULTS)), FAULTS, strict=True))
    for host in range(hosts):
        (folder / f"gpu{host:05}.xml").write_text(dump(host, odd.get(host)))
    return {f"gpu{host:05}" for host in odd}


def run(arguments: list[str], text: str = "") -> Run:
    """One run of Python from start to end."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as said:
        given.write(text)
        given.seek(0)
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, *arguments], stdin=given, stdout=said)
        _, _, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        said.seek(0)
        cpu = usage.ru_utime + usage.ru_stime
        return Run(seconds, cpu, usage.ru_maxrss / 1000, said.read())


def tell(what: str, made: Run, yardstick: Run) -> None:
    """Print one line; CPU seconds tell more than elapsed ones where the machine is busy."""
    print(
        f"{what:26} {made.seconds:6.2f} s, {made.cpu_seconds:6.2f} s of CPU, "
        f"{made.megabytes:5.0f} MB, {made.seconds / yardstick.seconds:5.1f} times"
    )


def main() -> None:
    """Print seconds, memory and the ratios to the yardstick; fail if the odd hosts are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--directory", default=None)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        folder = Path(name)
        odd = write(folder, options.hosts)
        paths = "\n".join(map(str, sorted(folder.iterdir())))
        bare = run(["-c", PARSE], paths)
        found = run(["-m", "ncdiag", "topo", "diff", "--format", "json", name])
        one = str(next(folder.iterdir()))
        shown = [run(["-m", "ncdiag", "topo", "show", one]) for _ in range(options.runs)]
        parsed = [run(["-c", PARSE], one) for _ in range(options.runs)]
    tell(f"{options.hosts} dumps: xml.etree", bare, bare)
    tell(f"{options.hosts} dumps: topo diff", found, bare)
    typical = [sorted(runs)[len(runs) // 2] for runs in (parsed, shown)]
    tell("one dump: xml.etree", typical[0], typical[0])
    tell("one dump: topo show", typical[1], typical[0])
    named = {
        finding["where"]
        for finding in json.loads(found.output)["findings"]
        if finding["severity"] != "info"
    }
    if named != odd:
        sys.exit(f"named {sorted(named)}, planted {sorted(odd)}")
    print(f"the {len(odd)} odd hosts are named, and nobody else")


main()
