"""The rounds of a full sweep as a bare MPI program; rank 0 prints the seconds they took.

Started by ``rounds.py``: ``mpiexec -n N python mpi_rounds.py WARMUP_S MEASURE_S``.
"""

import sys
import time

import numpy as np
from mpi4py import MPI

from ncdiag.measure.schedule import full_rounds

CHUNK_BYTES = 256 * 1024
LAST, MORE = 1, 0


def direction(peer: int, *, sending: bool, seconds: float) -> None:
    """Send chunks to ``peer`` for ``seconds``, or receive them until the last one."""
    world = MPI.COMM_WORLD
    chunk = np.zeros(CHUNK_BYTES, dtype=np.uint8)
    if sending:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            world.Send(chunk, dest=peer, tag=MORE)
        world.Send(chunk, dest=peer, tag=LAST)
        return
    status = MPI.Status()
    while True:
        world.Recv(chunk, source=peer, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == LAST:
            return


def main() -> None:
    """Run all rounds once."""
    seconds = sum(map(float, sys.argv[1:3]))
    world = MPI.COMM_WORLD
    world.Barrier()
    began = time.monotonic()
    for pairs in full_rounds(world.size):
        for first, second in pairs.tolist():
            if world.rank in (first, second):
                peer = second if world.rank == first else first
                direction(peer, sending=world.rank == first, seconds=seconds)
                direction(peer, sending=world.rank == second, seconds=seconds)
        world.Barrier()
    if world.rank == 0:
        print(time.monotonic() - began)


main()
