"""One rank on its host: runs the program with what pins it to a NIC, and says what that NIC saw.

Started by an MPI launcher as ``python -P -m ncdiag.measure.nccl_tests_rank VARIABLE
JSON``: the environment variable that holds the rank, and what to run. Everything goes to standard
output in marked lines: what the program prints, and at last the report. Thousands of these are
started in a sweep, so only what is quick to import is, and it does not lie with its engine, whose
packages are not.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from typing import IO, Any, cast

from ncdiag.cluster.children import has_ended, kill_group
from ncdiag.cluster.die_with_parent import (
    die_with_launcher,
    die_with_parent,
    nobody_listens,
)
from ncdiag.health.counters import Counters, read_counters
from ncdiag.health.cpu import read_cpu_times
from ncdiag.measure.foreign import without_foreign
from ncdiag.model.host import Nic, NicKind

MODULE = "ncdiag.measure.nccl_tests_rank"
MARK = "ncdiag-rank"
# Short enough for a pipe to take it in one piece, whoever else writes to it.
_MAX_LINE_BYTES = 2000
_MAX_LINES = 4000
_MAX_LOG_LINES = 20
# Drivers that fetch counters from the card once a second show a transfer only afterwards.
_COUNTER_LAG_S = 1.2
_COUNTER_RETRY_S = 0.05
_LAST_WORDS_S = 1.0
# How often a program that says nothing is looked at, and one that has closed its output.
_LOOK_S = 0.2
_TICK_S = 0.002


class Rank:
    """One of the two ranks of a pair."""

    def __init__(self, rank: int, job: dict[str, Any]) -> None:
        self._rank = rank
        self._job = job
        self._end: dict[str, Any] = job["ends"][rank]
        self._nic = Nic(**{**self._end["nic"], "kind": NicKind(self._end["nic"]["kind"])})
        self._lines = 0

    def run(self) -> None:
        """Run the program to its end, or to its deadline; the report is said in any case."""
        report: dict[str, Any] = {"host": self._end["host"]}
        try:
            before, cpu_before = read_counters(self._nic), read_cpu_times()
        except (OSError, ValueError) as error:
            report["error"] = f"the counters of {self._nic.name} cannot be read: {error}"
            self._say("end", json.dumps(report))
            return
        began_s = time.monotonic()
        log = os.memfd_create("nccl", 0)  # inherited, and nothing of it stays behind
        try:
            report |= self._run_program(log)
        except OSError as error:
            report["error"] = f"{error.filename or self._job['argv'][0]}: {error.strerror}"
        report["seconds"] = time.monotonic() - began_s
        report["idle"] = read_cpu_times().idle_share_since(cpu_before)
        moved = self._moved(before, wait=report.get("code") == 0)
        report["tx_bytes"], report["rx_bytes"] = moved.tx_bytes, moved.rx_bytes
        self._tell_log(log)
        self._say("end", json.dumps(report))

    def _run_program(self, log: int) -> dict[str, Any]:
        process = subprocess.Popen(
            die_with_parent([self._end["program"], *self._job["arguments"]]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment(log),
            close_fds=False,  # MPI libraries talk to their launcher over one
            start_new_session=True,
        )
        try:
            killed = not self._listen(process)
        finally:
            kill_group(process)
        return {"code": process.wait(), "killed": killed}

    def _environment(self, log: int) -> dict[str, str]:
        return {
            **without_foreign(os.environ),
            **self._job["variables"],
            "NCCL_DEBUG": "WARN",
            "NCCL_DEBUG_FILE": f"/proc/self/fd/{log}",
            **self._end["variables"],
        }

    def _listen(self, process: "subprocess.Popen[bytes]") -> bool:
        """Pass on what the program says; whether it ended by itself within its time."""
        deadline_s = time.monotonic() + self._job["deadline_s"]
        ended_s = None
        rests = {"out": b"", "err": b""}
        with selectors.DefaultSelector() as selector:
            for kind, pipe in (("out", process.stdout), ("err", process.stderr)):
                selector.register(cast("IO[bytes]", pipe), selectors.EVENT_READ, kind)
            while True:
                now_s = time.monotonic()
                if ended_s is None and has_ended(process):
                    ended_s = now_s
                silent = not selector.get_map()
                if ended_s is not None and (silent or now_s - ended_s > _LAST_WORDS_S):
                    return True
                if now_s > deadline_s or nobody_listens():
                    return False
                if silent:
                    time.sleep(_TICK_S)
                for key, _ in selector.select(_LOOK_S) if not silent else ():
                    self._read(selector, key, rests)

    def _read(
        self,
        selector: selectors.BaseSelector,
        key: selectors.SelectorKey,
        rests: dict[str, bytes],
    ) -> None:
        data = os.read(key.fd, 1 << 16)
        *lines, rest = (rests[key.data] + data).split(b"\n")
        if not data:
            selector.unregister(key.fileobj)
            lines, rest = [*lines, rest] if rest else lines, b""
        rests[key.data] = rest[:_MAX_LINE_BYTES]
        for line in lines:
            self._pass_on(key.data, line)

    def _pass_on(self, kind: str, line: bytes) -> None:
        self._lines += 1
        if self._lines <= _MAX_LINES:
            self._say(kind, line[:_MAX_LINE_BYTES].decode(errors="replace").rstrip("\r"))

    def _moved(self, before: Counters, *, wait: bool) -> Counters:
        """How far the counters moved; waits a while for drivers that are late."""
        wanted = self._job["expected_bytes"]
        end_s = time.monotonic() + _COUNTER_LAG_S
        while True:
            moved = read_counters(self._nic).since(before)
            late = moved.tx_bytes < wanted or moved.rx_bytes < wanted
            if not (wait and late) or time.monotonic() > end_s:
                return moved
            time.sleep(_COUNTER_RETRY_S)

    def _tell_log(self, log: int) -> None:
        text = os.pread(log, 1 << 16, 0).decode(errors="replace")
        for line in text.splitlines()[:_MAX_LOG_LINES]:
            self._say("log", line[:_MAX_LINE_BYTES])

    def _say(self, kind: str, text: str) -> None:
        data = f"{MARK} {self._rank} {kind}: {text}\n".encode()
        with contextlib.suppress(BrokenPipeError):  # nobody listens any more
            os.write(1, data)


def main() -> None:
    """Do what the arguments say."""
    die_with_launcher()
    variable, job = sys.argv[1:]
    Rank(int(os.environ[variable]), json.loads(job)).run()


if __name__ == "__main__":
    main()
