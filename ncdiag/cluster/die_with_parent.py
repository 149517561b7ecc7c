"""A command that ends with whoever started it, however that ends."""

import ctypes
import os
import select
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Run between fork and the program itself: PR_SET_PDEATHSIG (1 in linux/prctl.h) is kept across
# exec, and the parent may have ended before it was set. A program of its own, since running Python
# code in a forked child of a process with threads (preexec_fn) can deadlock.
_DIE_WITH_PARENT = """
import ctypes, os, sys
parent, number, *argv = sys.argv[1:]
ctypes.CDLL(None).prctl(1, int(number))
if parent not in ("any", str(os.getppid())):
    os._exit(1)
try:
    os.execvp(argv[0], argv)
except OSError as error:
    sys.exit(f"{argv[0]}: {error.strerror}")
"""


def die_with_parent(
    argv: Sequence[str], *, started_by_us: bool = True, by: signal.Signals = signal.SIGKILL
) -> tuple[str, ...]:
    """The command that runs ``argv`` and is killed with the *thread* that starts it.

    So that thread has to live as long as the command shall. ``started_by_us`` tells that it is this
    process, and no program that is told the command.
    """
    parent = str(os.getpid()) if started_by_us else "any"
    return (sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, parent, str(int(by)), *argv)


def be_killed_with_parent() -> None:
    """Have the kernel kill this process with the thread of its parent that started it.

    The parent may be gone already, of which nothing is said here.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def die_with_launcher() -> None:
    """Have this process killed with its parent, which is a launcher that may be gone already.

    Launchers kill what they started themselves, and not all of them when they are killed.
    """
    be_killed_with_parent()
    if nobody_listens():
        sys.exit("nobody listens to this any more")


def nobody_listens() -> bool:
    """Whether whoever reads our standard output is gone.

    A launcher that is killed while Python starts, before we could ask to be killed with it, tells
    in no other way: our parent is another one then, and nobody knows which it was.
    """
    output = select.poll()
    output.register(1, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))
