"""Two-rank groups over NCCL: the one module that uses torch's private names for it."""

import time
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch._C._distributed_c10d import Store, Work

from ncdiag.measure.engines.stream import PeerLostError, StalledError
from ncdiag.measure.engines.torch.errors import one_line

# 64 MiB last 1.3 ms at 400 Gbit/s, which a completion polled every 20 us divides finely enough.
MAX_CHUNK_BYTES = 64 * 1024 * 1024
# The longest a chunk may take; NCCL itself may wait for ever.
PROGRESS_S = 3.0
_POLL_S = 20e-6
_TAG = 0
# torch's own stubs leave out most of what is used here.
_Group: Any = distributed.ProcessGroupNCCL


class NcclChannel:
    """A connection between the one GPU that this process sees and that of the peer."""

    max_chunk_bytes = MAX_CHUNK_BYTES
    device = torch.device("cuda", 0)

    def __init__(self, store: Store, *, first: bool) -> None:
        self._peer = 1 if first else 0
        options = _Group.Options()
        options._timeout = timedelta(seconds=PROGRESS_S * 10)  # noqa: SLF001 - no public name exists
        try:
            self._group = _Group(store, 0 if first else 1, 2, options)
        except RuntimeError as error:
            raise PeerLostError(f"NCCL could not connect: {one_line(error)}") from None

    def send(self, chunk: torch.Tensor) -> "_NcclPending":
        """Begin to send; the first call connects, and may block for ever."""
        try:
            return _NcclPending(self._group.send([chunk], self._peer, _TAG))
        except RuntimeError as error:
            raise PeerLostError(one_line(error)) from None

    def receive(self, chunk: torch.Tensor) -> "_NcclPending":
        """Begin to receive into ``chunk``."""
        try:
            return _NcclPending(self._group.recv([chunk], self._peer, _TAG))
        except RuntimeError as error:
            raise PeerLostError(one_line(error)) from None

    def close(self) -> None:
        """Drop the communicator without waiting for the peer."""
        self._group.abort()
        del self._group


class _NcclPending:
    """A chunk under way on NCCL's own stream."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def wait(self) -> None:
        """Wait for the chunk; raises StalledError or PeerLostError."""
        end_s = time.monotonic() + PROGRESS_S
        try:
            # wait() would only make the current stream wait, and know no progress.
            while not self._work.is_completed():
                if time.monotonic() > end_s:
                    raise StalledError(f"nothing moved for {PROGRESS_S:g} s")
                time.sleep(_POLL_S)
            self._work.wait()
        except RuntimeError as error:
            raise PeerLostError(one_line(error)) from None
