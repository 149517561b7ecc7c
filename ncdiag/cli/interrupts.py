"""Ctrl-C, a batch system's SIGTERM and a lost terminal: all end a command alike.

This is the first module that a command imports; it imports what Python has loaded anyway.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXIT_CODE = 130
# Long enough for Python to have left what it was destroying.
_AGAIN_S = 0.01
_received: list[int] = []


def leave_at_once() -> None:
    """Have all three end the process silently: while it starts, and when its work is done."""
    _handle(_leave)


def end_at_once() -> None:
    """End as after an interrupt, without waiting for threads: one may be held for ever."""
    leave_at_once()
    for stream, text in ((sys.stdout, ""), (sys.stderr, "ncdiag: interrupted\n")):
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            pass  # whoever read it is gone
    os._exit(_EXIT_CODE)


def catch() -> None:
    """Have all three raise ``KeyboardInterrupt``, and be remembered by :func:`asked`."""
    sys.unraisablehook = _raise_again
    _handle(_stop)


def asked() -> bool:
    """Whether one of them came since :func:`catch`; whoever works for long looks here too."""
    return bool(_received)


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _SIGNALS:
        # nohup has SIGHUP ignored, a shell's background SIGINT, and both want it so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(_EXIT_CODE)


def _stop(number: int, _frame: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def _raise_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Send the signal again whose exception Python dropped, as it does in an object's end."""
    if dropped.exc_type is not KeyboardInterrupt or not _received:
        sys.__unraisablehook__(dropped)
        return
    from threading import Timer

    Timer(_AGAIN_S, os.kill, (os.getpid(), _received[-1])).start()
