"""The worker's standard input: first the job, then a beat each second as long as the driver lives.

It ends with the driver, however the driver ends; and where a dead link hides the end, the missing
beat tells it. A remote sshd would not notice for hours.
"""

import os
import select
import threading
import time
from collections.abc import Callable

_READ_BYTES = 1 << 16


class Lifeline:
    """Reads ``fd``; nobody else may."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd

    def first_line(self, timeout_s: float) -> bytes | None:
        """The first line, or ``None`` if it does not come."""
        data = bytearray()
        end = time.monotonic() + timeout_s
        while b"\n" not in data:
            chunk = self._read(end - time.monotonic())
            if not chunk:
                return None
            data += chunk
        return bytes(data.partition(b"\n")[0])

    def watch(self, lease_s: float, on_cut: Callable[[bool], None]) -> None:
        """From now on call ``on_cut`` when the input ends or is silent for ``lease_s``.

        It is told whether the input was silent, so that somebody may still be there.
        """
        threading.Thread(target=self._watch, args=(lease_s, on_cut), daemon=True).start()

    def _watch(self, lease_s: float, on_cut: Callable[[bool], None]) -> None:
        while heard := self._read(lease_s):
            pass
        on_cut(heard is None)

    def _read(self, timeout_s: float) -> bytes | None:
        """What comes, nothing at its end, or ``None`` where nothing comes in time."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if not poll.poll(max(0.0, timeout_s) * 1000):
            return None
        return os.read(self._fd, _READ_BYTES)
