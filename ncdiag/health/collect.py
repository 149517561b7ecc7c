"""Collects the health facts of a host: in a process of its own that cannot hold anybody up.

A broken driver, a dead file system or a hung program holds the thread that asks it, at times beyond
SIGKILL. So all sources are asked by one child process (:mod:`ncdiag.health.collector`), which is
left to itself when its time is over.
"""

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, cast, get_type_hints

import msgspec

from ncdiag.health.collector import (
    MODULE,
    MOST_LINE_BYTES,
    CollectorTask,
    SourceLine,
    no_answer,
    one_line,
)
from ncdiag.health.sources.merge_gpus import merge
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.table import SOURCES
from ncdiag.health.starvation import waited_for_cpu_s
from ncdiag.model.errors import UsageError
from ncdiag.model.health import (
    COLLECTOR_KILLED,
    GpuHealth,
    HealthFacts,
    Source,
    SourceReading,
    SourceState,
)
from ncdiag.model.json_text import encode
from ncdiag.model.secrets import without_secrets
from ncdiag.model.text import visible

DEFAULT_LIMIT_S: Final = 6.0
# How much longer it may take on a host that has no CPU for us: nobody waits over 10 s.
STARVED_S: Final = 2.0
# A fleet's worker may share its host with many others, as in tests; its driver waits some more.
FLEET_STARVED_S: Final = 9.0
_LOOK_AGAIN_S: Final = 0.05
# By which the child is to be done before its parent stops listening, to say itself what is late.
_MARGIN_S: Final = 0.4
_KILL_GRACE_S: Final = 0.2
_CHUNK: Final = 1 << 16
_MOST_BYTES: Final = 32 << 20
# With so many children that did not end when they were killed, what held them up is left alone.
_MOST_HELD_UP: Final = 3


@dataclass(frozen=True, slots=True)
class _HeldUp:
    """A child that did not end when it was killed, and the sources that did not answer it."""

    process: "subprocess.Popen[bytes]"
    root: str
    sources: Collection[Source]
    since_s: float


# Looked at again with the next collection.
_held_up: list[_HeldUp] = []


class HealthTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver asks of a host; without ``sources`` it is all of them."""

    root: str | None = None
    sources: tuple[Source, ...] | None = None
    limit_s: float = DEFAULT_LIMIT_S
    starved_s: float = FLEET_STARVED_S


def collect_health(
    root: Path = Path("/"),
    *,
    sources: Collection[Source] | None = None,
    limit_s: float = DEFAULT_LIMIT_S,
    starved_s: float = STARVED_S,
) -> HealthFacts:
    """What the host says of its health, within ``limit_s``; what is late or broken says so.

    Time in which the host had no CPU for us is not counted, up to ``starved_s``. ``root`` is
    a folder that was recorded of another host. Raises :class:`UsageError` where there is none.
    """
    wanted = tuple(source for source in SOURCES if sources is None or source in sources)
    root = Path(os.path.realpath(root))
    if not root.is_dir():
        raise UsageError(f"{visible(str(root))}: no folder of a host's facts; check root=")
    began_s = time.monotonic()
    avoided = _avoided(str(root), wanted)
    task = CollectorTask(
        root=str(root),
        sources=tuple(source for source in wanted if source not in avoided),
        until_s=began_s + limit_s - min(_MARGIN_S, limit_s / 4),
        starved_s=starved_s,
    )
    lines, why = _run(task, began_s + limit_s) if task.sources else ([], "")
    why = why or no_answer(time.monotonic() - began_s)
    return merged(HostRoot(root), wanted, [*lines, *avoided.values()], why)


def collect_for_driver(payload: bytes) -> bytes:
    """The same for a driver, in a worker of its fleet: a task as JSON, the facts as JSON."""
    task = msgspec.json.decode(payload, type=HealthTask)
    facts = collect_health(
        Path(task.root or "/"),
        sources=task.sources,
        limit_s=task.limit_s,
        starved_s=task.starved_s,
    )
    return encode(facts)


def encode_task(task: HealthTask) -> bytes:
    """What :func:`collect_for_driver` takes."""
    return encode(task)


def decode_facts(answer: bytes) -> HealthFacts | None:
    """The facts in an answer of :func:`collect_for_driver`; ``None`` where it is no such thing."""
    try:
        return msgspec.json.decode(answer, type=HealthFacts)
    except msgspec.MsgspecError:
        return None


def _run(task: CollectorTask, until_s: float) -> tuple[list[SourceLine], str]:
    """What the child says until it ends or the time is up, and why there may be no more."""
    argv = (sys.executable, "-P", "-m", MODULE, encode(task).decode())
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=without_secrets(os.environ),
            start_new_session=True,
        )
    except OSError as error:
        return [], f"the collector cannot be started: {error.strerror}"
    data, ended = _listen(process, task, until_s)
    lines = [line for text in data.splitlines() if (line := _decoded(text))]
    if not _part_with(process, politely=ended):
        told = {line.source for line in lines if line.state is not SourceState.TIMED_OUT}
        # One that has told all cannot say what holds it.
        late = set(task.sources) - told or task.sources
        _held_up.append(_HeldUp(process, task.root, late, time.time()))
    if not ended:
        return lines, ""
    is_killed = process.returncode == -signal.SIGKILL
    return lines, COLLECTOR_KILLED if is_killed else "the collector ended before it answered"


def _avoided(root: str, wanted: Collection[Source]) -> dict[Source, SourceLine]:
    """What is said of sources that hold up too many children already to be asked once more."""
    _held_up[:] = [one for one in _held_up if one.process.poll() is None]
    here = [one for one in _held_up if one.root == root]
    if len(here) < _MOST_HELD_UP:
        return {}
    since = {source: one.since_s for one in reversed(here) for source in one.sources}
    return {
        source: SourceLine(
            source=source,
            state=SourceState.TIMED_OUT,
            reason=f"not asked: still held up since {_utc(since[source])}",
        )
        for source in wanted
        if source in since
    }


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _part_with(process: "subprocess.Popen[bytes]", *, politely: bool) -> bool:
    """Wait for its end a little, then kill it; false where a driver holds it all the same."""
    if politely:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_GRACE_S)
    if process.returncode is None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_GRACE_S)
    return process.returncode is not None


def _listen(
    process: "subprocess.Popen[bytes]", task: CollectorTask, until_s: float
) -> tuple[bytes, bool]:
    """All that it writes until all is there, until its end, or until it is too late (false).

    Its pipe is no sign of its end: a thread that hangs in the kernel keeps it open.
    """
    data = bytearray()
    stdout = cast("IO[bytes]", process.stdout)
    with stdout, selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while len(data) < _MOST_BYTES:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                left_s += min(waited_for_cpu_s(process.pid), task.starved_s)
                if left_s <= 0:
                    break
            if selector.select(max(left_s, _LOOK_AGAIN_S)):
                part = os.read(stdout.fileno(), _CHUNK)
                if not part:
                    return bytes(data), True
                data += part
                if data.count(b"\n") >= len(task.sources):
                    return bytes(data), True
    return bytes(data), False


def _decoded(text: bytes) -> SourceLine | None:
    """One line of the child; nothing for one that is cut."""
    try:
        return msgspec.json.decode(text, type=SourceLine) if len(text) <= MOST_LINE_BYTES else None
    except msgspec.MsgspecError:
        return None


def merged(
    root: HostRoot, wanted: Sequence[Source], lines: Sequence[SourceLine], why: str
) -> HealthFacts:
    """The facts of all sources as those of one host; ``why`` is said of sources without a line."""
    by_source = {line.source: line for line in lines}
    readings: list[SourceReading] = []
    facts: dict[str, Any] = {}
    gpus: dict[Source, Sequence[GpuHealth]] = {}
    for source in wanted:
        line = by_source.get(source)
        if line is None:
            state = SourceState.TIMED_OUT if why.startswith("no answer") else SourceState.FAILED
            readings.append(SourceReading(source=source, state=state, reason=why))
            continue
        state, reason = line.state, line.reason
        try:
            told = {name: _fact(name, raw) for name, raw in line.facts.items()}
        except (msgspec.MsgspecError, KeyError) as error:
            told, state, reason = {}, SourceState.FAILED, one_line(error)
        # A driver that lists no GPUs says so, and whoever remembers some is not believed.
        if (found := told.pop("gpus", None)) is not None:
            gpus[source] = found
        _take(facts, told)
        readings.append(
            SourceReading(source=source, state=state, reason=reason, seconds=line.seconds)
        )
    if gpus:
        facts["gpus"] = merge(gpus)
    facts.setdefault("hostname", _hostname(root))
    facts["taken_s"] = time.time()
    return HealthFacts(sources=tuple(readings), **facts)


def _take(facts: dict[str, Any], told: dict[str, Any]) -> None:
    """Add what a source told; of what two sources tell, the first in the table is believed."""
    for name, value in told.items():
        if isinstance(value, dict):
            facts[name] = {**value, **facts.get(name, {})}
        else:
            facts.setdefault(name, value)


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(HealthFacts)


def _fact(name: str, raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw, type=_types()[name])


def _hostname(root: HostRoot) -> str:
    """The host's own name; that of the folder where a recorded host has none."""
    for file in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        if name := root.text(file):
            return name.split()[0][:255]
    return socket.gethostname() if root.live else root.root.name
