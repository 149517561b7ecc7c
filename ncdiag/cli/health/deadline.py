"""The longest that ``ncdiag health`` may take on one host, whatever holds it up."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

# What collects ends by itself well before; this is for a hang that nobody thought of.
LONGEST_S: Final = 9.0


@contextmanager
def deadline(seconds: float, code: int, what: str) -> Iterator[None]:
    """End this process with ``code`` and a line on stderr, unless left within ``seconds``."""
    timer = threading.Timer(seconds, _give_up, (code, what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(code: int, what: str) -> None:
    with suppress(OSError, ValueError):
        print(f"ncdiag: {what}", file=sys.stderr, flush=True)  # noqa: T201 - the line of an error
    os._exit(code)
