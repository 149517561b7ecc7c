"""What runs on a host: a Dask worker that lives exactly as long as its driver.

Started by a launcher as ``python -P -m ncdiag.cluster.fleet.worker --host NAME``. Companions are
started first, so that their imports run beside ours; nothing heavy is imported at the top.
"""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

import msgspec

from ncdiag import __version__
from ncdiag.cluster.fleet.companion import companions
from ncdiag.cluster.fleet.lifeline import Lifeline
from ncdiag.cluster.fleet.protocol import Hello, Job, decode_job, encode_hello
from ncdiag.cluster.fleet.scratch import Scratch, remove_stale
from ncdiag.cluster.fleet.settings import LEASE_S
from ncdiag.cluster.own_name import own_name

# The driver writes the job as soon as it has started us.
_JOB_S = 60.0


def main() -> NoReturn:
    """Work until the driver is gone."""
    host = own_name()
    lifeline = Lifeline()
    line = lifeline.first_line(_JOB_S)
    if line is None:
        sys.exit("no job came on standard input: this is started by ncdiag, not by hand")
    try:
        job = decode_job(line)
    except msgspec.MsgspecError as error:
        _say(host, f"ncdiag {__version__} on it does not understand this driver ({error})")
        sys.exit(1)
    scratch = Scratch()
    end = _ending(scratch)
    lifeline.watch(LEASE_S, lambda silent: _cut(host, end, silent=silent))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: end(1))
    _say(host)
    for spec in job.companions:
        companions().ensure(spec)
    remove_stale()
    failed = _serve(host, job, scratch)
    if failed:
        _say(host, failed)
    end(1 if failed else 0)


def _ending(scratch: Scratch) -> Callable[[int], NoReturn]:
    # Never released: the driver's end is seen by the lifeline and by Dask, and the second to see it
    # must not exit while the first still cleans up. Reentrant, as a signal may come in between.
    ending = threading.RLock()

    def end(code: int) -> NoReturn:
        ending.acquire()
        companions().kill()
        scratch.remove()
        # Not sys.exit: it would wait for threads that may hang.
        os._exit(code)

    return end


def _cut(host: str, end: Callable[[int], NoReturn], *, silent: bool) -> NoReturn:
    if silent:
        # A driver that was stopped reads it when it goes on. Nothing may keep us from ending.
        os.set_blocking(1, False)
        _say(host, f"it heard nothing from the driver for {LEASE_S:g} s (was it stopped?)")
    end(1)


def _say(host: str, failed: str | None = None) -> None:
    hello = Hello(host=host, version=__version__, failed=failed)
    with contextlib.suppress(OSError):
        os.write(1, encode_hello(hello))


def _serve(host: str, job: Job, scratch: Scratch) -> str | None:
    """Work as long as the driver wants; return why that was not possible."""
    # Imports make no garbage: looking for some costs a tenth of their time.
    gc.disable()
    from ncdiag.cluster.fleet.serve import UnreachableDriverError, serve

    gc.freeze()
    gc.enable()
    try:
        serve(host, job, scratch.path)
    except UnreachableDriverError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, the driver is told in one line
        return f"its worker failed: {type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main()
