"""A few processes that read inputs side by side and end with the one that started them."""

import contextlib
import gc
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from typing import Self, cast

from ncdiag.logs.read_input import Job, read_input
from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.read.merge import joined

# A batch of small inputs goes to one process at a time, and comes back as one record.
Batch = Sequence[Job]
Told = Callable[[int], None]
_END_S = 5.0
# Objects made since the last look for cycles.
_COLLECTED_AFTER = 50_000


def read_batch(batch: Batch, told: Told) -> LogEvidence:
    """All inputs of ``batch``, in order."""
    if len(batch) == 1:
        return read_input(batch[0], told)
    return joined(read_input(job, told) for job in batch)


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Look for unreachable cycles seldom: evidence holds none, and lives until the end."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


class Crew:
    """Processes that read batches; leaving the context ends them, whatever they are doing.

    The one that started them reads as well where it is safe: pieces of a large file of plain lines,
    whose evidence is costly to bring from one process to another.
    """

    def __init__(self, batches: Sequence[Batch], processes: int, told: Told) -> None:
        self._batches = batches
        self._told = told
        self._next = 0
        self._busy: dict[Connection, tuple[BaseProcess, int]] = {}
        self._ready: dict[int, LogEvidence] = {}
        self._wanted = min(processes, len(batches))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection, (process, _number) in self._busy.items():
            connection.close()
            process.terminate()
        for process, _number in self._busy.values():
            process.join(_END_S)
            if process.is_alive():
                process.kill()

    def results(self) -> Iterator[LogEvidence]:
        """The evidence of each batch, in their order."""
        for turn in range(len(self._batches)):
            while turn not in self._ready:
                while self._wants_more():
                    self._hire()
                if self._next_is_piece():
                    self._read_next()
                else:
                    self._listen_to_all()
            yield self._ready.pop(turn)

    def _wants_more(self) -> bool:
        """Whether to start a process; the last one of them need not be if a piece comes next."""
        most = self._wanted - self._next_is_piece()
        return len(self._busy) < most and self._next < len(self._batches)

    def _next_is_piece(self) -> bool:
        return self._next < len(self._batches) and self._batches[self._next][0].is_piece

    def _read_next(self) -> None:
        """Read the next batch here, and listen to the others meanwhile."""

        def told(count: int) -> None:
            self._told(count)
            self._listen_to_all(timeout_s=0)

        number = self._next
        self._next += 1
        self._ready[number] = read_batch(self._batches[number], told)

    def _listen_to_all(self, timeout_s: float | None = None) -> None:
        for connection in wait(list(self._busy), timeout_s):
            self._listen(connection)  # type: ignore[arg-type]

    def _hire(self) -> None:
        """Start a process with the next batch: at once, unless threads could be cut in two."""
        start = "fork" if threading.active_count() == 1 else "spawn"
        context = cast(SpawnContext, multiprocessing.get_context(start))
        here, there = context.Pipe()
        inherited = [here, *self._busy] if start == "fork" else []
        process = context.Process(target=work, args=(there, inherited), daemon=True)
        process.start()
        there.close()
        self._busy[here] = process, self._next
        self._next += 1
        self._send(here)

    def _send(self, connection: Connection) -> None:
        """Give it its batch; whether it is alive shows when it is listened to."""
        with contextlib.suppress(OSError):
            connection.send(self._batches[self._busy[connection][1]])

    def _listen(self, connection: Connection) -> None:
        process, number = self._busy[connection]
        try:
            said = connection.recv()
        except (EOFError, OSError):
            process.join(_END_S)
            self._ready[number] = _lost(self._batches[number], process.exitcode)
            self._dismiss(connection)
            return
        if isinstance(said, int):
            self._told(said)
            return
        self._ready[number] = said
        if self._next < len(self._batches):
            self._busy[connection] = process, self._next
            self._next += 1
            self._send(connection)
        else:
            self._dismiss(connection)

    def _dismiss(self, connection: Connection) -> None:
        """Let a process go: it ends when its pipe closes."""
        process, _ = self._busy.pop(connection)
        connection.close()
        process.join(_END_S)


def work(connection: Connection, inherited: Sequence[Connection] = ()) -> None:
    """What each process does: read batches until nobody is there to send one.

    ``inherited`` are ends of pipes that belong to the one that started it: while a copy is open,
    it does not show that the pipe was closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started it ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    with seldom_collecting(), contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(read_batch(connection.recv(), connection.send))


def _lost(batch: Batch, code: int | None) -> LogEvidence:
    """What is known of a batch whose reader died: nothing; the kernel may have killed it."""
    why = f"the process that read it ended with {code}; was there enough memory?"
    inputs = [InputSummary(path=job.name, error=why, truncated=True) for job in batch]
    return LogEvidence(inputs=inputs)
