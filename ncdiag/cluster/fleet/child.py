"""One child process that speaks in lines, dies with its parent, and can always be killed."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, cast

from ncdiag.cluster.children import name_of_signal
from ncdiag.cluster.die_with_parent import die_with_parent
from ncdiag.model.text import visible

# No answer of a companion comes near it; what does is a child that has run wild.
MAX_LINE_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1 << 16
# Of what a child says on stderr the last lines give the reason, never more than a line's worth.
_KEPT_LINES = 20
_MAX_REASON = 300


class ChildError(Exception):
    """The child cannot be used any more; the message reads on after the child's name."""


class OutOfTimeError(ChildError):
    """The child did not do something in time; ``starting`` tells one that never was ready."""

    def __init__(self, what: str, *, starting: bool, age_s: float) -> None:
        super().__init__(what)
        self.starting = starting
        self.age_s = age_s


class Child:
    """A running child in a session of its own; ``kill`` takes its whole process group along."""

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                die_with_parent(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise ChildError(f"cannot be started: {error.strerror}") from None
        # All three are pipes, which their type does not tell.
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        stderr = cast("IO[bytes]", self._process.stderr)
        os.set_blocking(self._stdin.fileno(), False)
        self._born = time.monotonic()
        self._buffer = bytearray()
        self._hello: bytes | None = None
        # Held by whoever reads, writes or closes the pipes, so that no number of a closed file that
        # was opened anew elsewhere is ever used.
        self._pipes = threading.RLock()
        self._said: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._listener = threading.Thread(
            target=self._listen, args=(stderr,), name=f"{name} stderr", daemon=True
        )
        self._listener.start()

    @property
    def starting(self) -> bool:
        """Whether its first line has not been read yet."""
        return self._hello is None

    @property
    def pid(self) -> int:
        """Process id, which is the id of the child's group as well."""
        return self._process.pid

    def hello(self, end: float) -> bytes:
        """The child's first line; ``end`` is a time of ``time.monotonic``."""
        with self._pipes:
            if self._hello is None:
                self._hello = self._read_line(end, "was not ready")
            return self._hello

    def ask(self, payload: bytes, end: float) -> bytes:
        """Send a line and return the next one the child writes."""
        with self._pipes:
            self._write(payload + b"\n", end)
            return self._read_line(end, "gave no answer")

    def alive(self) -> bool:
        """Whether the child runs; it is not reaped here, so its group can still be killed."""
        if self._process.returncode is not None:
            return False
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, options) is None
        return False

    def kill_group(self) -> None:
        """Send SIGKILL to the child and its children, and wait for nothing."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the child with its children and free what it held; may be called twice."""
        self.kill_group()
        with self._pipes:
            # A process that the kernel cannot end (state D) is left to the worker's own end.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
            self._listener.join(timeout=1.0)
            for pipe in (self._stdin, self._stdout):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            # Bounded, as a child could write without ever ending a line.
            while line := stderr.readline(4096):
                if line.strip():
                    self._said.append(line)

    def _write(self, data: bytes, end: float) -> None:
        view = memoryview(data)
        while view:
            self._wait_for(self._stdin, select.POLLOUT, end, "took no request")
            try:
                view = view[os.write(self._stdin.fileno(), view) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._ended() from None

    def _read_line(self, end: float, what: str) -> bytes:
        while (at := self._buffer.find(b"\n")) < 0:
            self._wait_for(self._stdout, select.POLLIN, end, what)
            data = os.read(self._stdout.fileno(), _READ_BYTES)
            if not data:
                raise self._ended()
            self._buffer += data
            if len(self._buffer) > MAX_LINE_BYTES:
                raise ChildError("wrote a line without end")
        line = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        return line

    def _wait_for(self, pipe: IO[bytes], event: int, end: float, what: str) -> None:
        # poll, not select: a worker may hold more than 1024 files.
        poll = select.poll()
        try:
            poll.register(pipe, event)
        except ValueError:  # closed by kill() in another thread
            raise self._ended() from None
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            age_s = time.monotonic() - self._born
            raise OutOfTimeError(what, starting=self.starting, age_s=age_s)

    def _ended(self) -> ChildError:
        self.kill()
        code = self._process.returncode
        if code is None:
            return ChildError("closed its output and cannot be killed")
        if code == -signal.SIGKILL:
            # What it said before has nothing to do with it.
            return ChildError("was killed")
        how = f"by {name_of_signal(-code)}" if code < 0 else f"with exit code {code}"
        last = self._said[-1].decode(errors="replace").strip()[:_MAX_REASON] if self._said else ""
        return ChildError(f"ended {how}" + (f": {visible(last)}" if last else ""))
