"""Stands in for perftest where there is no RDMA: the same options, the same output, real bytes.

A port of ``/sys/class/infiniband`` stands for the network interface that its ``gid_attrs/ndevs/0``
names. What the real program would write into the other side's memory goes over TCP between the
addresses of these two interfaces, and the port's counters become the interface's own. Linux has no
such directory without RDMA: :mod:`fake_rdma` mounts one.

``FAKE_PERFTEST_FAULTS`` names a JSON file that maps an interface's address to what goes wrong
there: ``hang``, ``crash``, ``completion-error``, ``silent`` or ``other-way``. With
``FAKE_PERFTEST_BUILD=cuda`` the help speaks of CUDA.
"""

import contextlib
import getopt
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import layouts

Moved = dict[str, float]
SHORT = "abc:d:D:f:Fhi:I:l:m:n:Np:q:Q:Rs:S:t:T:u:Vx:"
LONG = [
    "help", "version", "all", "bidirectional", "ib-dev=", "duration=", "margin=", "CPU-freq",
    "ib-port=", "iters=", "noPeak", "port=", "qp=", "size=", "gid-index=", "out_json",
    "out_json_file=", "report_gbits", "report-both", "run_infinitely", "tclass=",
]  # fmt: skip
CUDA = ["use_cuda=", "use_cuda_dmabuf"]
INFINIBAND = Path("/sys/class/infiniband")
CHUNK = 1 << 16
QUIET_S = 30.0


class FailedError(Exception):
    """The program ends with an error."""


@dataclass
class Settings:
    """What the command line says."""

    program: str
    device: str = ""
    port: int = 1
    tcp_port: int = 18515
    size: int = 65536
    iterations: int = 5000
    duration: int | None = None
    margin: int = 0
    gbits: bool = False
    server: str | None = None


def main() -> int:
    """Act as the program that bears our name."""
    try:
        settings = parse(Path(sys.argv[0]).name, sys.argv[1:])
        if settings is not None:
            run(settings)
    except FailedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0 if settings else 1


def say(text: str) -> None:
    """Print lines, which stay in a buffer if nobody sits at a terminal."""
    sys.stdout.write(f"{text}\n")


def parse(program: str, argv: list[str]) -> Settings | None:
    """The settings; ``None`` where the program only tells about itself."""
    long = LONG + (CUDA if os.environ.get("FAKE_PERFTEST_BUILD") == "cuda" else [])
    try:
        options, rest = getopt.gnu_getopt(argv, SHORT, long)
    except getopt.GetoptError as error:
        text = f"{program}: {error}\n Invalid Command or flag.\n Please check command line"
        raise FailedError(f"{text} and run again.\n\n Parser function exited with Error") from None
    found = dict(options)
    if "-h" in found or "--help" in found:
        say(f"Usage:\n  {program}            start a server and wait for connection\n\nOptions:")
        say("".join(f"      --{name}\n" for name in long))
        return None
    if "-V" in found or "--version" in found:
        say("Version: 6.06")
        return None
    settings = Settings(program=program, gbits="--report_gbits" in found)
    settings.device = found.get("-d", found.get("--ib-dev", ""))
    settings.server = rest[0] if rest else None
    for name, option in (("port", "-i"), ("tcp_port", "-p"), ("size", "-s"), ("margin", "-f")):
        setattr(settings, name, int(found.get(option, getattr(settings, name))))
    settings.iterations = int(found.get("-n", settings.iterations))
    settings.duration = int(found["-D"]) if "-D" in found else None
    if settings.duration is not None and settings.duration <= 2 * settings.margin:
        raise FailedError(" please check that DURATION > 2*MARGIN")
    return settings


def run(settings: Settings) -> None:
    """Measure with the other side."""
    interface, own = port_of(settings)
    fault = faults().get(own, "")
    if fault == "silent":
        return
    if settings.duration is not None:
        say(" WARNING: BW peak won't be measured in this run.")
    with control_connection(settings) as control:
        if fault == "hang":
            time.sleep(3600)
        if fault == "crash":
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGSEGV)
        talk = Talk(control, control.makefile("r", encoding="ascii"))
        other = swap(talk, {"program": settings.program, "address": own, "size": settings.size})
        if other["program"] != settings.program or other["size"] != settings.size:
            raise FailedError("Failed to exchange data between server and clients")
        announce(settings, own, other["address"])
        sends = (settings.server is not None) is (settings.program != "ib_read_bw")
        moved = transfer(settings, talk, own, other["address"], sends=sends)
        result = swap(talk, moved)
        if fault == "completion-error":
            raise FailedError(
                " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
                "scnt=128, ccnt=0"
            )
        if sends:
            moved = result
        report(settings, moved["bytes"], moved["seconds"])
        update_counters(settings, interface if fault != "other-way" else "lo")


def port_of(settings: Settings) -> tuple[str, str]:
    """The interface that a port stands for, and its address."""
    names = INFINIBAND / settings.device / f"ports/{settings.port}/gid_attrs/ndevs/0"
    try:
        interface = names.read_text().strip()
    except OSError:
        text = f" IB device {settings.device} not found\n Unable to find the Infiniband/RoCE device"
        raise FailedError(text) from None
    shown = subprocess.run(
        ["ip", "-json", "-4", "address", "show", "dev", interface],
        capture_output=True,
        check=True,
    )
    return interface, json.loads(shown.stdout)[0]["addr_info"][0]["local"]


def faults() -> dict[str, str]:
    """What goes wrong where."""
    with contextlib.suppress(KeyError, OSError):
        found: dict[str, str] = json.loads(Path(os.environ["FAKE_PERFTEST_FAULTS"]).read_text())
        return found
    return {}


def control_connection(settings: Settings) -> socket.socket:
    """Where both sides meet first."""
    if settings.server is not None:
        try:
            return socket.create_connection((settings.server, settings.tcp_port), timeout=QUIET_S)
        except OSError:
            text = f"Couldn't connect to {settings.server}:{settings.tcp_port}"
            text += "\nUnable to open file descriptor for socket connection"
            raise FailedError(text) from None
    try:
        listener = socket.create_server(("", settings.tcp_port), backlog=1)
    except OSError:
        raise FailedError(f"Couldn't listen to port {settings.tcp_port}") from None
    with listener:
        say("\n".join(layouts.WAITING))
        connection, _ = listener.accept()
        return connection


@dataclass
class Talk:
    """The connection on which both sides meet."""

    control: socket.socket
    lines: Any


def swap(talk: Talk, mine: dict[str, Any]) -> dict[str, Any]:
    """Tell the other side something and hear the same from it."""
    with contextlib.suppress(OSError):
        talk.control.sendall(json.dumps(mine).encode() + b"\n")
        if line := talk.lines.readline():
            heard: dict[str, Any] = json.loads(line)
            return heard
    text = "ethernet_read_keys: Couldn't read remote address"
    raise FailedError(f"{text}\n Unable to read to socket/rdma_cm")


def announce(settings: Settings, own: str, other: str) -> None:
    """Print what comes before the report."""
    lines = layouts.parameters(layouts.title(settings.program), settings.device)
    lines += layouts.address("local", own) + layouts.address("remote", other)
    lines += [layouts.RULE, layouts.heading("Gb/sec" if settings.gbits else "MB/sec")]
    say("\n".join(lines))


def transfer(settings: Settings, talk: Talk, own: str, other: str, *, sends: bool) -> Moved:
    """Move payload from one interface to the other; what the side that receives it saw."""
    if sends:
        port = swap(talk, {})["port"]
        address, source = (other, int(port)), (own, 0)
        with socket.create_connection(address, QUIET_S, source) as connection:
            return send(connection)
    with socket.create_server((own, 0)) as listener:
        swap(talk, {"port": listener.getsockname()[1]})
        connection, _ = listener.accept()
    with connection:
        return receive(settings, connection)


def send(connection: socket.socket) -> Moved:
    """Send for as long as the receiver listens."""
    payload = os.urandom(CHUNK)
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(payload)
    return {"bytes": 0, "seconds": 0.0}


def receive(settings: Settings, connection: socket.socket) -> Moved:
    """Count what comes between the margins, or up to the number of messages."""
    buffer = bytearray(CHUNK)
    began = since = now = time.monotonic()
    total = before = 0
    while size := connection.recv_into(buffer):
        now = time.monotonic()
        if not total:
            began = since = now
        total += size
        if settings.duration is None:
            if total >= settings.size * settings.iterations:
                break
        elif now - began < settings.margin:
            before, since = total, now
        elif now - began >= settings.duration - settings.margin:
            break
    return {"bytes": total - before, "seconds": max(now - since, 1e-9)}


def report(settings: Settings, moved: int, seconds: float) -> None:
    """Print the table's row and close it."""
    iterations = moved // settings.size
    rate = iterations * settings.size / seconds
    average = rate * 8e-9 if settings.gbits else rate / 2**20
    say(layouts.row(settings.size, iterations, average=average, mpps=iterations / seconds / 1e6))
    say(layouts.RULE)


def update_counters(settings: Settings, interface: str) -> None:
    """Have the port's counters, in words of four bytes, show what its interface has moved."""
    counters = INFINIBAND / settings.device / f"ports/{settings.port}/counters"
    statistics = Path(f"/sys/class/net/{interface}/statistics")
    for counter, statistic in (("port_xmit_data", "tx_bytes"), ("port_rcv_data", "rx_bytes")):
        moved = int((statistics / statistic).read_text()) // 4
        new = counters / f".{counter}.{os.getpid()}"
        new.write_text(f"{moved}\n")
        new.rename(counters / counter)


if __name__ == "__main__":
    sys.exit(main())
