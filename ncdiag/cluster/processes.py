"""Runs launches to their end: bounded in time, in number, and in what is kept of what they say."""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Self, cast

from ncdiag.cluster.children import has_ended, kill_group, start
from ncdiag.cluster.launch import Launch

_READ_BYTES = 1 << 16
_KEPT_LINES = 40
_MAX_LINE_CHARS = 2_000
_MAX_OUTPUT_BYTES = 16 << 20
# How often a command that says nothing is looked at again: a stop is noticed within this.
_TICK_S = 0.2
# After its end, how long what it left behind may hold its output open.
_LAST_WORDS_S = 1.0
# A process that a broken driver holds outlives even SIGKILL: nobody waits for it any longer.
_DEATH_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a launch ended.

    ``code`` follows subprocess's rule for signals and is ``None`` where the command could not be
    started, of which ``error`` is the reason. ``stdout`` is its first 16 MiB unless more was asked
    for, ``said`` the last lines of stderr. ``timed_out`` and ``stopped`` tell that it was killed
    here, by whom.
    """

    launch: Launch
    code: int | None
    stdout: bytes = b""
    said: tuple[str, ...] = ()
    seconds: float = 0.0
    timed_out: bool = False
    stopped: bool = False
    error: str | None = None


def run(
    launch: Launch,
    *,
    timeout_s: float,
    stop: threading.Event | None = None,
    on_line: Callable[[bytes], None] | None = None,
    most_bytes: int = _MAX_OUTPUT_BYTES,
) -> Ended:
    """Run ``launch`` to its end, or kill it with its whole process group after ``timeout_s``.

    It gets what it has for standard input and then the end of it. ``on_line`` is told each line of
    stdout, without its end, as it comes. Setting ``stop`` kills it at once. ``most_bytes`` of
    stdout are kept.
    """
    began = time.monotonic()
    try:
        process, talk = _begin(launch, on_line, most_bytes)
    except OSError as error:
        return Ended(launch=launch, code=None, error=f"{launch.argv[0]}: {error.strerror}")
    stopped = timed_out = False
    try:
        while not (stopped or timed_out) and talk.goes_on():
            stopped = stop is not None and stop.is_set()
            timed_out = not stopped and time.monotonic() - began > timeout_s
    finally:
        kill_group(process)
        talk.close()
        code = _reap(process)
    return Ended(
        launch=launch,
        code=code,
        stdout=bytes(talk.stdout),
        said=tuple(talk.said),
        seconds=time.monotonic() - began,
        timed_out=timed_out,
        stopped=stopped,
    )


def ask(
    argv: Sequence[str],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    most_bytes: int = _MAX_OUTPUT_BYTES,
) -> Ended:
    """Run a command of this machine that is to answer a question; see :func:`run`.

    Whatever it does, it costs no more than this time and memory, and leaves nothing behind.
    """
    launch = Launch(argv=tuple(argv), hosts=(), environment=environment or {})
    return run(launch, timeout_s=timeout_s, most_bytes=most_bytes)


class Pool:
    """Runs launches side by side, ``at_a_time`` at most; closing it kills what still runs."""

    def __init__(self, at_a_time: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=at_a_time, thread_name_prefix="launch")
        self._stop = threading.Event()

    def submit(
        self,
        launch: Launch,
        *,
        timeout_s: float,
        on_line: Callable[[bytes], None] | None = None,
    ) -> "Future[Ended]":
        """Run ``launch`` as soon as there is room; ``timeout_s`` counts from its own start."""
        return self._threads.submit(
            run, launch, timeout_s=timeout_s, stop=self._stop, on_line=on_line
        )

    def close(self) -> None:
        """Kill everything and wait for that; may be called twice."""
        self._stop.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _begin(
    launch: Launch, on_line: Callable[[bytes], None] | None, most_bytes: int
) -> tuple["subprocess.Popen[bytes]", "_Talk"]:
    process = start(launch)
    try:
        return process, _Talk(process, launch.stdin, on_line, most_bytes)
    except OSError:  # no file is left for it
        kill_group(process)
        for pipe in (process.stdin, process.stdout, process.stderr):
            cast("IO[bytes]", pipe).close()
        _reap(process)
        raise


def _reap(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait(_DEATH_S)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL


@dataclass(slots=True)
class _Talk:
    """What goes in and out of a running command, without ever waiting for one pipe alone."""

    process: "subprocess.Popen[bytes]"
    to_say: bytes
    on_line: Callable[[bytes], None] | None
    most_bytes: int = _MAX_OUTPUT_BYTES
    stdout: bytearray = field(default_factory=bytearray)
    said: "deque[str]" = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    _rests: dict[str, bytes] = field(default_factory=lambda: {"stdout": b"", "stderr": b""})
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _ended_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("stdin", "stdout", "stderr"):
            pipe = cast("IO[bytes]", getattr(self.process, name))
            os.set_blocking(pipe.fileno(), False)
            event = selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ
            self._selector.register(pipe, event, name)

    def goes_on(self) -> bool:
        """Move what can be moved within a tick; whether there is more to come."""
        for key, _ in self._selector.select(_TICK_S):
            if key.data == "stdin":
                self._write(cast("IO[bytes]", key.fileobj))
            else:
                self._read(cast("IO[bytes]", key.fileobj), key.data)
        names = {key.data for key in self._selector.get_map().values()}
        if not names & {"stdout", "stderr"}:
            return not has_ended(self.process)
        if not has_ended(self.process):
            return True
        self._ended_s = self._ended_s or time.monotonic()
        return time.monotonic() - self._ended_s < _LAST_WORDS_S

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            self.to_say = (
                self.to_say[os.write(pipe.fileno(), self.to_say) :] if self.to_say else b""
            )
        except BlockingIOError:
            return
        except OSError:  # it does not listen
            self.to_say = b""
        if not self.to_say:
            self._drop(pipe)

    def _read(self, pipe: IO[bytes], name: str) -> None:
        try:
            data = os.read(pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._drop(pipe)
        if name == "stdout" and len(self.stdout) < self.most_bytes:
            self.stdout += data
        *lines, rest = (self._rests[name] + data).split(b"\n")
        if rest and (not data or len(rest) > _READ_BYTES):
            lines.append(rest)
            rest = b""
        self._rests[name] = rest
        for line in lines:
            if name == "stdout":
                if self.on_line:
                    self.on_line(line)
            elif line.strip():
                text = line.decode(errors="replace").rstrip("\r")
                self.said.append(text[:_MAX_LINE_CHARS])

    def _drop(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        pipe.close()

    def close(self) -> None:
        """Close all pipes."""
        for key in list(self._selector.get_map().values()):
            self._drop(cast("IO[bytes]", key.fileobj))
        self._selector.close()
