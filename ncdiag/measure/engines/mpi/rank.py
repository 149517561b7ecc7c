"""One rank of the MPI job: ``python -P -m ncdiag.measure.engines.mpi.rank RANK_VARIABLE PLACE...``.

It measures its part of each round until the driver ends it, or is not heard of any more.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

from ncdiag.cluster.die_with_parent import die_with_launcher
from ncdiag.cluster.fleet.settings import LEASE_S
from ncdiag.health.addresses import interface_addresses
from ncdiag.measure.engines.mpi.lease import Lease
from ncdiag.measure.engines.mpi.messages import Done, Here, Said, encode_said
from ncdiag.measure.engines.mpi.place import Place, find_place, variables_of
from ncdiag.model.text import visible

# All hosts have to start Python, from a cold network file system perhaps, before MPI can.
START_S = 60.0
_NO_MPI4PY = "mpi4py is not installed there: pip install 'ncdiag[mpi]'"
# Between looks for something to do: little enough against a round, and 1 % of a core.
_IDLE_S = 0.004
# MPI_Finalize waits for ranks that may hang.
_FINALIZE_S = 2.0
_MAX_TEXT = 200


def main(rank_variable: str, places: Sequence[str]) -> None:
    """Serve the driver until it has enough."""
    die_with_launcher()
    replies = _take_stdout()
    lease = Lease(START_S + LEASE_S)
    if rank_variable not in os.environ:
        sys.exit(f"{rank_variable} is not set: MPI was started by another program than was meant")
    rank = int(os.environ[rank_variable])
    place = find_place(rank, places)
    os.environ.update(variables_of(place))
    here = _here(rank, place)
    _say(replies, here)
    if here.error:
        _wait_for_the_end()
    try:
        from ncdiag.measure.engines.mpi import library

        library.start()
        from ncdiag.measure.engines.mpi.control import Inbox
        from ncdiag.measure.engines.mpi.measuring import Measurer
    except (ImportError, RuntimeError) as error:
        why = f"MPI cannot be loaded there: {visible(str(error))[:_MAX_TEXT]}"
        _say(replies, Here(rank=rank, hostname=here.hostname, error=why))
        _wait_for_the_end()
    inbox = Inbox(lease, LEASE_S, replies)
    measurer = Measurer(place, inbox.look_sometimes)
    _say(replies, library.ready(rank, place))
    while not inbox.is_ended:
        part = inbox.next()
        if part is None:
            time.sleep(_IDLE_S)
            continue
        _say(replies, Done(rank=rank, number=part.number, half=measurer.measure(part)))
    _end(clean=measurer.is_clean)


def _take_stdout() -> int:
    """Keep the way for answers; what else is printed, also by MPI itself, goes to stderr."""
    replies = os.dup(1)
    os.dup2(2, 1)
    return replies


def _say(replies: int, said: Said) -> None:
    # In one piece, so that lines of several ranks do not mix.
    os.write(replies, encode_said(said))


def _here(rank: int, place: Place) -> Here:
    """Where this rank runs, as the system says."""
    error = None if find_spec("mpi4py") else _NO_MPI4PY
    try:
        found = interface_addresses()
    except OSError as problem:
        found, error = {}, error or str(problem)
    addresses = tuple(address for some in found.values() for address in some)
    if not place.is_rdma and place.device not in found:
        error = error or f"it has no interface {place.device}"
    return Here(rank=rank, hostname=socket.gethostname(), addresses=addresses, error=error)


def _wait_for_the_end() -> NoReturn:
    """Leave it to the driver to end the job: that a rank exits would end it without a reason."""
    time.sleep(START_S)
    os._exit(1)


def _end(*, clean: bool) -> NoReturn:
    """Leave MPI as it should be left, but wait for nobody."""
    from ncdiag.measure.engines.mpi import library

    timer = threading.Timer(_FINALIZE_S, os._exit, (0,))
    timer.daemon = True
    timer.start()
    if clean:
        library.finalize()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
