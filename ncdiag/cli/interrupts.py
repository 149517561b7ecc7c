"""Ctrl-C, a batch system's SIGTERM and a lost terminal: all end a command alike."""

import signal
import threading
from types import FrameType

# Python drops an exception that is raised while an object is being destroyed; whoever works for
# long looks here too.
asked = threading.Event()


def catch() -> None:
    """Have all three raise ``KeyboardInterrupt``, and be remembered in ``asked``."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup has SIGHUP ignored, a shell's background SIGINT, and both want it so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    asked.set()
    raise KeyboardInterrupt
