"""What the engine has a host's worker do: JSON in, JSON out."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import msgspec

from ncdiag.cluster.launchers import Launch
from ncdiag.cluster.processes import Ended, run
from ncdiag.health.counters import Counters, read_counters
from ncdiag.health.cpu import CpuTimes, read_cpu_times
from ncdiag.health.nics import find_nics
from ncdiag.health.self_report import self_report
from ncdiag.measure.engines.perftest.commands import server_argv
from ncdiag.measure.engines.perftest.listening import child_listens, free_port
from ncdiag.measure.engines.perftest.messages import (
    Build,
    ConnectTask,
    FinishTask,
    Prepared,
    PrepareTask,
    Served,
    ServeTask,
    Side,
)
from ncdiag.measure.engines.perftest.outcome import CROSSED_SHARE, judge
from ncdiag.measure.engines.perftest.programs import (
    UnusableError,
    find_build,
    has_open_driver,
    has_peer_memory,
)
from ncdiag.model.host import Nic

_PORT_ATTEMPTS = 3
_POLL_S = 0.02
# Drivers that fetch counters from the card once a second show a transfer only afterwards.
_COUNTER_LAG_S = 1.2


def prepare(payload: bytes) -> bytes:
    """Say what this host is and what it has of perftest (PrepareTask to Prepared)."""
    task = msgspec.json.decode(payload, type=PrepareTask)
    report = self_report(task.host, task.question)
    build: Build | None = None
    problem: str | None = None
    try:
        build = find_build(task.program, task.variables)
    except UnusableError as error:
        problem = str(error)
    ports, _ = find_nics((), report.own_address)
    return msgspec.json.encode(
        Prepared(
            report=report,
            rdma_ports=tuple(port for port in ports if port.hca),
            build=build,
            problem=problem,
            peer_memory=has_peer_memory(),
            open_driver=has_open_driver(),
        )
    )


def serve(payload: bytes) -> bytes:
    """Start the side that waits, and return once it does (ServeTask to Served)."""
    task = msgspec.json.decode(payload, type=ServeTask)
    end_s = time.monotonic() + task.start_s
    served = Served(problem="no TCP port could be used")
    for _ in range(_PORT_ATTEMPTS):
        served, again = _serve_on(task, free_port(), end_s)
        if not again:
            break
    return msgspec.json.encode(served)


def connect(payload: bytes) -> bytes:
    """Run the side that connects, to its end (ConnectTask to Side)."""
    task = msgspec.json.decode(payload, type=ConnectTask)
    watch = Watch.begin(task.nic)
    launch = Launch(argv=task.argv, hosts=(), environment=task.variables)
    ended = run(launch, timeout_s=task.deadline_s)
    side = judge(ended, reports=True)
    moved = side.figures.payload_bytes if side.figures else 0
    return msgspec.json.encode(watch.end(side, moved))


def finish(payload: bytes) -> bytes:
    """End the side that waited (FinishTask to Side)."""
    task = msgspec.json.decode(payload, type=FinishTask)
    server = _servers().pop(task.run_id, None)
    if server is None:
        return msgspec.json.encode(Side(problem="its worker was started anew meanwhile"))
    ended = server.end(task.grace_s)
    return msgspec.json.encode(server.watch.end(judge(ended, reports=False), task.payload_bytes))


@dataclass(frozen=True, slots=True)
class Watch:
    """What a host's own counters showed before a run."""

    nic: Nic
    counters: Counters | None
    cpu: CpuTimes

    @classmethod
    def begin(cls, nic: Nic) -> "Watch":
        """Look at them now."""
        return cls(nic, _counters(nic), read_cpu_times())

    def end(self, side: Side, payload_bytes: int) -> Side:
        """The side with what they show now; waits for a port that is late to tell."""
        idle = read_cpu_times().idle_share_since(self.cpu)
        end_s = time.monotonic() + _COUNTER_LAG_S
        while True:
            now = _counters(self.nic)
            if now is None or self.counters is None:
                return msgspec.structs.replace(side, idle=idle)
            moved = now.since(self.counters)
            late = max(moved.tx_bytes, moved.rx_bytes) < CROSSED_SHARE * payload_bytes
            if not late or time.monotonic() > end_s:
                return msgspec.structs.replace(
                    side, idle=idle, tx_bytes=moved.tx_bytes, rx_bytes=moved.rx_bytes
                )
            time.sleep(_POLL_S)


@dataclass(slots=True)
class Server:
    """A program that waits for the other side, in a thread that lives as long as it does."""

    watch: Watch
    _stop: threading.Event = field(default_factory=threading.Event)
    _ended: list[Ended] = field(default_factory=list)
    _thread: threading.Thread | None = None

    def start(self, launch: Launch, lifetime_s: float) -> None:
        """Start it; it is killed after ``lifetime_s``, and with this process."""
        self._thread = threading.Thread(
            target=lambda: self._ended.append(run(launch, timeout_s=lifetime_s, stop=self._stop)),
            name="perftest server",
            daemon=True,
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread is not None and self._thread.is_alive()

    def end(self, grace_s: float) -> Ended:
        """How it ended, by itself within ``grace_s`` or killed after that."""
        thread = self._thread
        if thread is None:
            raise RuntimeError("a server is started before it ends")
        thread.join(grace_s)
        self._stop.set()
        thread.join()
        return self._ended[0]


@cache
def _servers() -> dict[str, Server]:
    """The programs of this process that wait, by the name of their run."""
    return {}


def _serve_on(
    task: ServeTask, port: int, end_s: float, listens: Callable[[int], bool] = child_listens
) -> tuple[Served, bool]:
    """Wait on ``port``; whether another port should be tried, since this one was lost."""
    server = Server(Watch.begin(task.nic))
    argv = server_argv(task.argv, port)
    server.start(Launch(argv=argv, hosts=(), environment=task.variables), task.lifetime_s)
    while server.running:
        if listens(port):
            _servers()[task.run_id] = server
            return Served(port=port), False
        if time.monotonic() > end_s:
            server.end(0.0)
            return Served(problem=f"it did not listen within {task.start_s:g} s"), False
        time.sleep(_POLL_S)
    side = judge(server.end(0.0), reports=False)
    problem = side.problem or "it ended without waiting for the other side"
    return Served(problem=problem), "listen to port" in problem


def _counters(nic: Nic) -> Counters | None:
    try:
        return read_counters(nic)
    except (OSError, ValueError):
        return None
