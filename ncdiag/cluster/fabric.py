"""What an InfiniBand fabric or Slurm's topology says of hosts, and asking the fabric for it."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, Final

from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.text import visible

FABRIC_TOOLS: Final = ("ibnetdiscover", "iblinkinfo")
LIVE_DEADLINE_S: Final = 120.0

# About ten times what ibnetdiscover prints for 10,000 hosts of eight adapters.
_MAX_BYTES = 256 * 1024**2
_SBIN = ("/usr/sbin", "/sbin", "/usr/local/sbin")
_KILL_GRACE_S = 5.0
_SHOWN_CHARS = 200


def live_fabric(
    tool: str, deadline_s: float = LIVE_DEADLINE_S, options: Sequence[str] = ()
) -> bytes:
    """What ``ibnetdiscover`` or ``iblinkinfo`` prints of the fabric here, within ``deadline_s``.

    ``options`` are further arguments of the tool (``-C mlx5_0``). Raises :class:`UsageError` where
    there is no such tool, and :class:`UndecidedError` where it fails, hangs or says nothing.
    """
    if tool not in FABRIC_TOOLS:
        raise UsageError(f"{visible(tool)!r} cannot be asked; {' and '.join(FABRIC_TOOLS)} can")
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN))
    program = shutil.which(tool, path=path)
    if program is None:
        raise UsageError(f"{tool} is not installed here; it comes with infiniband-diags")
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        code = _run((program, *options), said, complained, deadline_s)
        complaint = _first_line(complained)
        size = said.seek(0, os.SEEK_END)
        if code is None:
            raise UndecidedError(
                f"{tool} did not end within {deadline_s:g} s{complaint}; give it more time, or "
                "another port with -C and -P"
            )
        if code:
            raise UndecidedError(f"{tool} failed with exit code {code}{complaint}")
        if size > _MAX_BYTES:
            raise UndecidedError(f"{tool} printed more than {_MAX_BYTES // 1024**2} MiB")
        if not size:
            raise UndecidedError(f"{tool} printed nothing{complaint}")
        said.seek(0)
        return said.read()


def _run(
    argv: Sequence[str], said: BinaryIO, complained: BinaryIO, deadline_s: float
) -> int | None:
    """The exit code; ``None`` where the time ran out."""
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=said, stderr=complained, start_new_session=True
        )
    except OSError as error:
        raise UndecidedError(f"{argv[0]} cannot be started: {error.strerror}") from None
    try:
        return process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_KILL_GRACE_S)


def _first_line(complained: BinaryIO) -> str:
    complained.seek(0)
    lines = complained.read(64 * 1024).decode("utf-8", "replace").split("\n")
    line = next((line.strip() for line in lines if line.strip()), "")
    return f": {visible(line[:_SHOWN_CHARS])}" if line else ""
