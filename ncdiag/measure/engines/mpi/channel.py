"""Chunks between two ranks, over MPI's point-to-point messages."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mpi4py import MPI

from ncdiag.measure.engines.stream import DamagedError, PeerLostError, StalledError
from ncdiag.model.text import visible

# As over gloo: 8 MiB last over 5 ms at 10 Gbit/s.
MAX_CHUNK_BYTES = 8 * 1024 * 1024
# The longest a chunk may take; a peer that was stopped or cut off is noticed by nothing else.
PROGRESS_S = 3.0
# MPI moves payload over TCP only while it is called. A call that found some to move takes longer
# than one that did not (0.2 to 2 us), and there may be more.
_MOVED_S = 4e-6
# On a slow or busy processor every call takes that long.
_MOST_IN_A_ROW = 32
# What TCP's own buffers hold is enough for this pause at over 100 Gbit/s. Polling without one
# keeps a core busy for each rank; with it, about 7 % of one at 500 Mbit/s.
_NAP_S = 3e-4
_MAX_TEXT = 200


def one_line(error: BaseException) -> str:
    """The message of an error in one line."""
    lines = str(error).strip().splitlines()
    return visible(lines[0].strip())[:_MAX_TEXT] if lines else type(error).__name__


class MpiChannel:
    """Messages to and from ``peer`` under a ``tag`` that no other pair had or will have.

    ``between`` is called every now and then while waiting. Nothing lasts past ``end_s``, in the
    time of ``time.monotonic``.
    """

    max_chunk_bytes = MAX_CHUNK_BYTES

    def __init__(
        self, peer: int, tag: int, *, end_s: float, nap: bool, between: Callable[[], None]
    ) -> None:
        self._peer, self._tag, self._end_s, self._nap = peer, tag, end_s, nap
        self._between = between
        self._open: list[tuple[MPI.Request, Any]] = []

    def send(self, chunk: Any) -> "_Pending":
        """Begin to send; it is complete once the peer has begun to receive it.

        An ordinary send is complete with what MPI and TCP have buffered, which on a slow link is
        more than it carries in the time of a pair.
        """
        try:
            request = MPI.COMM_WORLD.Issend([chunk, MPI.BYTE], self._peer, self._tag)
        except MPI.Exception as error:
            raise PeerLostError(one_line(error)) from None
        return self._follow(request, chunk, None)

    def receive(self, chunk: Any) -> "_Pending":
        """Begin to receive into ``chunk``."""
        try:
            request = MPI.COMM_WORLD.Irecv([chunk, MPI.BYTE], self._peer, self._tag)
        except MPI.Exception as error:
            raise PeerLostError(one_line(error)) from None
        return self._follow(request, chunk, int(chunk.nbytes))

    def close(self) -> None:
        """Give up what is not complete."""
        for request, _ in self._open:
            with suppress(MPI.Exception):
                request.Cancel()

    def unfinished(self) -> list[Any]:
        """The chunks that are under way still: MPI may read or write them at any time."""
        self._open = [(request, chunk) for request, chunk in self._open if not _is_over(request)]
        return [chunk for _, chunk in self._open]

    def _follow(self, request: MPI.Request, chunk: Any, size_bytes: int | None) -> "_Pending":
        self._open.append((request, chunk))
        return _Pending(self, request, size_bytes)

    def wait(self, request: MPI.Request, status: MPI.Status) -> None:
        """Wait for a request; raises StalledError or PeerLostError."""
        began_s, in_a_row = time.monotonic(), 0
        while True:
            before_s = time.perf_counter()
            try:
                complete = request.Test(status)
            except MPI.Exception as error:
                raise PeerLostError(one_line(error)) from None
            if complete:
                break
            in_a_row += 1
            if in_a_row == _MOST_IN_A_ROW or time.perf_counter() - before_s < _MOVED_S:
                self._pause(began_s)
                in_a_row = 0
        self._open = [one for one in self._open if one[0] is not request]
        self._between()

    def _pause(self, began_s: float) -> None:
        now_s = time.monotonic()
        if now_s - began_s > PROGRESS_S:
            raise StalledError(f"nothing moved for {PROGRESS_S:g} s")
        if now_s > self._end_s:
            raise StalledError("what was sent did not all arrive within the time of a pair")
        self._between()
        if self._nap:
            time.sleep(_NAP_S)


def _is_over(request: MPI.Request) -> bool:
    try:
        return bool(request.Test())
    except MPI.Exception:
        return True


class _Pending:
    """A chunk under way."""

    def __init__(self, channel: MpiChannel, request: MPI.Request, size_bytes: int | None) -> None:
        self._channel, self._request, self._size_bytes = channel, request, size_bytes

    def wait(self) -> None:
        """Wait for the chunk; raises StalledError, PeerLostError or DamagedError."""
        status = MPI.Status()
        self._channel.wait(self._request, status)
        if self._size_bytes is not None and status.Get_count(MPI.BYTE) != self._size_bytes:
            raise DamagedError("payload arrived damaged: a chunk is shorter than it should be")
