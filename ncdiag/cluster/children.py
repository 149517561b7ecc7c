"""Processes that we start: in a group of their own, looked at and killed as a whole."""

import contextlib
import os
import signal
import subprocess

from ncdiag.cluster.die_with_parent import die_with_parent
from ncdiag.cluster.launch import Launch
from ncdiag.model.secrets import without_secrets


def start(launch: Launch) -> "subprocess.Popen[bytes]":
    """Start it with pipes for all it reads and says; it dies with the *thread* that calls this.

    Raises OSError.
    """
    return subprocess.Popen(
        die_with_parent(launch.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**without_secrets(os.environ), **launch.environment},
        start_new_session=True,  # a Ctrl-C on the terminal is for us alone
        bufsize=0,
    )


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it has; it is not reaped, so that its process group can still be killed."""
    if process.returncode is not None:
        return True
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is not None


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of it and all it started; its number stays taken until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def name_of_signal(number: int) -> str:
    """What a signal is called; real-time signals have numbers alone."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
