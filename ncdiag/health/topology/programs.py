"""Runs one program that tells of the hardware: with a deadline, bounded, without a shell."""

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import IO, Final, cast

from ncdiag.cluster.children import name_of_signal
from ncdiag.model.secrets import without_secrets
from ncdiag.model.text import visible

# No tool here prints a megabyte; lstopo of the largest hosts comes nearest.
MAX_BYTES: Final = 16 << 20
_CHUNK: Final = 1 << 16
_COMPLAINT_BYTES: Final = 8 << 10
_COMPLAINT_CHARS: Final = 200
# Held by a broken driver, a process outlives even SIGKILL.
_KILL_GRACE_S: Final = 1.0
# Where root's programs are, and AMD's, which are not on everybody's PATH.
_MORE_FOLDERS: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/rocm/bin")


# What runs now, so that whoever ends in a hurry leaves nothing behind.
_running: set["subprocess.Popen[bytes]"] = set()


class Outcome(StrEnum):
    """How asking for a dump went: ``absent`` is no failure."""

    CAPTURED = "captured"
    ABSENT = "absent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a program printed, or the reason why there is nothing.

    A failure is ``timed_out`` where no answer came in time, ``denied`` where we may not ask; a
    program that ended with a code may have printed something before.
    """

    outcome: Outcome
    output: bytes = b""
    reason: str | None = None
    timed_out: bool = False
    denied: bool = False


def find(name: str) -> str | None:
    """Where the program is, also where only root looks."""
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_FOLDERS))
    return shutil.which(name, path=folders)


def ask(
    argv: Sequence[str],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Answer:
    """What ``argv`` prints, which may be nothing; absent where there is no such program.

    ``name`` is what the program is called in a reason, if not by its own name.
    """
    name = name or argv[0]
    program = find(argv[0])
    if program is None:
        return Answer(outcome=Outcome.ABSENT, reason=f"{name} is not installed")
    try:
        process = subprocess.Popen(
            (program, *argv[1:]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=without_secrets(os.environ if environment is None else environment),
        )
    except OSError as error:
        is_denied = isinstance(error, PermissionError)
        return _failed(f"{name} cannot be started: {error.strerror}", denied=is_denied)
    _running.add(process)
    try:
        return _listen(process, name, time.monotonic() + timeout_s, timeout_s)
    finally:
        _end(process)
        _running.discard(process)


def end_all() -> None:
    """Kill what was asked in other threads and has not answered; waits for nothing."""
    for process in tuple(_running):
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _listen(
    process: "subprocess.Popen[bytes]", name: str, deadline_s: float, timeout_s: float
) -> Answer:
    output, complaint = bytearray(), bytearray()
    stdout, stderr = cast("IO[bytes]", process.stdout), cast("IO[bytes]", process.stderr)
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ, output)
        selector.register(stderr, selectors.EVENT_READ, complaint)
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return _failed(f"{name} gave no answer within {timeout_s:g} s", timed_out=True)
            for key, _ in selector.select(left_s):
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(complaint) < _COMPLAINT_BYTES:
                    key.data.extend(data)
            if len(output) > MAX_BYTES:
                return _failed(f"{name} printed more than {MAX_BYTES >> 20} MiB")
    try:
        code = process.wait(max(deadline_s - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        return _failed(f"{name} did not end within {timeout_s:g} s", timed_out=True)
    if code:
        how = f"exit code {code}" if code > 0 else name_of_signal(-code)
        failed = _failed(f"{name} failed ({how}){_last_line(complaint or output)}")
        return replace(failed, output=bytes(output))
    return Answer(outcome=Outcome.CAPTURED, output=bytes(output))


def _failed(reason: str, *, timed_out: bool = False, denied: bool = False) -> Answer:
    return Answer(outcome=Outcome.FAILED, reason=reason, timed_out=timed_out, denied=denied)


def _last_line(said: bytearray) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return f": {visible(lines[-1].strip()[:_COMPLAINT_CHARS])}" if lines else ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End it with whatever it started, and close its pipes."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_GRACE_S)
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
