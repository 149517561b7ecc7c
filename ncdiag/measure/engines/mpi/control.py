"""How a rank hears of the driver: rank 0 by its standard input, the others over MPI from rank 0."""

import os
import queue
import sys
import threading
import time
from collections import deque
from contextlib import suppress

import msgspec
from mpi4py import MPI

from ncdiag.measure.engines.mpi.lease import Lease
from ncdiag.measure.engines.mpi.messages import (
    Beat,
    End,
    Orders,
    Part,
    Passed,
    Told,
    decode_told,
    encode_said,
)
from ncdiag.measure.engines.stream import PeerLostError

_BEAT = b"null"
_END = b"end"
# Tag 0 is for control; pairs have the others.
CONTROL_TAG = 0
# While a pair is measured, messages are looked for this often: beats, mostly.
_LOOK_S = 0.05


class Inbox:
    """What this rank is to do, in order; rank 0 also passes on what others are."""

    def __init__(self, lease: Lease, lease_s: float, replies: int) -> None:
        self._lease, self._lease_s, self._replies = lease, lease_s, replies
        self._world = MPI.COMM_WORLD
        self._parts: deque[Part] = deque()
        self._looked_s = 0.0
        self._told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._under_way: dict[int, list[MPI.Request]] = {}
        self.is_ended = False
        if self._world.rank == 0:
            threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> Part | None:
        """The next part of this rank, if there is one now."""
        self.look()
        return self._parts.popleft() if self._parts else None

    def look_sometimes(self) -> None:
        """The same as ``look``, but seldom enough to cost nothing, for while a pair is measured.

        Raises PeerLostError where the end has come meanwhile.
        """
        if time.monotonic() - self._looked_s > _LOOK_S:
            self.look()
            if self.is_ended:
                raise PeerLostError("the driver ended it")

    def look(self) -> None:
        """Take in what has come."""
        self._looked_s = time.monotonic()
        if self._world.rank == 0:
            while not self._told.empty():
                self._pass_on(self._told.get())
            return
        # Where rank 0 is lost nothing more is heard, and the lease runs out.
        with suppress(MPI.Exception):
            self._receive()

    def _receive(self) -> None:
        status = MPI.Status()
        while self._world.Iprobe(0, CONTROL_TAG, status):
            data = bytearray(status.Get_count(MPI.BYTE))
            self._world.Recv([data, MPI.BYTE], 0, CONTROL_TAG)
            self._take(msgspec.json.decode(data, type=Part | None) if data != _END else End())

    def _take(self, what: Part | End | None) -> None:
        """Nothing in it is a beat."""
        self._lease.renew(self._lease_s)
        if isinstance(what, Part):
            self._parts.append(what)
        elif isinstance(what, End):
            self.is_ended = True

    def _read(self) -> None:
        """Rank 0: lines of standard input, until it ends with the driver."""
        for line in sys.stdin.buffer:
            told = decode_told(line)
            self._told.put(told)
            if isinstance(told, End):
                return
        os._exit(1)

    def _pass_on(self, told: Told) -> None:
        match told:
            case Orders():
                for rank, part in told.parts.items():
                    if rank == 0:
                        self._take(part)
                    else:
                        self._send(rank, msgspec.json.encode(part))
                os.write(self._replies, encode_said(Passed(number=told.number)))
            case Beat():
                self._take(None)
                for rank in range(1, self._world.size):
                    self._send(rank, _BEAT)
            case End():
                for rank in range(1, self._world.size):
                    self._send(rank, _END)
                self._take(told)

    def _send(self, rank: int, data: bytes) -> None:
        """Begin to send; a rank that takes nothing gets no more beats, a lost one nothing."""
        with suppress(MPI.Exception):
            waiting = [request for request in self._under_way.get(rank, []) if not request.Test()]
            if not waiting or data is not _BEAT:
                waiting.append(self._world.Isend([data, MPI.BYTE], rank, CONTROL_TAG))
            self._under_way[rank] = waiting
