"""The process that asks this host's sources, each in a thread with a deadline, and then ends.

Started by :mod:`ncdiag.health.collect` as ``python -P -m ncdiag.health.collector TASK``. It prints
a line of JSON for each source as soon as it is there. What hangs is left behind when it ends.
"""

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ncdiag.cluster.die_with_parent import be_killed_with_parent
from ncdiag.health.sources.found import Found, failed
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.table import SOURCES, SourceRow
from ncdiag.health.starvation import waited_for_cpu_s
from ncdiag.health.topology import programs
from ncdiag.model.health import Source, SourceState
from ncdiag.model.json_text import encode
from ncdiag.model.text import visible

MODULE: Final = "ncdiag.health.collector"
# More than the facts of any host: 8 GPUs with all counters are some 20 KiB.
MOST_LINE_BYTES: Final = 8 << 20
_REASON_CHARS: Final = 300
_LOOK_AGAIN_S: Final = 0.02


class CollectorTask(msgspec.Struct, frozen=True, kw_only=True):
    """Ask these sources below ``root``, until ``until_s`` of the monotonic clock at the latest.

    While there is no CPU for us, no deadline comes nearer, but for ``starved_s`` at most.
    """

    root: str
    sources: tuple[Source, ...]
    until_s: float
    starved_s: float = 0.0


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one source gave; ``facts`` are by the names of fields of ``HealthFacts``."""

    source: Source
    state: SourceState
    reason: str | None = None
    seconds: float = 0.0
    facts: dict[str, msgspec.Raw] = {}


class _Ended(NamedTuple):
    source: Source
    found: Found
    seconds: float


def ask_sources(
    task: CollectorTask,
    write: Callable[[bytes], object],
    table: Mapping[Source, SourceRow] = SOURCES,
) -> None:
    """Ask all sources at the same time, and write a line for each when it answers or is late."""
    began_s = time.monotonic()
    root = HostRoot(Path(task.root))
    ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
    waiting: dict[Source, float] = {}
    for source in task.sources:
        waiting[source] = min(began_s + table[source].deadline_s, task.until_s)
        threading.Thread(
            target=_ask, args=(source, table[source], root, ended), name=source, daemon=True
        ).start()
    more_s = 0.0
    while waiting:
        left_s = min(waiting.values()) + more_s - time.monotonic()
        try:
            one = ended.get(timeout=max(left_s, _LOOK_AGAIN_S))
        except queue.Empty:
            now_s = time.monotonic()
            more_s = min(waited_for_cpu_s(os.getpid()), task.starved_s)
            for source in [late for late, at_s in waiting.items() if at_s + more_s <= now_s]:
                del waiting[source]
                found = Found(SourceState.TIMED_OUT, no_answer(now_s - began_s))
                write(_line(source, found, now_s - began_s))
        else:
            if waiting.pop(one.source, None) is not None:
                write(_line(*one))


def no_answer(within_s: float) -> str:
    """What is said of a source that was late."""
    return f"no answer within {max(within_s, 0):.1f} s"


def _ask(
    source: Source, row: SourceRow, root: HostRoot, ended: "queue.SimpleQueue[_Ended]"
) -> None:
    began_s = time.monotonic()
    try:
        found = _collect(row, root)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this source's alone
        found = failed(one_line(error))
    ended.put(_Ended(source, found, time.monotonic() - began_s))


def _collect(row: SourceRow, root: HostRoot) -> Found:
    module, _, function = row.collect.partition(":")
    collect: Callable[[HostRoot], Found] = getattr(import_module(module), function)
    return collect(root)


def one_line(error: BaseException) -> str:
    """An error in one line that can be printed."""
    said = " ".join(str(error).split())
    return visible(f"{type(error).__name__}: {said}" if said else type(error).__name__)[
        :_REASON_CHARS
    ]


def _line(source: Source, found: Found, seconds: float) -> bytes:
    line: dict[str, Any] = {
        "source": source,
        "state": found.state,
        "reason": found.reason,
        "seconds": round(seconds, 4),
    }
    try:
        data = encode({**line, "facts": found.facts})
    except (TypeError, ValueError, OverflowError) as error:
        return encode({**line, "state": SourceState.FAILED, "reason": one_line(error)}) + b"\n"
    if len(data) > MOST_LINE_BYTES:
        reason = f"it told more than {MOST_LINE_BYTES >> 20} MiB"
        return encode({**line, "state": SourceState.FAILED, "reason": reason}) + b"\n"
    return data + b"\n"


def _write_all(number: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(number, left) :]


def main() -> None:
    """Do what the task on the command line says, and end without waiting for what hangs."""
    be_killed_with_parent()
    # Kept apart, since libraries that are asked may print as well.
    out = os.dup(1)
    os.dup2(2, 1)
    task = msgspec.json.decode(sys.argv[1], type=CollectorTask)
    try:
        ask_sources(task, lambda data: _write_all(out, data))
    except BrokenPipeError:
        pass
    finally:
        programs.end_all()
        # Threads that hang would hold up an ordinary end.
        os._exit(0)


if __name__ == "__main__":
    main()
