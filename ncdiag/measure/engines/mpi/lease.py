"""Ends a rank with its driver, whatever MPI and the network do."""

import os
import sys
import threading
import time


class Lease:
    """Ends this process where the driver is not heard of, however MPI hangs."""

    def __init__(self, seconds: float) -> None:
        self._end_s = time.monotonic() + seconds
        threading.Thread(target=self._watch, daemon=True).start()

    def renew(self, seconds: float) -> None:
        """The driver lives, as far as is known for ``seconds``."""
        self._end_s = time.monotonic() + seconds

    def _watch(self) -> None:
        while (left_s := self._end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 1.0))
        sys.stderr.write("ncdiag: nothing was heard from the driver\n")
        os._exit(1)
