"""The MPI job as the driver sees it: one command, whose ranks talk as long as it runs."""

import contextlib
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, cast

from ncdiag.cluster.children import kill_group, start
from ncdiag.cluster.fleet.settings import BEAT_S
from ncdiag.cluster.launch import Launch
from ncdiag.measure.engines.mpi.messages import (
    Beat,
    End,
    Said,
    Told,
    decode_said,
    encode_told,
)

_KEPT_LINES = 60
_MAX_LINE_CHARS = 2_000
_MAX_LINE_BYTES = 1 << 20
_READ_BYTES = 1 << 16
# After the command's end, how long what it left behind may hold its output open.
_LAST_WORDS_S = 1.0
# Ranks leave MPI within 2 s by themselves.
_END_S = 4.0
# What a process manager may need to end what it started.
_TIDY_S = 2.0


# What jobs say, with the rail of each: one queue, so that one can wait for all of them.
Heard = queue.SimpleQueue["tuple[int, Said | JobEnded]"]


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The command has ended with ``code``, by subprocess's rule; ``said`` are its last lines."""

    code: int
    said: tuple[str, ...]


class Job:
    """The command of one rail, which has been started.

    What its ranks say goes to ``heard``, and its end last.
    """

    def __init__(self, launch: Launch, rail: int, heard: Heard) -> None:
        """Start it; raises OSError."""
        self._rail, self._heard = rail, heard
        self._process = start(launch)
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._to_tell: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._to_tell.put(launch.stdin)
        self._closing = threading.Event()
        readers = (
            self._thread(self._hear, self._process.stdout),
            self._thread(self._note, self._process.stderr),
        )
        self._threads = (*readers, self._thread(self._write), self._thread(self._beat))
        self._waiter = self._thread(self._wait, readers)

    def tell(self, told: Told) -> None:
        """Say something to rank 0; never waits."""
        self._to_tell.put(encode_told(told))

    def finish(self) -> None:
        """Ask the ranks to end, and wait for nothing."""
        if not self._closing.is_set():
            self.tell(End())
        self._closing.set()
        self._to_tell.put(None)

    def close(self, *, kill: bool = False) -> None:
        """End it and everything it started; may be called twice."""
        self.finish()
        if not kill:
            self._waiter.join(_END_S)
        # At first so that a process manager takes away what it has left on hosts.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self._process.pid, signal.SIGTERM)
        self._waiter.join(_TIDY_S)
        kill_group(self._process)
        self._waiter.join()

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        thread.start()
        return thread

    def _beat(self) -> None:
        while not self._closing.wait(BEAT_S):
            self.tell(Beat())

    def _write(self) -> None:
        while (data := self._to_tell.get()) is not None:
            try:
                while data:
                    data = data[os.write(self._stdin.fileno(), data) :]
            except OSError:  # it has ended
                break
        self._stdin.close()

    def _hear(self, pipe: IO[bytes]) -> None:
        for line in _lines(pipe):
            said = decode_said(line)
            if said is not None:
                self._heard.put((self._rail, said))
            else:
                self._keep(line)

    def _note(self, pipe: IO[bytes]) -> None:
        for line in _lines(pipe):
            self._keep(line)

    def _keep(self, line: bytes) -> None:
        if line.strip():
            self._said.append(line.decode(errors="replace").rstrip("\r")[:_MAX_LINE_CHARS])

    def _wait(self, readers: tuple[threading.Thread, ...]) -> None:
        # Not reaped before what it left in its process group is killed.
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        end_s = time.monotonic() + _LAST_WORDS_S
        for reader in readers:
            reader.join(max(0.0, end_s - time.monotonic()))
        kill_group(self._process)
        code = self._process.wait()
        self._closing.set()
        self._to_tell.put(None)
        self._heard.put((self._rail, JobEnded(code, tuple(self._said))))


def hear(heard: Heard, timeout_s: float) -> tuple[int, Said | JobEnded] | None:
    """The next thing that was said, ``None`` if there is none in time."""
    try:
        return heard.get(timeout=max(0.0, timeout_s))
    except queue.Empty:
        return None


def _lines(pipe: IO[bytes]) -> Iterator[bytes]:
    """Lines without their end; of what is longer than any of ours only the end is kept."""
    rest = b""
    with pipe:
        while data := os.read(pipe.fileno(), _READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            rest = rest[-_MAX_LINE_BYTES:]
    if rest:
        yield rest
